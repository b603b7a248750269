"""The commands that choose K and cluster."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

import wellsep as ws
from wellsep._checks.arrays import check_data, spreads_apart
from wellsep._files.arrays import stored_npy
from wellsep._text.sentences import count
from wellsep.cli import options
from wellsep.cli.deliver import (
    Outputs,
    check_target,
    command_of,
    label_columns,
    print_json,
    write_columns,
    wrote,
)
from wellsep.cli.options import (
    METHODS,
    ONE_CLUSTER,
    parse_count,
    parse_index,
    parse_range,
    parse_settings,
)
from wellsep.cli.printing import print_columns, print_line, progress_bar
from wellsep.cli.reading import TableReader, named
from wellsep.cli.wording import in_shell_words, print_sentences

BATCHED = ("k-means", "cf-means")  # methods that read a file in batches


def choose_k(
    context: typer.Context,
    data: options.Data,
    k: Annotated[
        str | None,
        typer.Option(
            "--k",
            "-k",
            help="Numbers of clusters to try: 2:12, 2:20:2 or 3,5,8. Both ends are included. By "
            "default 2:15, extended to 25 if an index picks 15.",
        ),
    ] = None,
    method: options.Method = "k-means",
    index: Annotated[
        list[str] | None,
        typer.Option(
            "--index",
            "-i",
            help="Index that votes, such as cfq or davies_bouldin(q=2), or elbow, log_elbow, gap, "
            "prediction_strength, mixture_bic. Repeat for more. By default silhouette, "
            "prediction_strength and mixture_bic.",
        ),
    ] = None,
    gate: Annotated[
        bool, typer.Option(help="Test first whether there is more than one cluster.")
    ] = True,
    repeats: Annotated[
        int, typer.Option(help="Number of fits for each K, each with another seed.")
    ] = 1,
    space: options.Space = None,
    scale: options.Scale = False,
    seed: options.Seed = 0,
    jobs: options.Jobs = None,
    output: options.Labels = None,
    report: options.Report = None,
    save: options.Save = None,
    ids: options.Ids = None,
    no_header: options.NoHeader = False,
    columns: options.Columns = None,
    as_json: options.Json = False,
) -> None:
    """Find the number of clusters: test for more than one, then let indices vote on K.

    The exit code is 3 if there is no structure beyond one cluster.

    \b
    Examples:
      wellsep choose-k data.csv
      wellsep choose-k data.csv -i elbow -i gap -i silhouette
      wellsep choose-k data.parquet --k 2:20 -i silhouette -i cfq --repeats 5
      wellsep choose-k data.npy --method ward --scale -o labels.csv --json
      wellsep choose-k data.h5ad --space X_pca
      wellsep choose-k data.csv --report page.html
    """
    outputs = Outputs(as_json, save, output, report, labels=True, context=context)
    outputs.check(data)
    voting: dict[str, Any] = {} if not index else {"indices": [parse_index(i) for i in index]}
    reader = TableReader([data], ids, no_header, columns)
    X, unscaled, names = _read(reader, data, scale, space)
    with warnings.catch_warnings(), progress_bar() as told:
        # The numbers of clusters that could not be fitted are named in the output.
        warnings.filterwarnings("ignore", "K = .* could not be fitted")
        chosen = ws.choose_k(
            X,
            None if k is None else parse_range(k),
            estimator=None if method == METHODS[0] else ws.cluster.clusterer(method, None),
            gate=gate,
            n_repeats=repeats,
            random_state=seed,
            n_jobs=jobs,
            progress=told,
            **voting,
        )
    reader.tell()
    labels = None if output is None else label_columns(chosen.labels_for(), names)
    page = {"runs": named(reader, X), "features": named(reader, unscaled)}
    outputs.deliver(chosen, _print_chosen, table=labels, **page)
    if chosen.best == 1:
        raise typer.Exit(ONE_CLUSTER)


def _print_chosen(chosen: ws.records.ChosenK) -> None:
    """Print the answer first, then the table, then the votes and what to be wary of."""
    answer = chosen.answer()
    print_sentences(answer, "choose-k")
    columns = chosen.columns()
    first: dict[str, Any] = {name: columns.pop(name) for name in ("k", "votes")}
    if columns.get("n_clusters") == first["k"]:
        columns.pop("n_clusters")
    if set(columns.get("coverage", [1.0])) == {1.0}:
        columns.pop("coverage", None)
    columns = {**first, **columns}
    arrows = dict(zip(chosen.indices, chosen.directions, strict=True))
    heads = [f"{n} {'↑' if arrows[n] > 0 else '↓'}" if n in arrows else n for n in columns]
    print_columns(dict(zip(heads, columns.values(), strict=True)))
    print_sentences(list(chosen.sentences())[len(answer) :], "choose-k")


def cluster(
    context: typer.Context,
    data: options.Data,
    k: Annotated[
        int,
        typer.Option(
            "--clusters", "-k", parser=parse_count, metavar="INTEGER", help="Number of clusters."
        ),
    ],
    method: options.Method = "cf-means",
    output: options.Labels = None,
    centers: Annotated[
        Path | None, typer.Option(help="Also write the cluster centres to this npy file.")
    ] = None,
    settings: options.Settings = None,
    batch: Annotated[
        int | None,
        typer.Option(
            help="Read so many objects at a time from an npy file, which may be larger than "
            "memory. For k-means and cf-means."
        ),
    ] = None,
    space: options.Space = None,
    scale: options.Scale = False,
    seed: options.Seed = 0,
    report: options.Report = None,
    ids: options.Ids = None,
    no_header: options.NoHeader = False,
    columns: options.Columns = None,
    as_json: options.Json = False,
) -> None:
    """Cluster a data set and write the labels.

    \b
    Examples:
      wellsep cluster data.csv -k 8 -o labels.csv
      wellsep cluster data.npy --method lof-k-means --set n_neighbors=10 -k 4 -o labels.npy
      wellsep cluster data.parquet --method k-means -k 12 --scale --report page.html
      wellsep cluster large.npy -k 100 --batch 50000 -o labels.npy
    """
    outputs = Outputs(as_json, output=output, labels=True, report=report, context=context)
    outputs.check(data)
    check_target("centers", centers, (".npy",), data)
    if centers is not None and output is not None and centers.absolute() == output.absolute():
        raise ValueError(f"centers must be another file than output, got {centers} for both.")
    if centers is not None and method == "ward":
        raise ValueError("centers must be left out for a method without centres, got ward.")
    if report is not None and batch is not None:
        raise ValueError("report must be left out with --batch, which keeps the data on disk.")
    reader = TableReader([data], ids, no_header, columns)
    model = ws.cluster.clusterer(method, k, seed, parse_settings(settings))
    if batch is None:
        X, unscaled, names = _read(reader, data, scale, space)
    else:
        X, names = _open_map(data, method, scale), None
        model.set_params(batch_size=batch)
    fitted = ws.cluster.fit_labels(model, X)
    reader.tell()
    if output is not None:
        write_columns(output, label_columns(fitted.labels, names))
    if centers is not None:
        fit = fitted.estimator
        means = fit.means_ if method == "gaussian-mixture" else fit.cluster_centers_
        write_columns(centers, {"centers": means})
    labels, sizes = np.unique(fitted.labels, return_counts=True)
    inertia = getattr(fitted.estimator, "inertia_", None)
    if as_json:
        print_json(
            {
                "method": method,
                "n_objects": len(X),
                "n_clusters": len(labels),
                "sizes": dict(zip(labels.tolist(), sizes.tolist(), strict=True)),
                "inertia": inertia,
                "seconds": fitted.seconds,
                "labels": None if output is not None else fitted.labels,
            }
        )
    else:
        shares = (sizes / len(X)).tolist()
        print_columns({"cluster": labels.tolist(), "objects": sizes.tolist(), "share": shares})
        ends = "" if inertia is None else f", inertia {inertia:.6g}"
        found, objects = count(len(labels), "cluster"), count(len(X), "object")
        print_line(f"{method}: {found} of {objects}{ends}.")
        if output is None:
            print_line("Labels were not written. Name a file with --output.")
    if report is not None:
        described = ws.describe_clusters(
            X, fitted.labels, reader.features, features=unscaled, ids=names
        )
        page = {"runs": named(reader, X), "labels": fitted.labels}
        ws.render_report(described, report, command=command_of(context), **page)
        wrote(report)


def _read(
    reader: TableReader, path: Path, scale: bool, space: str | None
) -> tuple[Any, Any, np.ndarray | None]:
    """The data, scaled where that is asked for and as they are, and the ids of the objects."""
    matrix, names = reader.data(path, space)
    X = check_data(matrix, name=path.name, sparse=True)
    warning = None if scale else spreads_apart(X, reader.features)
    if warning is not None:
        reader.said.append(in_shell_words(warning, {}))
    return ws.cluster.scaled(X, scale), X, names


def _open_map(path: Path, method: str, scale: bool) -> np.ndarray:
    """The matrix in an npy file, left there and read in batches."""
    if method not in BATCHED:
        raise ValueError(f"batch must be left out for {method}; use {' or '.join(BATCHED)}.")
    if scale:
        raise ValueError("scale must be left out with --batch; scale the file first.")
    if path.suffix != ".npy":
        raise ValueError(
            f"batch must be left out unless the data are an npy file, got {path.name}; "
            "save the matrix with numpy.save."
        )
    return stored_npy(path, path.name).open()
