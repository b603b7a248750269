"""From a result to one HTML file that works offline: no request, no vendored code."""

from __future__ import annotations

import base64
import datetime
import functools
import hashlib
import os
import re
from collections.abc import Mapping
from dataclasses import replace
from importlib.resources import files
from itertools import zip_longest
from pathlib import Path
from typing import Any

import jinja2
import numpy as np
import scipy.sparse as sp
from markupsafe import Markup, escape

from wellsep import __version__
from wellsep._checks.arrays import check_choice
from wellsep._checks.values import check_path, check_text
from wellsep._files.arrays import digest
from wellsep._files.replace import write_text
from wellsep._text.glossary import WORDS
from wellsep._text.sentences import CLUSTERS, DIVERGING, SURFACES, cell, count
from wellsep.distances.base import PairSpace
from wellsep.evaluate import ClusterDescription, Judgement, ResolutionTree
from wellsep.report.pack import BIDI, Column, Page, safe_json
from wellsep.report.pages.choose_k import build_k_page, build_tree_page
from wellsep.report.pages.clusters import build_clusters_page, build_stability_page
from wellsep.report.pages.ranking import build_ranking_page
from wellsep.runs import Runs
from wellsep.spaces.drawing_planes import LAYOUTS

LOOK = 16  # rows of each embedding that the digest reads

# Drawn in this order; each file speaks to the ones before it through the object W.
SCRIPTS = (
    "core.js",
    "charts.js",
    "filter.js",
    "table.js",
    "steps.js",
    "heat.js",
    "graph.js",
    "scatter.js",
    "objects.js",
    "answer.js",
    "clusters.js",
    "curves.js",
    "stability.js",
    "tree.js",
    "truth.js",
    "structure.js",
    "downloads.js",
    "state.js",
    "start.js",
)


# Headings of tables whose names are those of records.
LABELS = {
    "own_vote": "vote of its runs",
    "dims": "columns",
    "rankme": "RankMe",
    "alpha_req": "α-ReQ",
    "spearman_ari": "r_s ARI",
    "kendall_ari": "τ_b ARI",
    "spearman_nmi": "r_s NMI",
    "kendall_nmi": "τ_b NMI",
    "spearman_acc": "r_s accuracy",
    "kendall_acc": "τ_b accuracy",
    "ari_of_pick": "ARI of pick",
    "nmi_of_pick": "NMI of pick",
    "acc_of_pick": "accuracy of pick",
}


