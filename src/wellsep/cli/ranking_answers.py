"""What `wellsep rank`, `explain` and the demo print: verdict, ranking, embeddings, agreement."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wellsep._text.sentences import cell, printable
from wellsep.cli.printing import (
    ALL_ROWS,
    MOST_ROWS,
    print_columns,
    print_line,
    print_table,
    that_fit,
    with_short_names,
)
from wellsep.cli.wording import flags_of, in_shell_words

if TYPE_CHECKING:
    from wellsep.evaluate import Agreement, Judgement

MOST_EMBEDDINGS = 10  # rows of the second table
EMBEDDING_COLUMNS = (
    "rank",
    "embedding",
    "agreement",
    "favourite",
    "score",
    "coverage",
    "admitted",
    "weight",
    "own_vote",
    "dims",
    "rankme",
    "alpha_req",
)


def print_judgement(judgement: Judgement, *, all_rows: bool = False) -> None:
    """Print the verdict first, then the table, then how it came about."""
    flags = flags_of("rank")
    for sentence in judgement.verdict.sentences():
        print_line(in_shell_words(sentence, flags))
    table = with_params(judgement.ranking.columns())
    print_columns(
        table,
        title=f"Ranking by {judgement.ranking.title}",
        most=None if all_rows else MOST_ROWS,
        rest=ALL_ROWS,
    )
    for paragraph in judgement.explanation:
        print_line(in_shell_words(paragraph, flags))
    print_embeddings(judgement)


def print_embeddings(judgement: Judgement) -> None:
    """Print the best embeddings, where there are several."""
    found = judgement.embeddings
    if found is None or len(found.embeddings) < 2:
        return
    for sentence in found.sentences():
        print_line(sentence)
    table = {name: values[:MOST_EMBEDDINGS] for name, values in found.columns().items()}
    chosen = {name: values for name, values in table.items() if name in EMBEDDING_COLUMNS}
    shown = that_fit(with_short_names(chosen), over=True)
    left = len(found.embeddings) - MOST_EMBEDDINGS
    more = f" {left} more are in --json and --report." if left > 0 else ""
    print_table(
        list(zip(*shown.values(), strict=True)),
        list(shown),
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


def print_agreement(known: Agreement) -> None:
    table = known.columns()
    table["pick"] = [printable(name, 30) for name in table["pick"]]
    first = ("ranking", *(name for name in table if name.endswith("_of_pick")), "pick")
    columns = {name: table[name] for name in (*first, *table)}
    print_columns(columns, title=known.heading)
