"""The commands that choose K and cluster."""

from __future__ import annotations

import re
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wellsep._text.sentences import count
from wellsep.cli.printing import (
    PAGES,
    TABLES,
    JsonOption,
    check_file,
    check_folder,
    print_columns,
    print_json,
    print_line,
    print_table,
    refuse_inputs,
    show_progress,
    wrote,
)
from wellsep.cli.reading import (
    ColumnsOption,
    IdsOption,
    NoHeaderOption,
    TableReader,
    choices,
    named,
)
from wellsep.cli.reading_runs import DataArgument, SpaceOption
from wellsep.cli.scoring import parse_index
from wellsep.cli.wording import command_of

if TYPE_CHECKING:
    import numpy as np

    from wellsep.cluster.k_choice.result import ChosenK
    from wellsep.tables.reading import TableChoice

ONE_CLUSTER = 3  # exit code of choose-k
METHODS = ("k-means", "cf-means", "lof-k-means", "robust-k-means", "ward", "gaussian-mixture")
BATCHED = ("k-means", "cf-means")  # methods that read a file in batches

MethodOption = Annotated[
    str, typer.Option("--method", "-m", help=f"Clustering method: {', '.join(METHODS)}.")
]
ScaleOption = Annotated[
    bool,
    typer.Option("--scale", help="First scale every column to mean 0 and standard deviation 1."),
]
SeedOption = Annotated[int, typer.Option(help="Random seed. The same seed gives the same result.")]


def choose_k(
    context: typer.Context,
    data: DataArgument,
    k: Annotated[
        str | None,
        typer.Option(
            "--k",
            "-k",
            help="Numbers of clusters to try: 2:12, 2:20:2 or 3,5,8. Both ends are included. By "
            "default 2:15, extended to 25 if an index wants more.",
        ),
    ] = None,
    method: MethodOption = "k-means",
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
    noise: Annotated[
        str,
        typer.Option(
            help="How to treat the labels -1, -2 and -3, which mean noise. priced: not counted, "
            "and the score falls. exclude: not counted. Also cluster, singletons or error."
        ),
    ] = "priced",
    repeats: Annotated[
        int, typer.Option(help="Number of fits for each K, each with another seed.")
    ] = 1,
    subsample: Annotated[
        float | None,
        typer.Option(help="Share of the objects to draw for each repeat, such as 0.8."),
    ] = None,
    space: SpaceOption = None,
    scale: ScaleOption = False,
    seed: SeedOption = 0,
    jobs: Annotated[
        int | None, typer.Option(help="Number of fits to run at the same time.")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="Write the labels of the best K to this csv, parquet or npy file.",
        ),
    ] = None,
    report: Annotated[
        Path | None, typer.Option(help="Write the result as one HTML page to this file.")
    ] = None,
    save: Annotated[
        Path | None, typer.Option(help="Save all results in this folder, for wellsep report.")
    ] = None,
    ids: IdsOption = None,
    no_header: NoHeaderOption = False,
    columns: ColumnsOption = None,
    as_json: JsonOption = False,
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
    from sklearn.exceptions import FitFailedWarning

    from wellsep.cluster.k_choice.choose import choose_k as choose

    refuse_inputs("output", output, data)
    refuse_inputs("report", report, data)
    check_file("output", output, (*TABLES, ".npy"))
    check_file("report", report, PAGES)
    check_folder("save", save)
    if output is not None and subsample is not None:
        raise ValueError(
            "output must be left out with --subsample, which leaves objects without labels; "
            "choose K first, then run wellsep cluster."
        )
    options: dict[str, Any] = {} if not index else {"indices": [parse_index(i) for i in index]}
    (choice,) = choices([data], ids=ids, no_header=no_header, columns=columns)
    reader = TableReader()
    X, names = _read(reader, data, scale, choice, space)
    with warnings.catch_warnings():
        # The numbers of clusters that could not be fitted are named in the output.
        warnings.simplefilter("ignore", FitFailedWarning)
        chosen = choose(
            X,
            None if k is None else parse_range(k),
            estimator=None if method == METHODS[0] else _estimator(method, None),
            gate=gate,
            noise=noise,
            n_repeats=repeats,
            subsample=subsample,
            random_state=seed,
            n_jobs=jobs,
            progress=show_progress(),
            **options,
        )
    reader.tell()
    if as_json:
        print_json(chosen.to_dict())
    else:
        _print_chosen(chosen)
    if save is not None:
        chosen.save(save)
        wrote(save)
    if output is not None:
        _write_labels(output, chosen.labels_for(), names)
        wrote(output)
    if report is not None:
        from wellsep.report import render_report

        render_report(chosen, report, runs=named(reader, X), command=command_of(context))
        wrote(report)
    if chosen.best == 1:
        raise typer.Exit(ONE_CLUSTER)


