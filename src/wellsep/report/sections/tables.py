"""Tables: the ranking in typed columns, best first, and rankings against the truth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from wellsep._text.glossary import WORDS
from wellsep.evaluate import AceResult, Agreement, Ranking, Scores
from wellsep.report.pack import Column, RankingTable, Section

MOST_PARAMS = 8  # params with more keys than this share one column
BASELINES = {
    "ace": ("ACE", "Rank by ACE."),
    "own_space": ("own space", f"Rank by it. {WORDS['own_space']}"),
    "mean_all": ("mean", f"Rank by it. {WORDS['mean_all']}"),
    "input": ("input", f"Rank by it. {WORDS['input']}"),
    "consensus": ("consensus", f"Rank by it. {WORDS['consensus']}"),
}


Told = tuple[str, str, str, int]  # heading, kind, a sentence, 1 if larger is better


def cells(values: Sequence[Any], order: Sequence[int] | np.ndarray) -> tuple[Any, ...]:
    """The cells of a column in the order of the rows; None for what is no number."""
    taken = [values[i] for i in order]
    return tuple(None if isinstance(v, float) and not np.isfinite(v) else v for v in taken)


def told_columns(
    table: Mapping[str, Sequence[Any]], order: np.ndarray, told: Mapping[str, Told]
) -> tuple[Column, ...]:
    """The columns of a result's table that the page tells of, but for empty ones."""
    found = [
        Column(key, label, kind, cells(table[key], order), said, direction)
        for key, (label, kind, said, direction) in told.items()
        if key in table
    ]
    return tuple(one for one in found if any(cell not in (None, "") for cell in one.values))


def ranking_table(
    ranking: Ranking,
    *,
    scores: Scores | None = None,
    params: Mapping[str, Mapping[str, Any]] | None = None,
) -> RankingTable:
    """Rank, interval, score, K, params, ranks by the baselines, values of every index.

    Examples
    --------
    >>> import wellsep as ws
    >>> from wellsep.evaluate import rank
    >>> scores = ws.Scores.from_matrix([[0.1, 0.5, 0.3], [0.2, 0.6, 0.3]], paired=False)
    >>> table = ranking_table(rank(ws.ace(scores, dip=False)))
    >>> [column.key for column in table.columns]
    ['rank', 'name', 'score', 'picked', 'rank:mean_all']
    >>> table.columns[1].values
    ('partition 1', 'partition 2', 'partition 0')
    """
    table, sure, columns = ranking.columns(), ranking.confidence, []
    # Equal runs one after the other; the page folds them into one row.
    place = np.argsort(ranking.classes.of[ranking.first_of_each])
    rows = np.argsort(place[ranking.classes.of[ranking.order]], kind="stable")
    order = ranking.order[rows]

    def add(
        key: str, label: str, kind: str, values: Sequence[Any], said: str, direction: int = 0
    ) -> None:
        columns.append(Column(key, label, kind, cells(values, rows), said, direction))

    add("rank", "rank", "int", table["rank"], "1 is best; ties share.", -1)
    add("name", "run", "name", table["partition"], WORDS["run"])
    said = f"Score by {ranking.title}, turned so that larger is better."
    add("score", "score", "float", table["score"], said, 1)
    if "coverage" in table:
        said = "Share of the objects that are not noise."
        add("coverage", "coverage", "share", table["coverage"], said)
    if sure is not None:
        said = f"Share of {sure.n_draws} half-samples in which the run comes first."
        add("best", "first in", "share", table["first_in"], said, 1)
        low_high = list(zip(table["rank_low"], table["rank_high"], strict=True))
        said = f"Lowest and highest rank in {sure.level:.0%} of {sure.n_draws} half-samples."
        add("interval", "rank interval", "interval", low_high, said, -1)
    if "clusters" in table:
        add("k", "K", "int", table["clusters"], "Number of clusters.")
    picked = judge_picks(ranking)
    n_judges = len({judge for judges in picked.values() for judge in judges})
    if n_judges > 1:
        by = [
            ", ".join(own) if len(own) < 3 else f"{len(own)} of {n_judges} judges"
            for own in (picked.get(int(i), []) for i in ranking.order)
        ]
        said = "Judges and indices that place this clustering first; the answer names them."
        add("picked", "picked by", "text", by, said)
    counts = cells(table["clusters"], rows) if "clusters" in table else None
    varied, same = _param_columns([ranking.names[i] for i in order], params or {}, counts)
    columns += varied
    for name in ranking.shown_baselines:
        label, said = BASELINES[name]
        add(f"rank:{name}", label, "int", table[f"rank_{name}"], said, -1)
    columns += _index_columns(ranking, scores, order)
    return RankingTable(order, tuple(columns), same, ranking.classes.of[order])