def render_report(
    result: Any,
    path: str | os.PathLike[str],
    *,
    runs: Any = None,
    truth: Any = None,
    title: str | None = None,
    layout: str | None = None,
    objects: Any = None,
    features: Any = None,
    labels: Any = None,
    command: str | None = None,
) -> Path:
    """Write a result as one self-contained HTML page: the answer, the reasons, and plots.

    The page works offline and asks for nothing from elsewhere; objects are sampled and their
    coordinates rounded so that it stays small. What cannot be shown is left out with a sentence
    that says why.

    Parameters
    ----------
    result : Judgement, Exploration, ChosenK, Stability, ClusterDescription or ResolutionTree
        From :func:`wellsep.judge`, :func:`wellsep.explore`, :func:`wellsep.choose_k`,
        :func:`wellsep.stability`, :func:`wellsep.describe_clusters` or
        :func:`wellsep.resolution_tree`. An exploration brings its runs along.
    path : path
        The file to write; it appears whole or not at all.
    runs : Runs, optional
        The runs that were ranked: colours, objects and truth need them. For a ``ChosenK``, a
        ``Stability`` or a ``ClusterDescription`` the data.
    truth : array-like of shape (n,), optional
        True classes. They colour the objects and show how well each ranking agrees; nothing that
        is ranked here sees them.
    title : str, optional
        Heading of the page.
    layout : {None, "pca", "tsne", "umap"} or a name in ``runs.layouts``
        How spaces of more than two columns are drawn. A layout that came with the runs, such as
        "X_umap" of AnnData, shows every space with the same coordinates. By default principal
        components, beside the layout that ``judge(layout="auto")`` kept.
    objects : mapping or frame of columns of length n, array of images, or folder of them, optional
        What is known about the objects. Columns of numbers and of few categories colour them, and
        hovering shows all. Images, arrays (n, h, w) or (n, h, w, 3), a column of paths or a
        folder, and columns of texts are shown wherever an object is named. By default
        ``runs.objects``, such as the columns of AnnData's ``obs``.
    features : array-like or frame of shape (n, F), optional
        Where ``runs`` are data: other columns to describe the clusters by, such as the unscaled
        ones.
    labels : array-like of shape (n,), optional
        For a ``ClusterDescription`` the labels that were described: the map needs them.
    command : str, optional
        The command that made the page. The foot shows it, to make the page again; by default the
        call of :func:`wellsep.judge`.

    Returns
    -------
    Path
        The file.

    Examples
    --------
    >>> import tempfile, pathlib, wellsep as ws
    >>> X = [[0.0, 0], [0, 1], [5, 0], [5, 1]]
    >>> runs = ws.Runs.from_parts({"flat": X}, {"good": [0, 0, 1, 1], "bad": [0, 1, 0, 1]})
    >>> judgement = ws.judge(runs, n_draws=0, dip=False)
    >>> page = ws.render_report(judgement, pathlib.Path(tempfile.mkdtemp()) / "r.html", runs=runs)
    >>> "is ranked first of 2 runs" in page.read_text(encoding="utf-8")
    True
    """
    if is_a(result, "Exploration"):
        runs = result.runs if runs is None else runs
        result = replace(result.judgement, notes=(*result.remarks, *result.judgement.notes))
    drawn = getattr(runs, "layouts", {})  # those that came with the runs
    if layout is not None:
        check_choice("layout", layout, (*LAYOUTS, *drawn))
    path = check_path("path", path)
    for name, text in (("title", title), ("command", command)):
        if text is not None:
            check_text(name, text)
    given = {"runs": runs, "truth": truth, "title": title}
    one_space = {**given, "layout": layout or "pca", "features": features}
    if is_a(result, "ChosenK"):
        page = build_k_page(result, **one_space)
    elif is_a(result, "Stability"):
        page = build_stability_page(result, **one_space)
    elif isinstance(result, ClusterDescription):
        page = build_clusters_page(result, labels=labels, **one_space)
    elif isinstance(result, ResolutionTree):
        page = build_tree_page(result, title=title)
    elif isinstance(result, Judgement):
        page = build_ranking_page(result, layout=layout, objects=objects, **given)
    else:
        raise TypeError(
            "result must be a Judgement, an Exploration, a ChosenK, a Stability, a "
            f"ClusterDescription or a ResolutionTree, got {type(result).__name__}; make one with "
            "judge, explore, choose_k, stability, describe_clusters or resolution_tree."
        )
    page = replace(page, provenance=provenance(result, runs=runs, command=command))
    write_text(path, to_html(page))
    return path


def is_a(result: Any, name: str) -> bool:
    """Whether a result is of a class with this name, one that this room does not import."""
    return name in {cls.__name__ for cls in type(result).__mro__}


def to_html(page: Page) -> str:
    """The page as one string of HTML."""
    script = "(function () {\n'use strict';\n" + "\n".join(map(_read, SCRIPTS)) + "\n})();"
    allowed = base64.b64encode(hashlib.sha256(script.encode("utf-8")).digest()).decode("ascii")
    drawn = page.data
    sheet = drawn.get("sheet")
    if sheet is not None:
        drawn["sheet"] = {key: value for key, value in sheet.items() if key != "png"}
    data = {
        **drawn,
        "title": page.title,
        "version": __version__,
        "palette": {"clusters": CLUSTERS, "diverging": DIVERGING, "surfaces": SURFACES},
    }
    html = _template().render(
        page=page,
        style=_read("style.css"),
        surfaces=SURFACES,
        clusters=CLUSTERS,
        script=script,
        # Only this very script may run, whatever a name tries; nothing may be fetched.
        policy=(
            f"default-src 'none'; script-src 'sha256-{allowed}'; style-src 'unsafe-inline'; "
            "img-src data: blob:; base-uri 'none'; form-action 'none'"
        ),
        drawn=drawn,
        sheet=sheet,
        json=safe_json(data),
        version=__version__,
        words=WORDS,
        labels=LABELS,
    )
    # A lone surrogate in a name is no character, and could not be written.
    return html.lstrip().encode("utf-8", "replace").decode("utf-8")


