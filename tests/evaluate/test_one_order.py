"""Names that tie come in one order, the natural one: in best, order, every table and the page."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import wellsep as ws
from wellsep.evaluate import rank
from wellsep.report.pages.ranking import build_ranking_page
from wellsep.report.sections.tables import ranking_table

SEEDS = range(12)


def numbered(rng, n, letters="ab"):
    """Different names such as a2 and a10, in any order."""
    names = [f"{letter}{i}" for letter in letters for i in range(1, 13)]
    return [str(name) for name in rng.permutation(names)[:n]]


def natural(name):
    return name[0], int(name[1:])


def tied_runs(seed):
    """Corners of a square, with a third column that differs: halves by x and by y are as good."""
    rng = np.random.default_rng(seed)
    square = np.array([[0.0, 0], [0, 4], [4, 0], [4, 4]]).repeat(3, axis=0)
    inside = np.tile([0, 0.5, -0.5], 4)
    square += inside[:, None]
    spaces = {
        name: np.column_stack([square, i * inside]) for i, name in enumerate(numbered(rng, 4))
    }
    x, y = square.T > 2
    labels = [x, y, ~x, ~y, x ^ y, x ^ y, y]
    return ws.Runs.from_parts(spaces, dict(zip(numbered(rng, 7, "cd"), labels, strict=True)))


def in_one_order(record, names, ranks, column):
    """Whether order is by rank and then by name, and the table and the best follow it."""
    wanted = sorted(range(len(names)), key=lambda i: (ranks[i], natural(names[i])))
    assert list(record.order) == wanted
    assert record.columns()[column] == [names[i] for i in wanted]
    if hasattr(record, "best"):
        assert record.best == names[wanted[0]]
    if hasattr(record, "winners"):
        assert list(record.winners) == [names[i] for i in wanted if ranks[i] == 1]


@pytest.mark.parametrize("seed", SEEDS)
def test_a_vote_has_one_order(seed):
    rng = np.random.default_rng(seed)
    names = numbered(rng, 6)
    vote = ws.consensus({name: rng.integers(0, 2, 6) for name in names})
    in_one_order(vote, vote.partitions, vote.rank, "partition")
    assert vote.best == vote.partitions[vote.order[0]]
    assert vote.rank[vote.order].tolist() == sorted(vote.rank.tolist())


@pytest.mark.parametrize("seed", SEEDS)
def test_runs_beside_a_consensus_partition_have_one_order(seed):
    rng = np.random.default_rng(seed)
    names = numbered(rng, 6)
    labels = {name: rng.integers(0, 2, 6) for name in names}
    made = ws.consensus_partition(ws.Runs.from_parts(None, labels))
    in_one_order(made, made.partitions, -made.agreement, "partition")
    first, last = (made.partitions[made.order[i]] for i in (0, -1))
    assert f"The closest run is {first!r}" in made.explain()
    assert f"farthest {last!r}" in made.explain()


@pytest.mark.parametrize("seed", SEEDS)
def test_a_ranking_by_ace_has_one_order_also_on_the_page(seed):
    rng = np.random.default_rng(seed)
    values = rng.integers(0, 3, (3, 8)) / 4
    scores = ws.Scores.from_matrix(
        values, partitions=numbered(rng, 8), spaces=numbered(rng, 3), paired=False
    )
    ranking = rank(ws.ace(scores, dip=False))
    in_one_order(ranking, ranking.names, ranking.rank, "partition")
    named = next(c for c in ranking_table(ranking).columns if c.key == "name")
    assert named.values[0] == ranking.best


@pytest.mark.parametrize("judge", ["ace", "consensus"])
@pytest.mark.parametrize("seed", SEEDS[:4])
def test_a_judgement_has_one_order_everywhere(seed, judge):
    runs = tied_runs(seed)
    judgement = ws.judge(runs, judge=judge, n_draws=4, dip=False)
    ranking, embeddings = judgement.ranking, judgement.embeddings
    assert len(set(ranking.classes.of[ranking.rank == 1])) > 1  # different runs tie
    in_one_order(ranking, ranking.names, ranking.rank, "partition")
    in_one_order(embeddings, embeddings.embeddings, embeddings.rank, "embedding")
    for vote in judgement.answers["consensus"].values():
        in_one_order(vote, vote.partitions, vote.rank, "partition")
    said = judgement.to_dict()
    assert said["best"][0] == said["ranking"][0]["partition"] == ranking.best
    assert said["embeddings"][0]["embedding"] == embeddings.best
    page = build_ranking_page(judgement, runs=runs, truth=None, title=None, layout="pca")
    rows = next(c for c in page.table.columns if c.key == "name").values
    shown = {section.name: section.shown for section in page.sections}
    assert rows[0] == ranking.best == shown["clusters"]["partition"]
    assert shown["embeddings"]["embedding"][0] == embeddings.best


@pytest.mark.parametrize("seed", SEEDS)
def test_equal_runs_stand_together_in_the_table_of_the_page(seed):
    judgement = ws.judge(tied_runs(seed % 4), n_draws=0, dip=False)
    ranking = judgement.ranking
    named = next(c for c in ranking_table(ranking).columns if c.key == "name").values
    classes = [int(ranking.classes.of[ranking.names.index(name)]) for name in named]
    runs = [c for i, c in enumerate(classes) if i == 0 or c != classes[i - 1]]
    assert len(runs) == len(set(runs))


@pytest.mark.parametrize("seed", SEEDS)
def test_a_group_of_embeddings_has_one_number_in_every_table(seed):
    """Two groups of four spaces that contradict each other; one of them wins."""
    rng = np.random.default_rng(seed)
    n, up = 60, np.linspace(0.1, 0.9, 7)
    runs = ws.Runs.from_parts(
        {f"s{i}": rng.normal(size=(n, 2)) for i in range(8)},
        {f"k{i}": rng.integers(0, 3, n) for i in range(7)},
    )
    judgement = ws.judge(runs, n_draws=0, dip=False)
    falling = np.arange(8) % 2 == 0 if seed % 3 else np.arange(8) < 4
    rows = np.where(falling[:, None], up[::-1], up + (0.3 if seed % 2 else -0.3))
    rows = rows + rng.normal(0, 1e-3, rows.shape)
    scores = replace(judgement.scores, values={"silhouette": rows})
    result = ws.ace(scores, dip=False)
    made = replace(
        judgement, scores=scores, answers={**judgement.answers, "ace": {"silhouette": result}}
    )
    data = build_ranking_page(made, runs=None, truth=None, title=None, layout="pca").data
    assert len(result.groups.members) == 2
    numbers = made.embeddings.group
    assert [g + 1 for g in data["steps"]["group"]] == numbers.tolist()
    assert set(numbers[list(result.winner.spaces)]) == {1}
    for members in result.groups.members:
        assert len(set(numbers[list(members)])) == 1
    assert (numbers > 0).sum() == sum(map(len, result.groups.members))
