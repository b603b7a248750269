"""Of equally short trees DBCV takes one: exact arithmetic, laws, the authors' values."""

from __future__ import annotations

import itertools
from decimal import Decimal, localcontext

import numpy as np
import pytest
from golden import read_json
from scipy.spatial.distance import cdist
from sklearn.datasets import load_iris, make_blobs, make_circles, make_moons

import wellsep as ws
from wellsep.compute.statistics import density_trees

EQUAL = Decimal("1e-40")  # share by which numbers of 60 digits may differ


def _ranks(values):
    """Numbers from 0; equal values share one."""
    ranks, last = {}, None
    for value in sorted(set(values)):
        step = last is None or value - last > EQUAL * value
        ranks[value] = (len(ranks) and ranks[last] + step) if last is not None else 0
        last = value
    return [ranks[value] for value in values]


def _exact_tree(squares, d):
    """Inner objects, squared core distances and DSC of whole squared distances, to 60 digits."""
    n = len(squares)
    core = []
    for i in range(n):
        others = [Decimal(squares[i][j]) for j in range(n) if j != i]
        density = 0 if 0 in others else sum(s ** (Decimal(-d) / 2) for s in others) / (n - 1)
        core.append(density ** (Decimal(-2) / d) if density else Decimal(0))
    sums = _ranks([sum(row) for row in squares])
    rank = [c * n + s for c, s in zip(_ranks(core), sums, strict=True)]
    first = [row.index(0) for row in squares]  # the first object in the same place
    pairs = [(i, j) for i, j in itertools.combinations(range(n), 2)
             if first[i] == i and first[j] in (i, j)]  # fmt: skip
    reach = [max(Decimal(squares[i][j]), core[i], core[j]) for i, j in pairs]
    ties = {}
    for (i, j), r in zip(pairs, _ranks(reach), strict=True):
        ties.setdefault((r, *sorted((rank[i], rank[j])), j if first[j] == i else 0), []).append(
            (i, j)
        )
    part, joins, edges = list(range(n)), [set() for _ in range(n)], []
    for key in sorted(ties):
        apart = [(i, j) for i, j in ties[key] if part[i] != part[j]]
        before = list(part)
        for i, j in apart:
            join = (key, frozenset((before[i], before[j])))
            joins[i].add(join)
            joins[j].add(join)
            edges.append((i, j, join))
            part = [part[j] if p == part[i] else p for p in part]
    inner = [i for i in range(n) if len(joins[i]) > 1]
    between = [
        (i, j, join)
        for i, j, join in edges
        if i in inner and j in inner and len((joins[i] | joins[j]) - {join}) > 1
    ]
    longest = max(
        max(Decimal(squares[i][j]), core[i], core[j]) for i, j, _ in between or edges
    ).sqrt()
    return inner or list(range(n)), core, longest


def _exact(X, y):
    """DBCV of whole numbers, from definitions alone."""
    with localcontext() as context:
        context.prec = 60
        X, y = X.astype(int).tolist(), y.tolist()

        def square(i, j):
            return sum((a - b) ** 2 for a, b in zip(X[i], X[j], strict=True))

        trees = []
        for label in sorted(set(y)):
            members = [i for i, own in enumerate(y) if own == label]
            if len(members) == 1:  # noise
                continue
            table = [[square(i, j) for j in members] for i in members]
            inner, core, longest = _exact_tree(table, len(X[0]))
            trees.append(({members[i]: core[i] for i in inner}, longest, len(members)))
        value = Decimal(0)
        for core, longest, size in trees if len(trees) > 1 else []:
            nearest = min(
                max(Decimal(square(i, j)), core[i], other[j])
                for other, _, _ in trees
                if other is not core
                for i in core
                for j in other
            ).sqrt()
            if larger := max(nearest, longest):
                value += size * (nearest - longest) / larger / len(y)
        return float(value)


def _whole_numbers(seed):
    """A few places, many ties: squares, duplicates, rows on a line."""
    rng = np.random.default_rng(seed)
    n, d, k, width = rng.integers([5, 1, 2, 2], [17, 5, 4, 6])
    y = np.concatenate([np.arange(k), [0], rng.integers(0, k, n - k - 1)])
    return rng.integers(0, width, (n, d)) * float(rng.integers(1, 4)), y


@pytest.mark.parametrize("first", range(0, 240, 40))
def test_ties_are_those_of_exact_arithmetic(first):
    for seed in range(first, first + 40):
        X, y = _whole_numbers(seed)
        assert ws.dbcv_score(X, y) == pytest.approx(_exact(X, y), abs=1e-9), seed


