"""The commands that look at clusters: what is in them, how stable they are, how they split."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

import wellsep as ws
from wellsep._files.limits import is_anndata
from wellsep._files.records import MANIFEST
from wellsep.adapters import load_any
from wellsep.adapters.anndata import clusterings_of
from wellsep.cli import options
from wellsep.cli.deliver import Outputs
from wellsep.cli.options import parse_settings
from wellsep.cli.printing import (
    ALL_ROWS,
    print_columns,
    print_error,
    print_line,
    progress_bar,
    rows_shown,
)
from wellsep.cli.reading import TableReader, named
from wellsep.cli.wording import print_sentences


def describe(
    context: typer.Context,
    data: options.Data,
    labels: Annotated[
        Path | None, typer.Argument(help="Label file with the clustering to describe.")
    ] = None,
    partitions: options.Column = None,
    stability: Annotated[
        Path | None,
        typer.Option(help="Folder that wellsep stability --save wrote for the same labels."),
    ] = None,
    noise: Annotated[
        str,
        typer.Option(
            help="How to treat the labels -1, -2 and -3, which mean noise. exclude: in no "
            "cluster. Also cluster, singletons or error."
        ),
    ] = "exclude",
    space: options.Space = None,
    scale: options.Scale = False,
    output: options.Table = None,
    report: options.Report = None,
    save: options.Keep = None,
    ids: options.Ids = None,
    no_header: options.NoHeader = False,
    columns: options.Columns = None,
    as_json: options.Json = False,
) -> None:
    """Say what is in each cluster: size, quality, features that differ, objects to look at.

    With --scale, distances use scaled columns; features are described as they are in the file.

    \b
    Examples:
      wellsep describe data.csv labels.csv
      wellsep describe data.csv labels.csv --labels k3 --scale --json
      wellsep describe cells.csv cells.csv --ids barcode --columns 'pc*' --labels leiden
      wellsep describe data.h5ad --labels leiden_1.0 --space X_pca -o clusters.csv
      wellsep describe data.csv labels.csv --report page.html
    """
    outputs = Outputs(as_json, save, output, report, context=context)
    outputs.check(data, labels)
    record = None if stability is None else ws.records.Stability.load(stability)
    reader = TableReader([data], ids, no_header, columns, labels=[labels], partitions=partitions)
    X, clusters = reader.data_and_labels(data, space)
    compared = ws.cluster.scaled(X, scale)
    result = ws.describe_clusters(
        compared,
        clusters,
        reader.features,
        stability=record,
        features=X,
        ids=reader.objects,
        noise=noise,
    )
    reader.tell()
    outputs.deliver(result, print_description, runs=named(reader, compared), labels=clusters)


def print_description(result: ws.records.ClusterDescription) -> None:
    """Print the clusters, their features, and the same in sentences."""
    table = result.columns()
    for name in ("rule", "precision", "recall"):
        table.pop(name)  # the sentences have them
    print_columns(table)
    if result.features:
        print_columns(result.feature_columns(most=5))
    print_line(result.explain())


def stability(
    context: typer.Context,
    data: options.Data,
    labels: Annotated[
        Path | None,
        typer.Argument(
            help="Label file with the clustering to judge. By default the method's own clustering."
        ),
    ] = None,
    n_clusters: Annotated[
        int | None,
        typer.Option(
            "--clusters",
            "-k",
            help="Number of clusters of the method. Without it a simple classifier judges the "
            "labels.",
        ),
    ] = None,
    method: options.Method = "k-means",
    partitions: options.Column = None,
    n_draws: Annotated[int, typer.Option("--draws", help="Number of random samples.")] = 50,
    subsample: Annotated[
        float | None,
        typer.Option(
            help="Share of the objects to draw without replacement, such as 0.5. By default a "
            "bootstrap."
        ),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="A parameter of the method, such as n_init=20; or n_splits=0, which leaves the "
            "prediction strength out; or of the classifier that judges labels without -k: "
            "stand_in=nearest-mean, n_neighbors=10. Repeat for more.",
        ),
    ] = None,
    space: options.Space = None,
    scale: options.Scale = False,
    seed: options.Seed = 0,
    n_jobs: options.Jobs = None,
    output: options.Table = None,
    report: options.Report = None,
    save: options.Save = None,
    ids: options.Ids = None,
    no_header: options.NoHeader = False,
    columns: options.Columns = None,
    as_json: options.Json = False,
) -> None:
    """Say how often each cluster is found again in random samples of the objects.

    Each random sample is clustered again. A cluster dissolves in a sample if its
    Jaccard similarity to the most similar cluster is at most 0.5, and is recovered if it is above
    0.75. Labels without -k are judged by a simple classifier on the objects that were not drawn.

    \b
    Examples:
      wellsep stability data.csv -k 3
      wellsep stability data.csv -k 8 --method ward --draws 100 --scale --json
      wellsep stability data.csv labels.csv --labels k3 -o stability.csv
      wellsep stability data.csv -k 3 --report page.html
      wellsep stability data.h5ad --space X_pca --labels leiden_1.0
    """
    outputs = Outputs(as_json, save, output, report, context=context)
    outputs.check(data, labels)
    given = labels is not None or partitions is not None
    if n_clusters is None and not given:
        raise ValueError(
            "n_clusters must be given where there are no labels, got neither; "
            "say -k 3, or name a label file after the data file."
        )
    values = parse_settings(settings)
    # With a method, n_neighbors is its parameter; without one, the classifier's.
    not_of_method = ("n_splits", "stand_in", *(("n_neighbors",) if n_clusters is None else ()))
    own: dict[str, Any] = {name: values.pop(name) for name in not_of_method if name in values}
    if n_clusters is None and values:
        raise ValueError(
            f"settings must be left out without a method, got {', '.join(values)}; say -k 3."
        )
    model = (
        None if n_clusters is None else ws.cluster.clusterer(method, n_clusters, settings=values)
    )
    reader = TableReader([data], ids, no_header, columns, labels=[labels], partitions=partitions)
    if given:
        X, judged = reader.data_and_labels(data, space)
    else:
        X, judged = reader.data(data, space)[0], None
    compared = ws.cluster.scaled(X, scale)
    with progress_bar(lambda what: "Clustering samples") as told:
        result = ws.stability(
            model,
            compared,
            judged,
            n_draws=n_draws,
            subsample=subsample,
            random_state=seed,
            n_jobs=n_jobs,
            **own,
            progress=told,
        )
    reader.tell()
    page = {"runs": named(reader, compared), "features": named(reader, X)}
    outputs.deliver(result, print_stability, **page)


def print_stability(result: ws.records.Stability) -> None:
    """Print the answer first, then the table, then a sentence for each cluster."""
    answer, *others = result.sentences()
    print_sentences([answer], "stability")
    table = result.columns()
    if len(set(table["draws"])) == 1:
        table.pop("draws")
    print_columns(table)
    print_sentences(others, "stability")


def resolutions(
    context: typer.Context,
    source: Annotated[
        str,
        typer.Argument(
            help="Clusterings of the same objects: a table of labels, an .h5ad file, a folder of "
            "runs, or a folder written by choose-k --save."
        ),
    ],
    labels: Annotated[
        str | None,
        typer.Option(
            "--labels", metavar="PATTERN", help="Use only these clusterings: 'leiden_*' or k2,k3,k4"
        ),
    ] = None,
    output: options.Table = None,
    report: options.Report = None,
    save: options.Keep = None,
    as_json: options.Json = False,
) -> None:
    """Show which clusters split into which as K grows: the resolution tree.

    Clusterings are put in the order of their number of clusters. No data is needed, only labels.

    \b
    Examples:
      wellsep resolutions labels.csv
      wellsep resolutions data.h5ad --labels 'leiden_*' -o links.csv
      wellsep resolutions chosen/ --report page.html
    """
    outputs = Outputs(as_json, save, output, report, context=context)
    outputs.check(source)
    tree = ws.resolution_tree(_clusterings(source, labels), None if is_anndata(source) else labels)
    outputs.deliver(tree, print_tree)


def print_tree(tree: ws.records.ResolutionTree) -> None:
    """Print the clusters, each below the one that most of its objects come from, then the words.

    A terminal shows the first 40 rows.
    """
    rows = list(tree.branches())
    columns = ("cluster", "clustering", "objects", "from the one above")
    table = dict(zip(columns, map(list, zip(*rows, strict=True)), strict=True))
    print_columns(table, most=rows_shown(), rest=ALL_ROWS)
    print_line(tree.explain())


def _clusterings(source: str, labels: str | None) -> Any:
    """The clusterings of a source; a saved choice of K is one."""
    if (Path(source) / MANIFEST).is_file():
        return ws.records.ChosenK.load(source)
    if is_anndata(source):
        runs = clusterings_of(source, labels)
    else:
        runs = load_any(source)
    for note in runs.notes:
        print_error(note)
    return runs
