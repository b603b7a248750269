"""Tables: the ranking in typed columns, best first, and rankings against the truth."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from wellsep._text.glossary import WORDS
from wellsep.evaluate import AceResult, Agreement, Ranking, Scores
from wellsep.report.parts import Column, RankingTable, Section

MOST_PARAMS = 8  # params with more keys than this share one column
BASELINES = {
    "ace": ("ACE", "Rank by ACE."),
    "own_space": ("own space", f"Rank by it. {WORDS['own_space']}"),
    "mean_all": ("mean", f"Rank by it. {WORDS['mean_all']}"),
    "input": ("input", f"Rank by it. {WORDS['input']}"),
    "consensus": ("consensus", f"Rank by it. {WORDS['consensus']}"),
}


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
    # Equal runs one after the other; the page folds them into one row.
    place = np.argsort(ranking.classes.of[ranking.first_of_each])
    order = ranking.order[np.argsort(place[ranking.classes.of[ranking.order]], kind="stable")]
    columns = [
        Column("rank", "rank", "int", _take(ranking.rank, order), "1 is best; ties share.", -1),
        Column("name", "run", "name", tuple(ranking.names[i] for i in order), WORDS["run"]),
        Column(
            "score",
            "score",
            "float",
            _take(ranking.score, order),
            f"Score by {ranking.title}, turned so that larger is better.",
            1,
        ),
    ]
    if ranking.coverage is not None and (np.asarray(ranking.coverage) < 1).any():
        said = "Share of the objects that are not noise."
        columns.append(
            Column("coverage", "coverage", "share", _take(ranking.coverage, order), said)
        )
    if ranking.confidence is not None:
        sure = ranking.confidence
        said = f"Share of {sure.n_draws} half-samples in which the run comes first."
        shares = _take(sure.first_in, order)
        columns.append(Column("best", "first in", "share", shares, said, 1))
        low_high = tuple((int(a), int(b)) for a, b in sure.interval[order])
        said = f"Lowest and highest rank in {sure.level:.0%} of {sure.n_draws} half-samples."
        columns.append(Column("interval", "rank interval", "interval", low_high, said, -1))
    if ranking.n_clusters is not None:
        said = "Number of clusters."
        columns.append(Column("k", "K", "int", _take(ranking.n_clusters, order), said))
    known = None if ranking.n_clusters is None else _take(ranking.n_clusters, order)
    varied, same = _param_columns([ranking.names[i] for i in order], params or {}, known)
    picked = judge_picks(ranking)
    n_judges = len({judge for judges in picked.values() for judge in judges})
    if n_judges > 1:
        said = "Judges and indices that place this clustering first; the answer names them."
        by = tuple(
            ", ".join(own) if len(own) < 3 else f"{len(own)} of {n_judges} judges"
            for own in (picked.get(int(i), []) for i in order)
        )
        columns.append(Column("picked", "picked by", "text", by, said))
    columns += varied
    columns += _baseline_columns(ranking, order)
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
    first: dict[int, int] = {}
    for i in ranking.order:
        first.setdefault(int(ranking.classes.of[i]), int(i))
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
    data = {
        "names": names,
        "partitions": found.partitions,
        "scores": np.array([found.scores[name] for name in names]),
        "external": dict(found.external),
        "table": found.columns() | {"ranking": [_ranking_title(name) for name in names]},
        "picks": tuple(found.picks[name] for name in names),
    }
    return Section("truth", {"truth": data}, {"title": found.heading, "table": data["table"]})


def _ranking_title(name: str) -> str:
    """What a way of ranking is called in the headings of the page."""
    return BASELINES[name][0] if name in BASELINES else name.replace("_", " ")


def _baseline_columns(ranking: Ranking, order: np.ndarray) -> list[Column]:
    found = []
    for name in ranking.shown_baselines:
        label, said = BASELINES.get(name, (name, f"Rank by {name}."))
        ranks = _take(ranking.ranks_by(name), order)
        found.append(Column(f"rank:{name}", label, "int", ranks, said, -1))
    return found


def _index_columns(ranking: Ranking, scores: Scores | None, order: np.ndarray) -> list[Column]:
    """Every index with its own sign, as the winning spaces see it; else ACE's scores by it."""
    ace = ranking.by_ace
    if ace is not None and scores is not None and scores.partitions == ranking.names:
        return [
            Column(
                f"index:{name}",
                name,
                "float",
                _take(values, order),
                f"{name}, weighted mean over the embeddings that give the answer; "
                f"{'larger' if scores.directions[name] > 0 else 'smaller'} is better.",
                int(scores.directions[name]),
            )
            for name, values in winning_means(ace, scores).items()
            if name != ranking.index or scores.directions[name] < 0
        ]
    return [
        Column(
            f"index:{name}",
            name,
            "float",
            _take(values, order),
            f"ACE's score by {name}, turned so that larger is better.",
            1,
        )
        for name, values in ranking.by_other_index.items()
    ]


def winning_means(result: AceResult, scores: Scores) -> dict[str, np.ndarray]:
    """Index → (M,) weighted mean over the winning spaces, with the index's own sign."""
    rows = list(result.winner.spaces)
    found = {}
    for name, matrix in scores.values.items():
        values = np.where(np.isfinite(matrix[rows]), matrix[rows], np.nan)
        weight = np.where(np.isnan(values), 0.0, np.asarray(result.winner.weights)[:, None])
        total = weight.sum(axis=0)
        sums = np.nansum(weight * values, axis=0)
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
    double = {
        key for key in keys if counts is not None and tuple(row.get(key) for row in rows) == counts
    }
    varied = [key for key in keys if key not in same and key not in double]
    if len(varied) > MOST_PARAMS:
        joined = tuple(
            ", ".join(f"{k}={_text(row[k])}" for k in varied if k in row) for row in rows
        )
        return [Column("params", "params", "text", joined, "What the run was made with.")], same
    return [_param(key, [row.get(key) for row in rows]) for key in varied], same


def _param(key: str, values: list[Any]) -> Column:
    said = f"Parameter {key} of the run."
    if all(v is None or (isinstance(v, int | float) and not isinstance(v, bool)) for v in values):
        whole = all(v is None or isinstance(v, int) for v in values)
        cells = tuple(v if v is None or np.isfinite(v) else None for v in values)
        return Column(f"param:{key}", key, "int" if whole else "float", cells, said)
    return Column(f"param:{key}", key, "text", tuple(map(_text, values)), said)


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.6g}"
    return str(value)


def _take(values: Any, order: np.ndarray) -> tuple[Any, ...]:
    taken = np.asarray(values)[order].tolist()
    return tuple(None if isinstance(v, float) and not np.isfinite(v) else v for v in taken)