def _grid(width, height, apart):
    X = np.argwhere(np.ones((2 * width, height))).astype(float)
    y = (X[:, 0] >= width).astype(int)
    return X + apart * np.column_stack([y, 0 * y]), y


def _tied_sets():
    rng = np.random.default_rng(5)
    iris = load_iris()
    copies = rng.normal(size=(30, 3))[rng.integers(0, 30, 90)]
    angle = 2 * np.pi / 24 * np.arange(24)
    ring = np.column_stack([np.cos(angle), np.sin(angle)])
    twins = rng.normal(size=(60, 300))
    twins[1::2] = twins[::2] + 0.3 * rng.normal(size=(30, 300))
    return {
        "nine": (np.array([[1, 2, 0], [1, 0, 2], [1, 2, 2], [1, 1, 1], [1, 0, 3], [1, 3, 1],
                           [3, 1, 2], [0, 2, 1], [3, 2, 3.0]]),
                 np.array([1, 2, 0, 2, 2, 1, 0, 1, 1])),
        "iris": (iris.data, iris.target),
        "grid": _grid(8, 7, 2.0),
        "copies": (copies, np.arange(90) % 3),
        "answers": (rng.integers(1, 6, (80, 4)).astype(float), np.arange(80) % 2),
        "rings": (np.vstack([ring, 3 * ring]), np.repeat([0, 1], 24)),
        "twins in 300 columns": (np.round(twins, 2), np.arange(60) // 2 % 3),
    }  # fmt: skip


TIED = _tied_sets()


def _value_in_another_form(X, y, form, monkeypatch):
    rng = np.random.default_rng(len(X))
    if form == "order of objects":
        order = rng.permutation(len(X))
        return ws.dbcv_score(X[order], y[order])
    if form == "order of columns":
        return ws.dbcv_score(X[:, ::-1], y)
    if form == "Fortran order":
        return ws.dbcv_score(np.asfortranarray(X), y)
    if form == "every second row of an array":
        return ws.dbcv_score(np.repeat(X, 2, axis=0)[::2], y)
    if form == "polars":
        pl = pytest.importorskip("polars", reason="needs polars")
        return ws.dbcv_score(pl.DataFrame(X, schema=[f"c{i}" for i in range(X.shape[1])]), y)
    if form == "tensor":
        torch = pytest.importorskip("torch", reason="needs the extra deep")
        return ws.dbcv_score(torch.tensor(X), y)
    if form == "names of clusters":
        return ws.dbcv_score(X, -1 * y + 7)
    if form == "mirror image":
        return ws.dbcv_score(-X, y)
    if form == "a tenth":
        return ws.dbcv_score(X / 10, y)
    if form == "one of many":
        return ws.score_partitions(X, [y, y // 2, y % 2, (y > 0) + 0], ["dbcv"]).values[0, 0]
    if form == "blocks":
        monkeypatch.setattr(density_trees, "LARGE", 2)
        return ws.dbcv_score(X, y)
    order = rng.permutation(len(X))
    return ws.dbcv_score(ws.Distances(cdist(X[order], X[order])), y[order], d=X.shape[1])


FORMS = [
    "order of objects", "order of columns", "Fortran order", "every second row of an array",
    "polars", "tensor", "names of clusters", "mirror image", "a tenth", "one of many", "blocks",
    "distances in another order",
]  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", TIED)
def test_no_form_of_the_same_data_changes_the_value(name, form, monkeypatch):
    X, y = TIED[name]
    expected = ws.dbcv_score(X, y)
    assert _value_in_another_form(X, y, form, monkeypatch) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("name", TIED)
def test_an_order_of_objects_changes_not_even_the_last_digit(name):
    X, y = TIED[name]
    rng = np.random.default_rng(1)
    orders = [rng.permutation(len(X)) for _ in range(10)]
    assert len({ws.dbcv_score(X[order], y[order]) for order in orders}) == 1


@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.int8])
def test_whole_numbers_of_any_type_have_the_same_value(dtype):
    for seed in range(30):
        X, y = _whole_numbers(seed)
        assert ws.dbcv_score(X.astype(dtype), y) == ws.dbcv_score(X, y), seed


@pytest.mark.parametrize("name", ["iris", "copies", "answers", "rings"])
def test_ties_are_broken_as_a_slight_shake_of_the_data_would(name):
    X, y = TIED[name]
    shaken = [
        ws.dbcv_score(X + 1e-6 * np.random.default_rng(seed).normal(size=X.shape), y)
        for seed in range(12)
    ]
    assert min(shaken) - 1e-4 <= ws.dbcv_score(X, y) <= max(shaken) + 1e-4


def test_an_object_that_is_given_twice_stays_one_place():
    # of a and its copy one is inner; the third object is a leaf, so that no edge is an inner one
    X = np.array([[3.0], [3], [0], [20], [21], [23]])
    y = [0, 0, 0, 1, 1, 1]
    core = 2 * 3 / 2  # of the third: 1/((1/3 + 1/3)/2)
    assert ws.dbcv_clusters(X, y)[0] == pytest.approx((18 - core) / 18)


def test_more_objects_of_the_same_blobs_do_not_lower_the_value():
    values = [
        ws.dbcv_score(*make_blobs(n, 5, centers=6, random_state=0)) for n in (250, 500, 1000, 2000)
    ]
    assert min(values) > 0.7
    assert np.ptp(values) < 0.05


# --- the authors' program -----------------------------------------------------------------------

AUTHORS = read_json("dbcv_authors.json")["values"]
SMALL = read_json("dbcv_authors.json")["small"]


def _first_come(X, y):
    """The authors' reading: squared distances; Prim's algorithm keeps the object it met first."""
    D, d, parts = cdist(X, X, "sqeuclidean"), X.shape[1], []
    for label in np.unique(y[y > 0]):
        members = np.flatnonzero(y == label)
        own, n = D[np.ix_(members, members)], len(members)
        core = ((own[~np.eye(n, dtype=bool)].reshape(n, -1) ** -d).mean(axis=1)) ** (-1 / d)
        reach = np.maximum(own, np.maximum(core[:, None], core))
        key, parent, outside = np.full(n, np.inf), np.zeros(n, dtype=int), np.ones(n, dtype=bool)
        edges, lengths, new = [], [], 0
        for _ in range(n - 1):
            outside[new] = False
            nearer = outside & (reach[new] < key)
            key[nearer], parent[nearer] = reach[new][nearer], new
            new = int(np.where(outside, key, np.inf).argmin())
            edges.append((parent[new], new))
            lengths.append(key[new])
        inner = np.bincount(np.ravel(edges), minlength=n) > 1
        between = inner[np.array(edges)].all(axis=1)
        if not inner.any():
            inner[:] = True
        longest = np.array(lengths)[between if between.any() else slice(None)].max()
        parts.append((members[inner], core[inner], longest, n))
    value = 0.0
    for i, core, longest, n in parts:
        nearest = min(
            np.maximum(D[np.ix_(i, j)], np.maximum(core[:, None], other)).min()
            for j, other, _, _ in parts
            if j is not i
        )
        value += n / len(y) * (nearest - longest) / max(nearest, longest)
    return value


@pytest.mark.parametrize("name", SMALL)
def test_the_authors_small_sets_have_their_values(name):
    X, y = np.array(SMALL[name]["X"], dtype=float), np.array(SMALL[name]["y"])
    assert _first_come(X, y) == pytest.approx(AUTHORS[name], abs=1e-12)
    assert ws.dbcv_score(X, y, metric="sqeuclidean") == pytest.approx(AUTHORS[name], abs=1e-12)


@pytest.mark.parametrize("name", ["1", "2", "3", "4"])
def test_the_authors_four_sets_have_their_values(name, real_data):
    path = real_data.parent / "reference" / "dbcv" / f"dataset_{name}.txt"
    if not path.exists():
        pytest.skip("the authors' data sets are not at hand")
    rows = np.loadtxt(path)
    X, y = rows[:, :2], rows[:, 2].astype(int)  # 0 is noise
    assert _first_come(X, y) == pytest.approx(AUTHORS[name], abs=1e-12)
    found = ws.dbcv_score(X, np.where(y == 0, -1, y), metric="sqeuclidean")
    assert found == pytest.approx(AUTHORS[name], abs=1.5e-3)


@pytest.mark.parametrize(
    ("X", "y"),
    [make_blobs(200, 2, centers=3, random_state=2), make_moons(200, noise=0.05, random_state=0),
     make_circles(200, noise=0.03, factor=0.5, random_state=0)],
    ids=["blobs", "moons", "circles"],
)  # fmt: skip
def test_the_value_is_at_least_the_median_of_the_authors_program_over_orders(X, y):
    rng = np.random.default_rng(0)
    orders = [rng.permutation(len(X)) for _ in range(12)]
    theirs = [_first_come(X[order], y[order] + 1) for order in orders]
    assert np.ptp(theirs) > 1e-3  # theirs depends on the order
    ours = ws.dbcv_score(X, y, metric="sqeuclidean")
    assert np.median(theirs) - 1e-9 <= ours <= max(theirs) + 0.1
