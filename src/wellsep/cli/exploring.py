"""The command that goes from a data file to a clustering, its page and its labels."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

import wellsep as ws
from wellsep._files.limits import is_anndata
from wellsep._text.sentences import count, need_pandas
from wellsep.cli import options
from wellsep.cli.deliver import Outputs, label_columns
from wellsep.cli.options import ONE_CLUSTER, cache_folder, parse_range
from wellsep.cli.printing import print_columns, print_error, progress_bar
from wellsep.cli.reading import TableReader, named
from wellsep.cli.wording import print_sentences
from wellsep.runs import NoRuns
from wellsep.tables.reading import is_table, read_table

SHOWN = ("rank", "partition", "clusters", "score", "coverage")
MOST_SHOWN = 10  # candidates of the table
EMBEDDINGS = (".npy", ".npz", ".csv", ".tsv", ".parquet")  # files of a folder without runs


def explore(
    context: typer.Context,
    data: Annotated[
        Path,
        typer.Argument(
            help="Data file with one object per row (csv, tsv, parquet, npy, npz), AnnData's h5ad, "
            "or a folder of embeddings."
        ),
    ],
    report: options.Report = None,
    output: options.Labels = None,
    save: Annotated[
        Path | None,
        typer.Option(
            help="Save the result, labels.csv and all candidates in this folder; wellsep rank "
            "takes its folder runs."
        ),
    ] = None,
    as_json: options.Json = False,
    k: Annotated[
        str | None,
        typer.Option(
            "--k", "-k", help="Numbers of clusters: 2:12 or 3,5,8. By default 2 to √n and beyond."
        ),
    ] = None,
    methods: Annotated[
        list[str] | None,
        typer.Option(
            "--method",
            "-m",
            help="Of k-means, mixture, ward, hdbscan, spectral; with words or distances k-medoids, "
            "average. Repeat for more; all by default.",
        ),
    ] = None,
    embeddings: Annotated[
        list[str] | None,
        typer.Option("--embedding", "-e", help="Made besides the data: pca, umap, tsne. Repeat."),
    ] = None,
    budget: Annotated[
        float | None, typer.Option(help="Seconds after which no more candidates are begun.")
    ] = None,
    n_draws: Annotated[
        int, typer.Option("--draws", help="Half-samples that show how certain the answer is, or 0.")
    ] = 100,
    ids: options.Ids = None,
    no_header: options.NoHeader = False,
    columns: options.Columns = None,
    cache: options.Cache = None,
    jobs: options.Jobs = None,
    seed: options.Seed = 0,
) -> None:
    """Cluster data of which nothing is known: make many clusterings, judge them, keep the best.

    Ctrl-C ends the making of candidates, and those that are made are judged. The same command then
    goes on. The exit code is 3 if the answer is one cluster.

    \b
    Examples:
      wellsep explore data.csv --report page.html
      wellsep explore data.csv -o labels.csv --save found/
      wellsep explore data.h5ad --budget 120 --jobs 2
      wellsep explore embeddings/ --method k-means --method ward -k 2:20
    """
    outputs = Outputs(as_json, save, output, report, labels=True, context=context)
    outputs.check(data)
    X, names = _read(data, (ids, no_header, columns))
    with progress_bar() as told:
        found = ws.explore(
            X,
            methods=methods or None,
            embeddings=embeddings or None,
            k=None if k is None else parse_range(k),
            budget=budget,
            n_draws=n_draws,
            random_state=seed,
            n_jobs=jobs,
            cache=cache_folder(cache),
            progress=told,
        )
    names = found.ids if names is None else names
    outputs.deliver(found, _print_found, table=label_columns(found.labels_, names))
    if found.one_cluster:
        raise typer.Exit(ONE_CLUSTER)


def _print_found(found: Any) -> None:
    """Print the answer first, then the best candidates, then how certain it is."""
    lines, table = str(found).splitlines(), found.columns()
    print_sentences(lines[: len(found.remarks)], "explore")
    print_columns({name: table[name] for name in SHOWN if name in table}, most=MOST_SHOWN)
    print_sentences(lines[len(found.remarks) :], "explore")


def _read(path: Path, flags: tuple[Any, ...]) -> tuple[Any, Any]:
    """The data as `explore` takes them, and the names of the objects; words and gaps may be."""
    if path.is_dir() and not is_anndata(path):
        try:
            runs = ws.load_runs(path)
        except NoRuns:
            files = sorted(one for one in path.iterdir() if one.suffix in EMBEDDINGS)
            if not files:
                raise
            return _read_embeddings(TableReader(files, *flags), files)
        return runs, runs.ids
    reader = TableReader([path], *flags)
    if is_anndata(path):
        return path, None
    if is_table(path):
        table = read_table(path, None, reader.choices[path], gaps=True)
        plain = all(c.dtype.kind in "fiub" and (c == c).all() for c in table.columns)
        if not plain and table.columns:
            frame = need_pandas("a table of numbers").DataFrame(
                dict(zip(table.names, table.columns, strict=True)), index=table.ids
            )
            print_error(f"{path.name}: {count(len(frame), 'object')}, words or gaps among them.")
            return frame.replace("", None), table.ids
    X, names = reader.data(path)
    reader.tell()
    return named(reader, X), names


def _read_embeddings(reader: TableReader, files: list[Path]) -> tuple[dict[str, Any], Any]:
    """One embedding from each file, all in the order of the first one's ids."""
    read = {path: reader.data(path) for path in files}
    ids = read[files[0]][1]
    spaces = {
        path.stem: reader.in_order(ids, files[0].name, names, path, X)
        for path, (X, names) in read.items()
    }
    reader.tell()
    return spaces, ids
