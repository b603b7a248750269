"""The commands that rank a folder of runs and explain a saved ranking."""

from __future__ import annotations

import contextlib
import logging
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from wellsep.cli.printing import (
    PAGES,
    AllOption,
    JsonOption,
    check_file,
    check_folder,
    print_json,
    print_line,
    refuse_inputs,
    show_progress,
    told_when_interrupted,
    wrote,
)
from wellsep.cli.ranking_answers import print_agreement, print_judgement
from wellsep.cli.reading import (
    ColumnsOption,
    IdsOption,
    NoHeaderOption,
    ObjectsOption,
    TableReader,
    choices,
    named,
    read_objects,
    read_truth,
    truth_file,
)
from wellsep.cli.reading_runs import parse_alpha
from wellsep.cli.wording import command_of, flags_of, in_shell_words

Pattern = str | None


def rank(
    context: typer.Context,
    source: Annotated[
        list[str],
        typer.Argument(
            help="The runs: folders with their subfolders, .npz, .h5ad, a table of label columns, "
            "MLflow or Optuna stores."
        ),
    ],
    index: Annotated[
        list[str] | None,
        typer.Option(
            "--index",
            "-i",
            help="Validity index. Repeat for more: the first decides, the others are shown.",
        ),
    ] = None,
    report: Annotated[
        Path | None, typer.Option(help="Write the result as one HTML page to this file.")
    ] = None,
    save: Annotated[
        Path | None,
        typer.Option(help="Save all results in this folder, for wellsep explain and report."),
    ] = None,
    truth: Annotated[
        str | None,
        typer.Option(
            metavar="FILE|COLUMN",
            help="True classes: a file, or a column of the .h5ad. They are compared with the "
            "finished ranking.",
        ),
    ] = None,
    input_data: Annotated[
        Path | None,
        typer.Option(
            "--input",
            help="Data the runs were made from. Partitions are scored there too, as a baseline.",
        ),
    ] = None,
    layout: Annotated[
        str,
        typer.Option(
            help="How the page draws the objects: auto, umap, tsne or pca. auto is UMAP where it "
            "is installed, else t-SNE."
        ),
    ] = "auto",
    objects: ObjectsOption = None,
    spaces: Annotated[Pattern, typer.Option(help="Use only these embeddings: X_pca,X_scvi")] = None,
    labels: Annotated[Pattern, typer.Option(help="Rank only these clusterings: 'leiden_*'")] = None,
    pairs: Annotated[
        str | None,
        typer.Option(
            metavar="PATTERN",
            help="In which embedding a clustering was made: 'leiden_{space}_*' pairs leiden_pca_1 "
            "with X_pca.",
        ),
    ] = None,
    write_back: Annotated[
        bool,
        typer.Option(
            "--write-back", help="Write the answer into the .h5ad: obs wellsep_best, uns wellsep."
        ),
    ] = False,
    name: Annotated[
        str | None, typer.Option(help="Name of the MLflow experiment or Optuna study.")
    ] = None,
    artifacts: Annotated[
        str | None, typer.Option(help="Folder with the files of an Optuna study.")
    ] = None,
    noise: Annotated[
        str,
        typer.Option(
            help="How to treat the labels -1, -2 and -3, which mean noise. priced: not counted, "
            "and the score falls. exclude: not counted. Also cluster, singletons or error."
        ),
    ] = "priced",
    judge: Annotated[
        str,
        typer.Option(
            help="Who decides. ace: the embeddings that agree. consensus: the clusterings vote for "
            "each other. auto: consensus where the number of clusters varies, else ace."
        ),
    ] = "auto",
    n_draws: Annotated[
        int,
        typer.Option(
            "--draws",
            help="Number of half-samples that show how certain the ranking is, or 0.",
        ),
    ] = 100,
    max_spaces: Annotated[
        int | None,
        typer.Option(
            help="Score in at most so many embeddings, drawn at random; by default in all."
        ),
    ] = None,
    dip: Annotated[
        bool, typer.Option(help="Leave out embeddings in which the dip test finds one mode only.")
    ] = True,
    dip_alpha: Annotated[float, typer.Option(help="Significance level of the dip test.")] = 0.05,
    projection: Annotated[
        str,
        typer.Option(
            help="What the dip test is applied to: pca, pca-scaled, components or distances."
        ),
    ] = "pca",
    alpha: Annotated[
        str,
        typer.Option(
            help="Significance level of the test whether two embeddings rank alike, or none."
        ),
    ] = "0.1",
    correlation: Annotated[
        str, typer.Option(help="Rank correlation between embeddings: spearman or kendall.")
    ] = "spearman",
    grouping: Annotated[
        str, typer.Option(help="How embeddings are grouped: hdbscan or dbscan.")
    ] = "hdbscan",
    eps: Annotated[
        float, typer.Option(help="Largest distance between neighbours in dbscan.")
    ] = 0.1,
    links: Annotated[
        str, typer.Option(help="How embeddings of a group are weighted: pagerank or hits.")
    ] = "pagerank",
    outliers: Annotated[
        str,
        typer.Option(help="Embeddings outside all groups: drop, or compete with the best group."),
    ] = "drop",
    convention: Annotated[
        str | None, typer.Option(help='With "ace", compute the indices as the ACE paper did.')
    ] = None,
    cache: Annotated[
        Path | None,
        typer.Option(
            help="Folder that keeps the scores of finished embeddings.", envvar="WELLSEP_CACHE"
        ),
    ] = None,
    no_cache: Annotated[
        bool, typer.Option("--no-cache", help="Compute everything again and keep no scores.")
    ] = False,
    device: Annotated[
        str | None, typer.Option(help="Device to compute on: cpu, cuda or cuda:N.")
    ] = None,
    n_jobs: Annotated[int | None, typer.Option("--jobs", help="Number of threads.")] = None,
    scheduler: Annotated[
        str | None,
        typer.Option(help="Dask scheduler whose workers do the scoring: tcp://host:8786."),
    ] = None,
    random_state: Annotated[
        int, typer.Option("--seed", help="Random seed of the half-samples.")
    ] = 0,
    ids: IdsOption = None,
    no_header: NoHeaderOption = False,
    columns: ColumnsOption = None,
    all_rows: AllOption = False,
    as_json: JsonOption = False,
) -> None:
    """Rank clusterings without true labels; say why, and how certain the ranking is.

    All judges can be wrong together, and agreement between clusterings sees no
    number of clusters beyond those that were tried.

    After an interruption the same command continues; finished embeddings are kept.

    \b
    Examples:
      wellsep rank runs/
      wellsep rank runs/ -i silhouette -i calinski_harabasz --report page.html
      wellsep rank data.h5ad --spaces X_pca --labels 'leiden_*' --json > out.json
      wellsep rank runs/ --truth labels.npy --save result/
      wellsep rank labels.csv
      wellsep rank runs-dec/ runs-idec/
      wellsep rank runs/ --truth cells.csv --ids barcode --columns cell_type
      wellsep rank data.h5ad --labels 'leiden_*' --truth cell_type --write-back
      wellsep rank runs/ --scheduler tcp://127.0.0.1:8786

    \b
    Words in the table:
      partition             a clustering: one label per object
      space                 an embedding: where a clustering is scored
      rank_own_space        rank by the score in the embedding it was made in
      rank_mean_admitted    rank by the mean over embeddings that pass the test
      rank_mean_all         rank by the mean over all embeddings
      rank_ace              rank by ACE, where the consensus decides
      rank_consensus        rank by agreement with the others, weighed by ACE
      rank_plain_consensus  the same with all clusterings weighed alike
      rank_low, rank_high   lowest and highest rank in 90 % of the half-samples
      p_best                share of the half-samples in which it is best
    """
    import wellsep as ws
    from wellsep.adapters import load_any
    from wellsep.cli.scoring import parse_index

    kept = None if no_cache else cache or default_cache()
    with told_when_interrupted(lambda: _what_is_kept(kept)), _cluster(scheduler) as client:
        for option, target in (("report", report), ("save", save)):
            refuse_inputs(option, target, *source, truth, input_data)
        check_file("report", report, PAGES)
        check_folder("save", save)
        if write_back:
            if len(source) > 1:
                raise ValueError(f"write_back must have one source, got {len(source)}.")
            check_file("write_back", Path(source[0]), (".h5ad",))
        runs = load_any(
            source, spaces=spaces, labels=labels, name=name, artifacts=artifacts, pairs=pairs
        )
        files = [path for path in (truth_file(truth, source), input_data) if path is not None]
        flags = choices(files, ids=ids, no_header=no_header, columns=columns)
        said = dict(zip(files, flags, strict=True))
        reader = TableReader()
        classes = None if truth is None else read_truth(reader, truth, source, said, runs)
        about = None if objects is None else read_objects(objects, runs)
        X = None
        if input_data is not None:
            X = named(reader, reader.data(input_data, said[input_data])[0])
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
            ace={
                "dip_alpha": dip_alpha,
                "projection": projection,
                "alpha": parse_alpha(alpha),
                "correlation": correlation,
                "grouping": grouping,
                "eps": eps,
                "links": links,
                "outliers": outliers,
                "convention": convention,
            },
            cache=kept,
            device=device,
            n_jobs=n_jobs,
            scheduler=client,
            progress=_show_progress(),
            random_state=random_state,
        )
        reader.tell()
        known = None if classes is None else ws.agreement(judgement.ranking, runs, classes)
        findings = judgement.to_dict() | (
            {} if known is None else {"agreement_with_truth": known.table()}
        )
        # Printed first: whatever happens to the files, the ranking is not lost.
        if as_json:
            print_json(findings)
        else:
            print_judgement(judgement, all_rows=all_rows)
            if known is not None:
                print_agreement(known)
        sys.stdout.flush()
        if save is not None:
            judgement.save(save)
            wrote(save)
        if report is not None:
            ws.render_report(
                judgement,
                report,
                runs=runs,
                truth=classes,
                objects=about,
                command=command_of(context),
            )
            wrote(report)
        if write_back:
            ws.adapters.write_anndata(judgement, source[0])
            wrote(Path(source[0]))


