"""The page of a chosen K: curves, votes, the partitions of every K, and the best one's objects."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import stats

from wellsep._checks import check_data, to_numpy
from wellsep.evaluate.details import object_details
from wellsep.evaluate.explain import ranks
from wellsep.indices import clustering_accuracy, nmi_score
from wellsep.report.choosing import chosen_figure, chosen_payload, worst_table
from wellsep.report.counting import curves_figure, k_table
from wellsep.report.figures import Curves, TruthPanels
from wellsep.report.looking import Look, draw_objects, label_parts, look_payload, names_of
from wellsep.report.planes import coordinates
from wellsep.report.sections import Page, panels_payload, table_payload
from wellsep.runs import Runs

SPACE = "the data"


def is_chosen_k(result: Any) -> bool:
    """Whether a result is one of choosing K (a record this room does not import)."""
    return all(hasattr(result, name) for name in ("curves", "votes", "picks", "labels_for", "k"))


def k_page(chosen: Any, *, runs: Any, truth: Any, title: str | None, layout: str) -> Page:
    """Everything the template and the script need for a chosen K."""
    curves, table = curves_figure(chosen), k_table(chosen)
    best = curves.best
    names = [f"K = {k}" for k in curves.k]
    missing: dict[str, str] = {}
    data: dict[str, Any] = {
        "kind": "choice of k",
        "partitions": names,
        "spaces": [SPACE],
        "made_in": [0] * len(names),
        "best": int(np.flatnonzero(curves.k == best)[0]),
        "table": table_payload(table),
        "explanation": chosen.explain().splitlines(),
        "curves": curves_payload(curves),
    }
    X, ids, space = _space(runs, chosen)
    shown = worst = None
    if X is None:
        missing["look"] = "The objects are not drawn: the page was made without the data (runs=X)."
        missing["people"] = "The objects of the best partition are not shown: that needs the data."
    else:
        rows = X[np.asarray(chosen.objects)]
        ids = None if ids is None else np.asarray(ids)[np.asarray(chosen.objects)]
        details = object_details(rows, chosen.labels_for(best), f"K = {best}", space)
        shown = chosen_figure(details)
        objects = draw_objects(len(rows), 1, len(names), None)
        xy, axes = coordinates(rows, objects, layout)
        partitions = dict(zip(names, chosen.labels, strict=True))
        classes = None
        if truth is not None:
            part = {"truth": _classes(truth, chosen)}
            classes = label_parts(part, objects, shown.codes)["truth"]
        look = Look(
            objects=objects,
            names=names_of(ids, objects),
            n_objects=len(rows),
            spaces=(SPACE,),
            planes=(xy,),
            axes=(axes,),
            labels=label_parts(partitions, objects, shown.codes),
            truth=classes,
            values={key: values[objects] for key, values in shown.values.items()},
        )
        data["look"] = look_payload(look)
        data["sides"] = {"selected": [0], "excluded": []}
        data["people"] = chosen_payload(shown, objects, ids)
        worst = worst_table(shown, ids)
        data["people"]["worst"] = worst
    panels = None
    if truth is not None:
        panels = k_truth(chosen, _classes(truth, chosen), names)
        data["truth"] = panels_payload(panels)
    return Page(
        kind="choice of k",
        title=title or "The number of clusters",
        lead=_lead(chosen, curves),
        sure=_sure(chosen, curves),
        facts=_facts(chosen, curves),
        table=table,
        paragraphs=tuple(chosen.explain().splitlines()),
        curves=curves,
        chosen=shown,
        worst=worst,
        truth=panels,
        missing=missing,
        data=data,
    )


def curves_payload(curves: Curves) -> dict[str, Any]:
    """The curves as the page's script reads them."""
    return {
        "k": curves.k,
        "votes": curves.votes,
        "stability": curves.stability,
        "best": curves.best,
        "repeats": curves.n_repeats,
        "curves": [
            {
                "name": c.name,
                "mean": c.mean,
                "low": c.low,
                "high": c.high,
                "pick": c.pick,
                "direction": c.direction,
            }
            for c in curves.curves
        ],
    }


