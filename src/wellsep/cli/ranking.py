"""The command that ranks runs."""

from __future__ import annotations

import contextlib
import logging
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

import wellsep as ws
from wellsep._files.maps import maps_held
from wellsep._text.sentences import cell, printable
from wellsep.adapters import load_any
from wellsep.cli import options
from wellsep.cli.deliver import Outputs, check_target, wrote
from wellsep.cli.options import cache_folder, in_computing, parse_ace, parse_index
from wellsep.cli.printing import (
    ALL_ROWS,
    print_columns,
    print_table,
    progress_bar,
    rows_shown,
    that_fit,
    told_when_interrupted,
    with_short_names,
)
from wellsep.cli.reading import TableReader, read_objects, read_truth, truth_file
from wellsep.cli.wording import print_sentences
from wellsep.compute.engine.dask.client import describe, open_client

Pattern = str | None
# The flags that matter most stand before the panels.
which_runs = partial(typer.Option, rich_help_panel="Which runs")
how_to_judge = partial(typer.Option, rich_help_panel="How to judge")
to_write = partial(typer.Option, rich_help_panel="What to write")
MOST_EMBEDDINGS = 10  # rows of the second table
LAST_COLUMN = "alpha_req"  # of the second table


def rank(
    context: typer.Context,
    source: Annotated[
        list[str],
        typer.Argument(help="Folders of runs, .npz, .h5ad, tables of labels, MLflow or Optuna."),
    ],
    index: Annotated[
        list[str] | None,
        typer.Option("--index", "-i", help="Validity index. Repeat for more: the first decides."),
    ] = None,
    truth: options.Truth = None,
    report: options.Report = None,
    save: Annotated[
        Path | None,
        typer.Option(help="Save all results in this folder, for wellsep explain and report."),
    ] = None,
    as_json: options.Json = False,
    spaces: Annotated[Pattern, which_runs(help="Use only these embeddings: X_pca,X_scvi")] = None,
    labels: Annotated[Pattern, which_runs(help="Rank only these clusterings: 'leiden_*'")] = None,
    pairs: Annotated[
        Pattern,
        which_runs(
            metavar="PATTERN", help="How a clustering names its embedding: 'leiden_{space}_*'"
        ),
    ] = None,
    max_spaces: Annotated[
        int | None, which_runs(help="Score in at most so many embeddings, drawn at random.")
    ] = None,
    judge: Annotated[
        str,
        how_to_judge(
            help="Which method decides. ace: embeddings that agree. consensus: clusterings vote. "
            "auto: consensus, or the index where runs are few."
        ),
    ] = "auto",
    noise: Annotated[
        str,
        how_to_judge(
            help="The labels -1, -2 and -3. penalize: noise is not scored, and lowers the score by "
            "its share. exclude: not scored. Also cluster, singletons or error."
        ),
    ] = "penalize",
    n_draws: Annotated[
        int,
        how_to_judge("--draws", help="Half-samples that show how certain the ranking is, or 0."),
    ] = 100,
    input_data: Annotated[
        Path | None,
        how_to_judge("--input", help="Data the runs were made from: scores there are a baseline."),
    ] = None,
    ace: Annotated[
        list[str] | None,
        how_to_judge(
            metavar="KEY=VALUE",
            help="A switch of ACE, such as dip=no or grouping=dbscan; repeat for more. Also "
            "dip_alpha, projection, alpha, correlation, eps, links, outliers, convention.",
        ),
    ] = None,
    layout: Annotated[
        str, to_write(help="Drawing on the page: umap, tsne, pca, or auto.")
    ] = "auto",
    write_back: Annotated[
        bool,
        to_write(
            "--write-back", help="Write the answer into the .h5ad: obs wellsep_best, uns wellsep."
        ),
    ] = False,
    objects: options.Objects = None,
    ids: options.Ids = None,
    no_header: options.NoHeader = False,
    columns: options.Columns = None,
    cache: options.Cache = None,
    device: Annotated[
        str | None, in_computing(help="Device to compute on: cpu, cuda or cuda:N.")
    ] = None,
    n_jobs: Annotated[int | None, in_computing("--jobs", help="Number of threads.")] = None,
    scheduler: Annotated[
        str | None,
        in_computing(help="Dask scheduler whose workers do the scoring: tcp://host:8786."),
    ] = None,
    random_state: Annotated[
        int, in_computing("--seed", help="Random seed of the half-samples.")
    ] = 0,
) -> None:
    """Rank clusterings without true labels; say why, and how certain the ranking is.

    Every method here can be wrong in the same way, and only runs that are given can be ranked.
    After an interruption the same command continues; finished embeddings are kept.

    \b
    Examples:
      wellsep rank runs/ --report page.html
      wellsep rank runs/ -i silhouette -i calinski_harabasz --truth labels.npy --save result/
      wellsep rank data.h5ad --labels 'leiden_*' --truth cell_type --write-back

    Words in the table: a partition is a clustering, a space an embedding; wellsep explain --words
    """
    kept = cache_folder(cache)
    dip, switches = parse_ace(ace)
    with (
        told_when_interrupted(lambda: _what_is_kept(kept)),
        contextlib.nullcontext() if scheduler is None else _cluster(scheduler) as client,
        maps_held(),
    ):
        outputs = Outputs(as_json, save, report=report, context=context)
        outputs.check(*source, truth, input_data)
        if write_back:
            if len(source) > 1:
                raise ValueError(f"write_back must have one source, got {len(source)}.")
            check_target("write_back", Path(source[0]), (".h5ad",))
        runs = load_any(source, spaces=spaces, labels=labels, pairs=pairs)
        files = [truth_file(truth, source), input_data]
        reader = TableReader(files, ids, no_header, columns)
        classes = read_truth(reader, truth, source, runs)
        about = read_objects(reader, objects, runs)
        X = reader.data_of(runs, input_data)
        with progress_bar(phase) as told:
            judgement = ws.judge(
                runs,
                [parse_index(text) for text in index or ["silhouette"]],
                judge=judge,
                noise=noise,
                X=X,
                n_draws=n_draws,
                dip=dip,
                # What a page or a saved result is drawn with; a table on the screen needs none.
                layout=layout if report is not None or save is not None else None,
                max_spaces=max_spaces,
                ace=switches,
                cache=kept,
                device=device,
                n_jobs=n_jobs,
                scheduler=client,
                progress=told,
                random_state=random_state,
            )
        reader.tell()
        known = None if classes is None else ws.agreement(judgement.ranking, runs, classes)
        beside = {} if known is None else {"agreement_with_truth": known.columns()}

        def show(judgement: Any) -> None:
            print_judgement(judgement)
            if known is not None:
                print_agreement(known)

        outputs.deliver(
            judgement,
            show,
            findings=judgement.to_dict() | beside,
            runs=runs,
            truth=classes,
            objects=about,
        )
        if write_back:
            ws.adapters.write_anndata(judgement, source[0])
            wrote(Path(source[0]))