def judge_picks(ranking: Ranking) -> dict[int, list[str]]:
    """Position of a run → the judges that place it first, the deciding one first.

    Of equal clusterings the first by rank stands for all; a judge with several picks is at each.

    Examples
    --------
    >>> import wellsep as ws
    >>> from wellsep.evaluate import rank
    >>> scores = ws.Scores.from_matrix([[0.1, 0.5, 0.3], [0.2, 0.6, 0.3]], paired=False)
    >>> judge_picks(rank(ws.ace(scores, dip=False)))
    {1: ['ACE (score)', 'mean']}
    """
    first = {int(ranking.classes.of[i]): int(i) for i in ranking.first_of_each}
    ranks = {ranking.title: ranking.rank}
    for name in (*ranking.shown_baselines, *ranking.by_other_index):
        label = BASELINES[name][0] if name in BASELINES else f"ACE ({name})"
        ranks[label] = ranking.ranks_by(name)
    found: dict[int, list[str]] = {}
    for label, values in ranks.items():
        for i in dict.fromkeys(
            first[int(ranking.classes.of[j])] for j in np.flatnonzero(values == 1)
        ):
            found.setdefault(i, []).append(label)
    return found


def truth_section(found: Agreement) -> Section:
    """Every way of ranking, and its scores, against the truth."""
    names = tuple(found.correlations)
    titles = [BASELINES[n][0] if n in BASELINES else n.replace("_", " ") for n in names]
    data = {
        "names": names,
        "partitions": found.partitions,
        "scores": np.array([found.scores[name] for name in names]),
        "external": dict(found.external),
        "table": found.columns() | {"ranking": titles},
        "picks": tuple(found.picks[name] for name in names),
    }
    return Section("truth", {"truth": data}, {"title": found.heading, "table": data["table"]})


def _index_columns(ranking: Ranking, scores: Scores | None, order: np.ndarray) -> list[Column]:
    """Every index with its own sign, as the winning spaces see it, but for the score itself."""
    if ranking.by_ace is None or scores is None:
        return []
    said = "weighted mean over the embeddings that give the answer"
    found = []
    for name, values in winning_means(ranking.by_ace, scores).items():
        direction = int(scores.directions[name])
        if name != ranking.index or direction < 0:
            told = f"{name}, {said}; {'larger' if direction > 0 else 'smaller'} is better."
            shown = cells(values.tolist(), order)
            found.append(Column(f"index:{name}", name, "float", shown, told, direction))
    return found


def winning_means(result: AceResult, scores: Scores) -> dict[str, np.ndarray]:
    """Index → (M,) weighted mean over the winning spaces, with the index's own sign."""
    rows, weights = list(result.winner.spaces), np.asarray(result.winner.weights)
    found = {}
    for name, matrix in scores.values.items():
        known = np.isfinite(matrix[rows])
        total = (known * weights[:, None]).sum(axis=0)
        sums = (weights[:, None] * np.where(known, matrix[rows], 0.0)).sum(axis=0)
        found[name] = np.divide(sums, total, out=np.full(len(total), np.nan), where=total > 0)
    return found


def _param_columns(
    names: list[str], params: Mapping[str, Mapping[str, Any]], counts: tuple[Any, ...] | None
) -> tuple[list[Column], dict[str, Any]]:
    """Params that differ between runs as columns; those that all share apart, K only once."""
    rows = [dict(params.get(name, {})) for name in names]
    keys = list(dict.fromkeys(key for row in rows for key in row))
    texts = {key: [_text(row.get(key)) for row in rows] for key in keys}
    same = {k: texts[k][0] for k in keys if len(rows) > 1 and len(set(texts[k])) == 1}
    varied = [
        key for key in keys if key not in same and tuple(row.get(key) for row in rows) != counts
    ]
    if len(varied) > MOST_PARAMS:
        joined = tuple(
            ", ".join(f"{k}={_text(row[k])}" for k in varied if k in row) for row in rows
        )
        return [Column("params", "params", "text", joined, "What the run was made with.")], same
    return [_param(key, [row.get(key) for row in rows]) for key in varied], same


def _param(key: str, values: list[Any]) -> Column:
    said, known = f"Parameter {key} of the run.", [v for v in values if v is not None]
    if any(isinstance(v, bool) or not isinstance(v, int | float) for v in known):
        return Column(f"param:{key}", key, "text", tuple(map(_text, values)), said)
    kind = "int" if all(isinstance(v, int) for v in known) else "float"
    return Column(f"param:{key}", key, kind, cells(values, range(len(values))), said)


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.6g}"
    return str(value)