def explain(
    result: Annotated[Path, typer.Argument(help="Folder written by wellsep rank --save.")],
    as_json: JsonOption = False,
) -> None:
    """Explain a saved ranking: what was left out and why, what decided, how certain it is.

    \b
    Examples:
      wellsep rank runs/ --save result/
      wellsep explain result/
    """
    from wellsep.evaluate import Judgement

    judgement = Judgement.load(result)
    if as_json:
        print_json(judgement.to_dict())
        return
    print_line(in_shell_words(judgement.explain(), flags_of("rank")))


def _what_is_kept(cache: Path | None) -> str:
    if cache is None or not cache.is_dir():
        return "Interrupted. Nothing was kept."
    return f"Interrupted. Finished spaces are kept in {cache}. Repeat the command to continue."


@contextlib.contextmanager
def _cluster(address: str | None) -> Iterator[Any]:
    """Connect to the scheduler, if one is named, and print the address of its dashboard."""
    if address is None:
        yield None
        return
    from wellsep.compute.engine.dask.client import describe, open_client

    with open_client(address) as client:
        sys.stderr.write(describe(client) + "\n")
        # We report a lost scheduler in one sentence; Dask would add a traceback.
        logging.getLogger("distributed.client").setLevel(logging.CRITICAL)
        yield client


def default_cache() -> Path | None:
    """Return the user's cache folder for scores; None for a user without a home folder."""
    try:
        base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    except RuntimeError:
        return None
    return Path(base) / "wellsep" / "scores"


def _show_progress() -> Callable[[int, int, str], None]:
    """A bar over the spaces, then one over the half-samples, on stderr, each with the time left."""
    bars = show_progress()

    def told(done: int, total: int, name: str) -> None:
        what = "Judging half-samples" if name == "half-samples" else "Scoring spaces"
        bars(done, total, what)

    return told
