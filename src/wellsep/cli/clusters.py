"""The command that says what is in each cluster."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from wellsep.cli.clustering import ScaleOption, _scaled
from wellsep.cli.printing import (
    TABLES,
    JsonOption,
    check_file,
    check_folder,
    print_columns,
    print_json,
    print_line,
    refuse_inputs,
    wrote,
)
from wellsep.cli.reading import ColumnsOption, IdsOption, NoHeaderOption, TableReader
from wellsep.cli.reading_runs import DataArgument, SpaceOption
from wellsep.cli.scoring import _read_all
from wellsep.cli.stability import _of_anndata, _one

if TYPE_CHECKING:
    from wellsep.evaluate import ClusterDescription


def describe(
    data: DataArgument,
    labels: Annotated[
        Path | None, typer.Argument(help="Label file with the clustering to describe.")
    ] = None,
    partitions: Annotated[
        str | None,
        typer.Option(
            "--labels",
            metavar="NAME",
            help="Column with the clustering to describe, of the label file or of the .h5ad.",
        ),
    ] = None,
    n_features: Annotated[
        int, typer.Option("--features", help="Number of features to show for each cluster.")
    ] = 5,
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
    space: SpaceOption = None,
    scale: ScaleOption = False,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Also write the table to this csv or parquet file."),
    ] = None,
    save: Annotated[Path | None, typer.Option(help="Save all results in this folder.")] = None,
    ids: IdsOption = None,
    no_header: NoHeaderOption = False,
    columns: ColumnsOption = None,
    as_json: JsonOption = False,
) -> None:
    """Say what is in each cluster: size, quality, features that differ, objects to look at.

    With --scale, distances use scaled columns; features are described as they are in the file.

    \b
    Examples:
      wellsep describe data.csv labels.csv
      wellsep describe data.csv labels.csv --labels k3 --scale --json
      wellsep describe cells.csv cells.csv --ids barcode --columns 'pc*' --labels leiden
      wellsep describe data.h5ad --labels leiden_1.0 --space X_pca -o clusters.csv
    """
    import wellsep as ws
    from wellsep.cluster.resampling.result import Stability

    refuse_inputs("output", output, data, labels)
    check_file("output", output, TABLES)
    check_folder("save", save)
    record = None if stability is None else Stability.load(stability)
    reader = TableReader()
    files = [] if labels is None else [labels]
    # --labels chooses among the columns of the label file, or of AnnData.
    pattern = partitions if files else None
    X, found = _read_all(reader, data, files, ids, no_header, columns, pattern, space)
    if not files:
        found = _of_anndata(data, partitions, space)
    result = ws.describe_clusters(
        _scaled(X, scale),
        _one(found),
        reader.features,
        stability=record,
        features=X,
        ids=reader.objects,
        noise=noise,
    )
    reader.tell()
    if as_json:
        print_json(result.to_dict(n_features))
    else:
        print_description(result, n_features)
    if save is not None:
        result.save(save)
        wrote(save)
    if output is not None:
        from wellsep.tables.writing import write_table

        write_table(output, result.columns())
        wrote(output)


def print_description(result: ClusterDescription, n_features: int = 5) -> None:
    """Print the clusters, their features, and the same in sentences."""
    table = result.columns()
    for name in ("rule", "precision", "recall"):
        table.pop(name)  # the sentences have them
    print_columns(table)
    if result.features:
        print_columns(result.feature_columns(most=n_features))
    print_line(result.explain())
