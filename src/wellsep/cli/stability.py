"""The command that says how stable a clustering is."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wellsep.cli.clustering import (
    MethodOption,
    ScaleOption,
    SeedOption,
    _estimator,
    _scaled,
)
from wellsep.cli.printing import (
    PAGES,
    TABLES,
    JsonOption,
    check_file,
    check_folder,
    print_columns,
    print_json,
    print_line,
    progress,
    refuse_inputs,
    wrote,
)
from wellsep.cli.reading import ColumnsOption, IdsOption, NoHeaderOption, TableReader, named
from wellsep.cli.reading_runs import DataArgument, SpaceOption, is_anndata
from wellsep.cli.scoring import _read_all, _read_columns
from wellsep.cli.wording import command_of, flags_of, in_shell_words

if TYPE_CHECKING:
    from wellsep.cluster.resampling.result import Stability


def stability(
    context: typer.Context,
    data: DataArgument,
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
            help="Number of clusters of the method. Without it the labels are judged by "
            "--stand-in.",
        ),
    ] = None,
    method: MethodOption = "k-means",
    partitions: Annotated[
        str | None,
        typer.Option(
            "--labels",
            metavar="NAME",
            help="Column with the clustering to judge, of the label file or of the .h5ad.",
        ),
    ] = None,
    n_draws: Annotated[int, typer.Option("--draws", help="Number of draws.")] = 50,
    subsample: Annotated[
        float | None,
        typer.Option(
            help="Share of the objects to draw without replacement, such as 0.5. By default a "
            "bootstrap."
        ),
    ] = None,
    n_splits: Annotated[
        int,
        typer.Option(
            "--splits", help="Splits into halves for the prediction strength; 0 leaves it out."
        ),
    ] = 10,
    stand_in: Annotated[
        str,
        typer.Option(
            help="What judges labels without a method: nearest-neighbours or nearest-mean."
        ),
    ] = "nearest-neighbours",
    restarts: Annotated[
        int | None, typer.Option(help="Number of starts of each fit; the best result is kept.")
    ] = None,
    n_neighbors: Annotated[
        int,
        typer.Option(
            "--neighbors",
            help="Number of neighbours per object, for lof-k-means and nearest-neighbours.",
        ),
    ] = 5,
    space: SpaceOption = None,
    scale: ScaleOption = False,
    seed: SeedOption = 0,
    n_jobs: Annotated[
        int | None, typer.Option("--jobs", help="Number of fits to run at the same time.")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Also write the table to this csv or parquet file."),
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
    """Say how often each cluster is found again in random samples of the objects.

    Each draw is a random sample that is clustered again. A cluster dissolves in a draw if its
    Jaccard similarity to the most similar cluster is at most 0.5, and is recovered if it is above
    0.75. Labels without -k are judged by a simple classifier (--stand-in) on the objects that were
    not drawn.

    \b
    Examples:
      wellsep stability data.csv -k 3
      wellsep stability data.csv -k 8 --method ward --draws 100 --scale --json
      wellsep stability data.csv labels.csv --labels k3 -o stability.csv
      wellsep stability data.csv -k 3 --report page.html
      wellsep stability data.h5ad --space X_pca --labels leiden_1.0
    """
    import wellsep as ws

    refuse_inputs("output", output, data, labels)
    refuse_inputs("report", report, data, labels)
    check_file("output", output, TABLES)
    check_file("report", report, PAGES)
    check_folder("save", save)
    given = labels is not None or partitions is not None
    if n_clusters is None and not given:
        raise ValueError(
            "n_clusters must be given where there are no labels, got neither; "
            "say -k 3, or name a label file after the data file."
        )
    reader = TableReader()
    files = [] if labels is None else [labels]
    # --labels chooses among the columns of the label file, or of AnnData.
    pattern = partitions if files else None
    X, found = _read_all(reader, data, files, ids, no_header, columns, pattern, space)
    if given and not files:
        found = _of_anndata(data, partitions, space)
    X = _scaled(X, scale)
    model = None
    if n_clusters is not None:
        options = {"restarts": restarts, "neighbors": n_neighbors}
        model = _estimator(method, n_clusters, **options)  # type: ignore[arg-type]
    with progress("Clustering draws", n_draws) as advance:
        result = ws.stability(
            model,
            X,
            _one(found) if given else None,
            n_draws=n_draws,
            subsample=subsample,
            n_splits=n_splits,
            stand_in=stand_in,
            n_neighbors=n_neighbors,
            random_state=seed,
            n_jobs=n_jobs,
            progress=lambda done, total, what: advance(1 if done else 0),
        )
    reader.tell()
    if as_json:
        print_json(result.to_dict())
    else:
        print_stability(result)
    if save is not None:
        result.save(save)
        wrote(save)
    if output is not None:
        from wellsep.tables.writing import write_table

        write_table(output, result.columns())
        wrote(output)
    if report is not None:
        ws.render_report(result, report, runs=named(reader, X), command=command_of(context))
        wrote(report)


def _of_anndata(data: Path, partitions: str | None, space: str | None) -> dict[str, Any]:
    if not is_anndata(data):
        raise ValueError(
            f"labels must be a file for data without columns of labels, got {data.name} alone; "
            "name the file after the data file."
        )
    return _read_columns(data, partitions, space)


def _one(found: dict[str, Any]) -> Any:
    from wellsep._text.sentences import quoted

    if len(found) != 1:
        raise ValueError(
            f"labels must be one clustering, got {len(found)}: {quoted(found, 4)}; "
            "name one with --labels."
        )
    return next(iter(found.values()))


def print_stability(result: Stability) -> None:
    """Print the answer first, then the table, then a sentence for each cluster."""
    flags = flags_of("stability")
    answer, *others = (in_shell_words(line, flags) for line in result.sentences())
    print_line(answer)
    table = result.columns()
    if len(set(table["draws"])) == 1:
        table.pop("draws")
    print_columns(table)
    for line in others:
        print_line(line)