def k_truth(chosen: Any, classes: np.ndarray, names: list[str]) -> TruthPanels:
    """Every index as a ranking of the numbers of clusters, against the truth."""
    external = {
        "nmi": np.array([float(nmi_score(classes, labels)) for labels in chosen.labels]),
        "acc": np.array([float(clustering_accuracy(classes, labels)) for labels in chosen.labels]),
    }
    signed = np.asarray(chosen.mean, dtype=float) * np.asarray(chosen.directions)
    table: dict[str, list[Any]] = {"ranking": list(chosen.indices)}
    for measure in external:
        for kind in ("spearman", "kendall"):
            table[f"{kind}_{measure}"] = [
                _correlation(kind, signed[:, i], external[measure])
                for i in range(len(chosen.indices))
            ]
    picks = []
    for i in range(len(chosen.indices)):
        known = np.flatnonzero(np.isfinite(signed[:, i]))
        first = known[ranks(signed[known, i]) == 1] if len(known) else known
        picks.append(tuple(names[j] for j in first))
    table["pick"] = [", ".join(pick) or "–" for pick in picks]
    for measure in external:
        table[f"{measure}_of_pick"] = [
            float(np.mean([external[measure][names.index(p)] for p in pick]))
            if pick
            else float("nan")
            for pick in picks
        ]
    return TruthPanels(tuple(chosen.indices), tuple(names), signed.T, external, table, tuple(picks))


def _correlation(kind: str, scores: np.ndarray, other: np.ndarray) -> float:
    known = np.isfinite(scores)
    a, b = scores[known], other[known]
    if len(a) < 2 or np.ptp(a) == 0 or np.ptp(b) == 0:
        return float("nan")
    function = stats.spearmanr if kind == "spearman" else stats.kendalltau
    return float(function(a, b).statistic)


def _space(runs: Any, chosen: Any) -> tuple[np.ndarray | None, Any, str]:
    """The data to look at: the only space of some runs, or a matrix."""
    if runs is None:
        return None, None, SPACE
    ids: Any = None
    if isinstance(runs, Runs):
        spaces = list(runs.spaces)
        if len(spaces) != 1:
            raise ValueError(f"runs must hold one space for a chosen K, got {len(spaces)}.")
        X, ids = runs.spaces[spaces[0]], runs.ids
    else:
        if hasattr(runs, "iloc"):
            ids = [str(name) for name in runs.index]
        X = to_numpy(check_data(runs))
    most = int(np.max(chosen.objects)) + 1
    if len(X) < most:
        raise ValueError(f"runs must hold the {most} objects K was chosen on, got {len(X)}.")
    return np.asarray(X), ids, SPACE


def _classes(truth: Any, chosen: Any) -> np.ndarray:
    classes = to_numpy(truth).reshape(-1)
    most = int(np.max(chosen.objects)) + 1
    if len(classes) < most:
        raise ValueError(f"truth must have one class per object ({most}), got {len(classes)}.")
    return classes[np.asarray(chosen.objects)]


def _lead(chosen: Any, curves: Curves) -> tuple[tuple[str, str], ...]:
    votes = curves.votes[curves.k == curves.best][0]
    n = len(curves.curves)
    return (
        ("name", f"K = {curves.best}"),
        ("text", f" has the most votes: {votes:.3g} of {n} {'index' if n == 1 else 'indices'}."),
    )


def _sure(chosen: Any, curves: Curves) -> tuple[str, ...]:
    lines = chosen.explain().splitlines()
    cautions = lines[1 + len(curves.curves) :]
    at = int(np.flatnonzero(curves.k == curves.best)[0])
    found = []
    if curves.n_repeats > 1:
        found.append(
            f"Over {curves.n_repeats} repeats its partitions agree with an adjusted Rand index "
            f"of {curves.stability[at]:.2f}."
        )
    else:
        found.append("How stable that is was not asked for (n_repeats).")
    return (*found, *cautions)


def _facts(chosen: Any, curves: Curves) -> tuple[tuple[str, str], ...]:
    return (
        (f"{curves.k[0]}–{curves.k[-1]}", "clusters tried"),
        (f"{len(curves.curves)}", "indices"),
        (f"{curves.n_repeats}", "repeats"),
        (f"{chosen.labels.shape[1]:,}", "objects"),
    )
