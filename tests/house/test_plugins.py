"""Names that an installed package brings work like wellsep's own, and cost nothing on import."""

from __future__ import annotations

import subprocess
import sys
import tomllib

import numpy as np
import pytest
from golden import ROOT

import wellsep as ws
from wellsep._plugins import GROUPS, read_plugins
from wellsep.adapters import load_any
from wellsep.compute.metrics.table import METRICS
from wellsep.extending import Metric, make_index
from wellsep.testing import check_adapter, check_index, check_metric
from wellsep.testing.compare import make_blobs

EXAMPLE = ROOT / "examples" / "plugin"


def install(folder, entry_points, name="wellsep-example", source=EXAMPLE / "src"):
    """What an installer leaves: the modules on the path, and a folder of metadata."""
    info = folder / f"{name.replace('-', '_')}-0.1.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 0.1\n")
    lines = []
    for group, entries in entry_points.items():
        lines += [f"[{group}]", *(f"{key} = {value}" for key, value in entries.items()), ""]
    (info / "entry_points.txt").write_text("\n".join(lines), encoding="utf-8")
    return [str(folder), str(source)]


def declared():
    text = (EXAMPLE / "pyproject.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)["project"]["entry-points"]


@pytest.fixture
def forgotten():
    """Entry points are read anew, and what they brought is taken back."""
    known = dict(METRICS)
    read_plugins.cache_clear()
    yield
    read_plugins.cache_clear()
    METRICS.clear()
    METRICS.update(known)


@pytest.fixture
def example(tmp_path, monkeypatch, forgotten):
    for place in install(tmp_path / "site", declared()):
        monkeypatch.syspath_prepend(place)


def shares(n=60):
    rng = np.random.default_rng(4)
    y = np.arange(n) % 3
    X = rng.dirichlet([1.0, 1, 1, 1], n) + 2 * np.eye(3, 4)[y]
    return X / X.sum(axis=1, keepdims=True), y


def test_the_example_declares_every_group():
    assert sorted(declared()) == sorted(GROUPS)


def test_an_index_of_the_example_is_listed_scored_and_keeps_its_promises(example):
    X, y = make_blobs(0)
    groups = [X[y == k] for k in range(3)]
    expected = np.mean([((g - g.mean(axis=0)) ** 2).sum(axis=1).mean() for g in groups])
    assert ws.score_partitions(X, y, "ball_hall").values[0, 0] == pytest.approx(expected)
    assert "ball_hall" in list(ws.INDICES)
    check_index("ball_hall")


def test_a_metric_of_the_example_works_by_name_and_keeps_its_promises(example):
    X, y = shares()
    D = np.sqrt(((np.sqrt(X)[:, None] - np.sqrt(X)) ** 2).sum(axis=-1) / 2)
    found = ws.silhouette_score(X, y, metric="hellinger")
    assert found == pytest.approx(ws.silhouette_score(D, y, metric="precomputed"), rel=1e-9)
    check_metric("hellinger", X, D)


def test_an_adapter_of_the_example_is_found_by_its_prefix(example, tmp_path):
    file = tmp_path / "notes.txt"
    file.write_text("k2: a a b b\nk3: a b c c\n", encoding="utf-8")
    expected = ws.Runs.from_parts(None, {"k2": list("aabb"), "k3": list("abcc")})
    check_adapter("notes", file, expected)
    assert list(load_any(f"notes+{file}", labels="k2").partitions) == ["k2"]


def test_an_unknown_name_is_refused_with_all_that_are_known(example):
    with pytest.raises(ValueError, match="ball_hall"):
        ws.score_partitions([[0.0], [1], [5]], [0, 0, 1], "bal_hal")
    with pytest.raises(ValueError, match="'hellinger'"):
        ws.silhouette_score([[0.0], [1], [5]], [0, 0, 1], metric="hellingr")


def test_no_entry_point_is_read_on_import(tmp_path):
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "loud.py").write_text("raise SystemExit('was imported')\n")
    entries = {group: {"loud": "loud:X"} for group in GROUPS}
    places = install(tmp_path / "site", entries, "loud", tmp_path / "src")
    code = (
        f"import sys; sys.path[:0] = {[*places, str(ROOT / 'src')]!r}\n"
        "import wellsep as ws, wellsep.adapters\n"
        "ws.score_partitions([[0.0], [1], [5], [6]], [0, 0, 1, 1], ['silhouette'])\n"
        "ws.silhouette_score([[0.0], [1], [5], [6]], [0, 0, 1, 1], metric='manhattan')\n"
        "print('loud' in sys.modules)\n"
        "list(ws.INDICES)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "False"
    assert "was imported" in done.stderr  # once names are listed, it is read


@pytest.mark.parametrize("target", ["absent_module:X", "wellsep_example:absent"])
def test_a_package_that_cannot_be_imported_is_left_out(target, tmp_path, monkeypatch, forgotten):
    for place in install(tmp_path / "site", {"wellsep.indices": {"broken": target}}):
        monkeypatch.syspath_prepend(place)
    with pytest.warns(RuntimeWarning, match="'broken' .* of the package wellsep-example was left"):
        names = list(ws.INDICES)
    assert "broken" not in names
    assert "silhouette" in names


def test_a_name_of_our_own_stays_ours(tmp_path, monkeypatch, forgotten):
    before = ws.INDICES["silhouette"]
    entries = {"wellsep.indices": {"silhouette": "wellsep_example:BALL_HALL"}}
    for place in install(tmp_path / "site", entries):
        monkeypatch.syspath_prepend(place)
    assert "ball_hall" not in list(ws.INDICES)
    assert ws.INDICES["silhouette"] is before


@pytest.mark.parametrize(
    ("group", "ask"),
    [
        ("wellsep.indices", lambda: list(ws.INDICES)),
        ("wellsep.metrics", lambda: ws.silhouette_score([[0.0], [1]], [0, 1], metric="wrong")),
        ("wellsep.adapters", lambda: load_any("wrong+file")),
    ],
)
def test_an_object_of_the_wrong_kind_names_its_package(
    group, ask, tmp_path, monkeypatch, forgotten
):
    for place in install(tmp_path / "site", {group: {"wrong": "wellsep_example:EXAMPLE_NUMBER"}}):
        monkeypatch.syspath_prepend(place)
    import wellsep_example

    monkeypatch.setattr(wellsep_example, "EXAMPLE_NUMBER", 3, raising=False)
    with pytest.raises(TypeError, match="'wrong' .* of the package wellsep-example must be"):
        ask()


# --- the kit finds what is broken ----------------------------------------------------------------


def broken_index(formula, **facts):
    given = {"direction": 1, "range": (0, np.inf), "cost": "n·d", "citation": "none", "laws": ()}
    return make_index(formula, **{"name": "broken", "title": "Broken", **given, **facts})


def spread(clusters, within):
    return float(within.sum())


def test_the_kit_finds_a_law_that_does_not_hold():
    with pytest.raises(AssertionError, match="broken: the law 'scale' must hold"):
        check_index(broken_index(spread, laws=("scale",)))


def test_the_kit_finds_a_value_outside_of_the_range():
    with pytest.raises(AssertionError, match=r"broken: a value must lie in \[0, 1\]"):
        check_index(broken_index(spread, range=(0, 1), sparse=True))


def test_the_kit_finds_weights_that_are_not_counted():
    def unweighted(objects):
        return float(np.abs(np.asarray(objects.X)).sum())

    with pytest.raises(AssertionError, match="broken: an object of weight 0 must not count"):
        check_index(broken_index(unweighted))
    assert "broken" not in ws.INDICES


def test_the_kit_finds_a_metric_that_is_not_symmetric_although_it_says_so():
    def lopsided(i, j, xp):
        table = np.abs(i.X[:, None, 0] - j.X[None, :, 0])
        return np.where(i.X[:, None, 0] > j.X[None, :, 0], 2 * table, table)

    one_sided = Metric("lopsided", prepare=METRICS["euclidean"].prepare, block=lopsided)
    with pytest.raises(AssertionError, match="lopsided: distances must be symmetric"):
        check_metric(one_sided)


def test_the_kit_finds_distances_that_are_not_the_expected_ones():
    X, _ = make_blobs(1)
    with pytest.raises(AssertionError, match="euclidean: distances"):
        check_metric("euclidean", X, np.abs(X[:, None] - X).sum(axis=-1))


def test_the_kit_finds_an_adapter_that_changes_its_mind_or_its_source(tmp_path):
    calls = []

    def moody(source, *, name=None):
        calls.append(source)
        return ws.Runs.from_parts(None, {"a": [0, len(calls)], "b": [0, 1]})

    with pytest.raises(AssertionError, match="the same runs twice: 'a' differs"):
        check_adapter(moody, "anything")

    def greedy(source, *, name=None):
        source.write_text("mine now")
        return ws.Runs.from_parts(None, {"a": [0, 1], "b": [0, 0]})

    (tmp_path / "source").write_text("yours")
    with pytest.raises(AssertionError, match="must not change its source"):
        check_adapter(greedy, tmp_path / "source")