def _print_chosen(chosen: ChosenK) -> None:
    """Print the answer first, then the table, then the votes and what to be wary of."""
    answer = chosen.answer()
    for line in answer:
        print_line(line)
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
    for line in list(chosen.sentences())[len(answer) :]:
        print_line(line)


def cluster(
    data: DataArgument,
    k: Annotated[int, typer.Option("--clusters", "-k", help="Number of clusters.")],
    method: MethodOption = "cf-means",
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Write the labels to this csv, parquet or npy file."),
    ] = None,
    centers: Annotated[
        Path | None, typer.Option(help="Also write the cluster centres to this npy file.")
    ] = None,
    restarts: Annotated[
        int | None, typer.Option(help="Number of starts to try; the best result is kept.")
    ] = None,
    neighbors: Annotated[
        int, typer.Option(help="Number of neighbours per object. Only lof-k-means uses it.")
    ] = 5,
    batch: Annotated[
        int | None,
        typer.Option(
            help="Read so many objects at a time from an npy file, which may be larger than "
            "memory. For k-means and cf-means."
        ),
    ] = None,
    space: SpaceOption = None,
    scale: ScaleOption = False,
    seed: SeedOption = 0,
    ids: IdsOption = None,
    no_header: NoHeaderOption = False,
    columns: ColumnsOption = None,
    as_json: JsonOption = False,
) -> None:
    """Cluster a data set and write the labels.

    \b
    Examples:
      wellsep cluster data.csv -k 8 -o labels.csv
      wellsep cluster data.npy --method lof-k-means --neighbors 10 -k 4 -o labels.npy
      wellsep cluster data.parquet --method k-means -k 12 --scale --json
      wellsep cluster large.npy -k 100 --batch 50000 -o labels.npy
    """
    import numpy as np

    from wellsep.cluster.fitting import fit_labels

    refuse_inputs("output", output, data)
    refuse_inputs("centers", centers, data)
    check_file("output", output, (*TABLES, ".npy"))
    check_file("centers", centers, (".npy",))
    if centers is not None and output is not None and centers.absolute() == output.absolute():
        raise ValueError(f"centers must be another file than output, got {centers} for both.")
    if centers is not None and method == "ward":
        raise ValueError("centers must be left out for a method without centres, got ward.")
    (choice,) = choices([data], ids=ids, no_header=no_header, columns=columns)
    reader = TableReader()
    model = _estimator(method, k, seed=seed, restarts=restarts, neighbors=neighbors)
    if batch is None:
        X, names = _read(reader, data, scale, choice, space)
    else:
        X, names = _open_map(data, method, scale), None
        model.set_params(batch_size=batch)
    fitted = fit_labels(model, X)
    reader.tell()
    if output is not None:
        _write_labels(output, fitted.labels, names)
        wrote(output)
    if centers is not None:
        _write_centers(centers, fitted.estimator)
        wrote(centers)
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
        return
    shares = (sizes / len(X)).tolist()
    print_table(
        list(zip(labels.tolist(), sizes.tolist(), shares, strict=True)),
        ["cluster", "objects", "share"],
    )
    ends = "" if inertia is None else f", inertia {inertia:.6g}"
    found, objects = count(len(labels), "cluster"), count(len(X), "object")
    print_line(f"{method}: {found} of {objects}{ends}.")
    if output is None:
        print_line("Labels were not written. Name a file with --output.")