def _what_is_kept(cache: Path | None) -> str:
    if cache is None or not cache.is_dir():
        return "Interrupted. Nothing was kept."
    return f"Interrupted. Finished embeddings are kept in {cache}. Repeat the command to continue."


@contextlib.contextmanager
def _cluster(address: str) -> Iterator[Any]:
    """Connect to the scheduler, and print the address of its dashboard."""
    with open_client(address) as client:
        sys.stderr.write(describe(client) + "\n")
        # We report a lost scheduler in one sentence; Dask would add a traceback.
        logging.getLogger("distributed.client").setLevel(logging.CRITICAL)
        yield client


def phase(what: str) -> str:
    """The words before the bar, for what `judge` says it works on."""
    named = {"half-samples": "Judging half-samples", "pairs": "Comparing partitions"}
    return named.get(what, "Scoring spaces")


def print_judgement(judgement: Any) -> None:
    """Print the verdict first, then the table, then how it came about."""
    print_sentences(judgement.verdict.sentences(), "rank")
    print_columns(
        with_params(judgement.ranking.short_columns()),
        title=f"Ranking by {judgement.ranking.title}",
        most=rows_shown(),
        rest=ALL_ROWS,
    )
    print_sentences(judgement.explanation, "rank")
    if judgement.clusters is not None:
        print_sentences(judgement.clusters.sentences(), "rank")
    print_embeddings(judgement)


def print_embeddings(judgement: Any) -> None:
    """Print the best embeddings, where there are several."""
    found = judgement.embeddings
    if found is None or len(found.embeddings) < 2:
        return
    print_sentences(found.sentences(), "rank")
    table = found.columns()
    names = list(table)[: list(table).index(LAST_COLUMN) + 1]
    chosen = {name: table[name][:MOST_EMBEDDINGS] for name in names}
    shown = that_fit(with_short_names(chosen), over=True)
    left = len(found.embeddings) - MOST_EMBEDDINGS
    more = f" {left} more are in --json and --report." if left > 0 else ""
    print_table(
        shown,
        title="Embeddings",
        caption="agreement: rank correlation of its scores with the vote of the clusterings. "
        f"favourite, score: the clustering that it scores best.{more}",
    )


def with_params(table: dict[str, list[Any]]) -> dict[str, list[Any]]:
    """Put the parameters that differ beside the names, where the names do not tell them.

    >>> with_params({"rank": [1, 2], "partition": ["trial-1", "trial-0"], "score": [0.5, 0.4],
    ...              "params": [{"k": 3, "lr": 0.1}, {"k": 2, "lr": 0.1}]})["params"]
    ['k=3', 'k=2']
    """
    rows = table.pop("params", [])
    names = [key for key in dict.fromkeys(key for row in rows for key in row)]
    varied = [key for key in names if len({str(row.get(key)) for row in rows}) > 1]
    told = all(
        str(row.get(key)) in name
        for name, row in zip(table["partition"], rows, strict=False)
        for key in varied
    )
    if told:
        return table
    text = [cell({key: row[key] for key in varied if key in row}, 5) for row in rows]
    first = {key: table[key] for key in ("rank", "partition")}
    return {**first, "params": text, **{k: v for k, v in table.items() if k not in first}}


def print_agreement(known: Any) -> None:
    table = known.columns()
    table["pick"] = [printable(name, 30) for name in table["pick"]]
    first = ("ranking", *(name for name in table if name.endswith("_of_pick")), "pick")
    columns = {name: table[name] for name in (*first, *table)}
    print_columns(columns, title=known.heading)
