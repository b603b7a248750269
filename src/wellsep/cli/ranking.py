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

from wellsep._text.glossary import WORDS
from wellsep.cli.printing import (
    PAGES,
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
from wellsep.cli.reading_runs import parse_ace
from wellsep.cli.wording import command_of, flags_of, in_shell_words

Pattern = str | None
# Panels of the help; the flags that matter most stand before them.
RUNS, JUDGING, WRITING = "Which runs", "How to judge", "What to write"
COMPUTING = "Computing"


def rank(
    context: typer.Context,
    source: Annotated[
        list[str],
        typer.Argument(help="Folders of runs, .npz, .h5ad, tables of labels, MLflow or Optuna."),
    ],
    index: Annotated[
        list[str] | None,
        typer.Option(
            "--index",
            "-i",
            help="Validity index. Repeat for more: the first decides.",
        ),
    ] = None,
    truth: Annotated[
        str | None,
        typer.Option(
            metavar="FILE|COLUMN",
            help="True classes to compare with: a file, or a column of the .h5ad.",
        ),
    ] = None,
    report: Annotated[
        Path | None, typer.Option(help="Write the result as one HTML page to this file.")
    ] = None,
    save: Annotated[
        Path | None,
        typer.Option(help="Save all results in this folder, for wellsep explain and report."),
    ] = None,
    as_json: JsonOption = False,
    spaces: Annotated[
        Pattern, typer.Option(help="Use only these embeddings: X_pca,X_scvi", rich_help_panel=RUNS)
    ] = None,
    labels: Annotated[
        Pattern, typer.Option(help="Rank only these clusterings: 'leiden_*'", rich_help_panel=RUNS)
    ] = None,
    pairs: Annotated[
        str | None,
        typer.Option(
            metavar="PATTERN",
            help="How a clustering names its embedding: 'leiden_{space}_*'",
            rich_help_panel=RUNS,
        ),
    ] = None,
    max_spaces: Annotated[
        int | None,
        typer.Option(
            help="Score in at most so many embeddings, drawn at random.",
            rich_help_panel=RUNS,
        ),
    ] = None,
    judge: Annotated[
        str,
        typer.Option(
            help="Who decides. ace: embeddings that agree. consensus: clusterings vote. auto: "
            "consensus where the number of clusters varies, else ace.",
            rich_help_panel=JUDGING,
        ),
    ] = "auto",
    noise: Annotated[
        str,
        typer.Option(
            help="The labels -1, -2 and -3. priced: not counted, and the score falls. exclude: "
            "not counted. Also cluster, singletons or error.",
            rich_help_panel=JUDGING,
        ),
    ] = "priced",
    n_draws: Annotated[
        int,
        typer.Option(
            "--draws",
            help="Half-samples that show how certain the ranking is, or 0.",
            rich_help_panel=JUDGING,
        ),
    ] = 100,
    input_data: Annotated[
        Path | None,
        typer.Option(
            "--input",
            help="Data the runs were made from: scores there are a baseline.",
            rich_help_panel=JUDGING,
        ),
    ] = None,
    ace: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY=VALUE",
            help="A switch of ACE, such as dip=no or grouping=dbscan; repeat for more. Also "
            "dip_alpha, projection, alpha, correlation, eps, links, outliers, convention.",
            rich_help_panel=JUDGING,
        ),
    ] = None,
    layout: Annotated[
        str,
        typer.Option(
            help="Drawing on the page: umap, tsne, pca, or auto.",
            rich_help_panel=WRITING,
        ),
    ] = "auto",
    write_back: Annotated[
        bool,
        typer.Option(
            "--write-back",
            help="Write the answer into the .h5ad: obs wellsep_best, uns wellsep.",
            rich_help_panel=WRITING,
        ),
    ] = False,
    all_rows: Annotated[
        bool,
        typer.Option(
            "--all",
            help="Print every row; by default the first 40 of a long table.",
            rich_help_panel=WRITING,
        ),
    ] = False,
    objects: ObjectsOption = None,
    ids: IdsOption = None,
    no_header: NoHeaderOption = False,
    columns: ColumnsOption = None,
    cache: Annotated[
        str | None,
        typer.Option(
            metavar="FOLDER|none",
            help="Folder that keeps the scores of finished embeddings.",
            envvar="WELLSEP_CACHE",
            rich_help_panel=COMPUTING,
        ),
    ] = None,
    device: Annotated[
        str | None,
        typer.Option(help="Device to compute on: cpu, cuda or cuda:N.", rich_help_panel=COMPUTING),
    ] = None,
    n_jobs: Annotated[
        int | None, typer.Option("--jobs", help="Number of threads.", rich_help_panel=COMPUTING)
    ] = None,
    scheduler: Annotated[
        str | None,
        typer.Option(
            help="Dask scheduler whose workers do the scoring: tcp://host:8786.",
            rich_help_panel=COMPUTING,
        ),
    ] = None,
    random_state: Annotated[
        int,
        typer.Option("--seed", help="Random seed of the half-samples.", rich_help_panel=COMPUTING),
    ] = 0,
) -> None:
    """Rank clusterings without true labels; say why, and how certain the ranking is.

    All judges can be wrong together. Agreement sees no number of clusters beyond those tried.
    After an interruption the same command continues; finished embeddings are kept.

    \b
    Examples:
      wellsep rank runs/ --report page.html
      wellsep rank runs/ -i silhouette -i calinski_harabasz --truth labels.npy --save result/
      wellsep rank data.h5ad --labels 'leiden_*' --truth cell_type --write-back

    Words in the table: a partition is a clustering, a space an embedding; wellsep explain --words
    """
    import wellsep as ws
    from wellsep.adapters import load_any
    from wellsep.cli.scoring import parse_index

    kept = default_cache() if cache is None else None if cache == "none" else Path(cache)
    dip, switches = parse_ace(ace or [])
    with told_when_interrupted(lambda: _what_is_kept(kept)), _cluster(scheduler) as client:
        for option, target in (("report", report), ("save", save)):
            refuse_inputs(option, target, *source, truth, input_data)
        check_file("report", report, PAGES)
        check_folder("save", save)
        if write_back:
            if len(source) > 1:
                raise ValueError(f"write_back must have one source, got {len(source)}.")
            check_file("write_back", Path(source[0]), (".h5ad",))
        runs = load_any(source, spaces=spaces, labels=labels, pairs=pairs)
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
            ace=switches,
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
            {} if known is None else {"agreement_with_truth": known.columns()}
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
    result: Annotated[
        Path | None, typer.Argument(help="Folder written by wellsep rank --save.")
    ] = None,
    words: Annotated[
        bool, typer.Option("--words", help="Say what the words of a ranking mean.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Explain a saved ranking: what was left out and why, what decided, how certain it is.

    \b
    Examples:
      wellsep rank runs/ --save result/
      wellsep explain result/
      wellsep explain --words
    """
    if words:
        for word, meaning in WORDS.items():
            print_line(f"{word}: {meaning}")
        return
    if result is None:
        raise ValueError("result must be a folder that wellsep rank --save wrote, got none.")
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


_PHASES = {"half-samples": "Judging half-samples", "pairs": "Comparing partitions"}


def _show_progress() -> Callable[[int, int, str], None]:
    """A bar over spaces, pairs of partitions and half-samples, on stderr, with the time left."""
    bars = show_progress()

    def told(done: int, total: int, name: str) -> None:
        bars(done, total, _PHASES.get(name, "Scoring spaces"))

    return told