def parse_range(text: str) -> list[int]:
    """Read ``"2:12"`` as 2, 3, … 12, ``"2:20:2"`` in steps of 2, ``"3,5,8"`` as listed."""
    match = re.fullmatch(r"\s*(\d+)\s*:\s*(\d+)\s*(?::\s*(\d+)\s*)?", text)
    if match:
        first, last, step = int(match[1]), int(match[2]), int(match[3] or 1)
        if last >= first and step > 0:
            return list(range(first, last + 1, step))
    elif re.fullmatch(r"\s*\d+\s*(,\s*\d+\s*)*", text):
        return [int(part) for part in text.split(",")]
    raise ValueError(f"k must read like 2:12, 2:20:2 or 3,5,8, got {text!r}.")


def _read(
    reader: TableReader, path: Path, scale: bool, choice: TableChoice, space: str | None
) -> tuple[Any, np.ndarray | None]:
    from wellsep._checks.arrays import check_data

    matrix, ids = reader.data(path, choice, space)
    return _scaled(check_data(matrix, name=path.name, sparse=True), scale), ids


def _scaled(X: Any, scale: bool) -> Any:
    if not scale:
        return X
    from scipy.sparse import issparse
    from sklearn.preprocessing import StandardScaler

    # Distances do not depend on the mean, and without it sparse data stay sparse.
    return StandardScaler(with_mean=not issparse(X)).fit_transform(X)


def _open_map(path: Path, method: str, scale: bool) -> np.ndarray:
    """The matrix in an npy file, left there and read in batches."""
    from wellsep._files.arrays import stored_npy

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


def _estimator(
    method: str,
    k: int | None,
    *,
    seed: int | None = None,
    restarts: int | None = None,
    neighbors: int = 5,
) -> Any:
    from wellsep._checks.arrays import check_choice, check_count

    check_choice("method", method, METHODS)
    options: dict[str, Any] = (
        {} if restarts is None else {"n_init": check_count("restarts", restarts)}
    )
    if method == "ward":
        from sklearn.cluster import AgglomerativeClustering

        return AgglomerativeClustering(2 if k is None else check_count("k", k))
    if method == "gaussian-mixture":
        from sklearn.mixture import GaussianMixture

        return GaussianMixture(
            1 if k is None else check_count("k", k), random_state=seed, **options
        )
    from wellsep.cluster.cf_means.estimator import CFMeans
    from wellsep.cluster.kmeans import KMeans
    from wellsep.cluster.lof_kmeans import LOFKMeans
    from wellsep.cluster.robust_kmeans import RobustKMeans

    count = 8 if k is None else check_count("k", k)
    if method == "lof-k-means":
        return LOFKMeans(count, n_neighbors=neighbors, random_state=seed, **options)
    if method == "robust-k-means":
        return RobustKMeans(count, random_state=seed, **options)
    if method == "k-means":
        return KMeans(count, random_state=seed, **{"n_init": 10, **options})
    return CFMeans(count, random_state=seed, **options)


def _write_labels(path: Path, labels: Any, ids: np.ndarray | None) -> None:
    from wellsep.tables.writing import write_array, write_table

    if path.suffix == ".npy":
        write_array(path, labels)
    else:
        named = {} if ids is None else {"id": ids.tolist()}
        write_table(path, {**named, "label": labels.tolist()})


def _write_centers(path: Path, estimator: Any) -> None:
    from wellsep.tables.writing import write_array

    found = getattr(estimator, "cluster_centers_", None)
    if found is None:
        found = estimator.means_
    write_array(path, found)