def show(value: Any, column: Column) -> str:
    """A table cell as text."""
    if value is None:
        return "–"
    if column.kind == "interval":
        return f"{value[0]}–{value[1]}"
    if column.kind == "share":
        return f"{value:.0%}"
    return cell(value)


def _without_controls(value: Any) -> Any:
    """A text whose characters cannot turn round what follows; they are shown as a mark."""
    if not isinstance(value, str) or not re.search(f"[{BIDI}]", value):
        return value
    return type(value)(re.sub(f"[{BIDI}]", "␣", value))


def _names_apart(sentence: str) -> Markup:
    """A sentence whose quoted names cannot change the direction of what follows them."""
    pieces = re.split(r"('[^']+')", sentence)
    quoted = (Markup("<bdi>{}</bdi>").format(name) for name in pieces[1::2])
    between = map(escape, pieces[::2])
    return Markup("").join(
        part for pair in zip_longest(between, quoted, fillvalue="") for part in pair
    )


@functools.cache
def _template() -> jinja2.Template:
    environment = jinja2.Environment(
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        loader=jinja2.FunctionLoader(_read),
        finalize=_without_controls,
    )
    environment.filters["show"] = show
    environment.filters["cell"] = cell
    environment.filters["count"] = count
    environment.filters["names"] = _names_apart
    return environment.get_template("page.html")


def _read(name: str) -> str:
    return files(__package__).joinpath("template", name).read_text(encoding="utf-8")


def provenance(result: Any, *, runs: Any, command: str | None) -> tuple[tuple[str, str], ...]:
    """Pairs of a word and a text; the first, where it is known, makes the page again.

    Examples
    --------
    >>> import wellsep as ws
    >>> result = ws.ace(ws.Scores.from_matrix([[0.1, 0.5], [0.2, 0.6]]), dip=False)
    >>> [word for word, _ in provenance(result, runs=None, command="wellsep rank runs/")]
    ['Reproduce', 'Version', 'Date']
    """
    found: dict[str, str] = {}
    options: Mapping[str, Any] = {}
    if isinstance(result, Judgement):
        options = result.options
        if not command and result.call:
            call = 'wellsep.render_report(judgement, "page.html", runs=runs)'
            command = f"judgement = {result.call}\n{call}"
    if command:
        found["Reproduce"] = command
    if options:
        found["Options"] = ", ".join(f"{name}={value!r}" for name, value in options.items())
        found["Seed"] = str(options.get("random_state"))
    found["Version"] = f"wellsep {__version__}"
    found["Date"] = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC")
    if isinstance(runs, Runs):
        found["Data"] = (
            f"SHA-256 {data_digest(runs.partitions, runs.spaces)[:16]} of all labels and of "
            f"{LOOK} rows of each embedding"
        )
    return tuple(found.items())


def data_digest(partitions: Mapping[str, Any], spaces: Mapping[str, Any]) -> str:
    """A digest of all labels, and of names, shapes and a few rows of the embeddings.

    Examples
    --------
    >>> import numpy as np
    >>> one = data_digest({"a": [0, 1]}, {"s": np.eye(2)})
    >>> one == data_digest({"a": [0, 1]}, {"s": np.eye(2)}) != data_digest({"a": [1, 1]}, {})
    True
    """
    parts: list[Any] = []
    for name, labels in partitions.items():
        values = np.asarray(labels)
        plain = values.dtype.kind in "biuf"
        parts += [str(name), values if plain else "\n".join(map(str, values.tolist()))]
    for name, space in spaces.items():
        rows = np.unique(np.linspace(0, max(space.shape[0] - 1, 0), LOOK).astype(np.intp))
        if isinstance(space, PairSpace):
            some = [space.block(rows, rows)] if space.complete else space.contents()
        elif sp.issparse(space):
            part = space[rows]
            some = [part.data, part.indices, part.indptr]
        else:
            some = [np.asarray(space[rows])]
        parts += [str(name), str(tuple(space.shape)), *some]
    return digest(*parts)
