"""Every public result shows itself in few lines and in a notebook; every record comes back."""

from __future__ import annotations

import inspect
import json
import re
import sys
from dataclasses import dataclass, fields, is_dataclass
from html import unescape

import numpy as np
import pytest
from contested import contested_judgement
from sklearn.base import BaseEstimator

import wellsep as ws
from wellsep import records
from wellsep._files.arrays import to_json
from wellsep._files.records import MANIFEST, RECORD, Record
from wellsep._text.sentences import Shown, Views
from wellsep.spaces import holm

EVIL = "<script>alert('x')</script>"


def made_runs(n=60):
    rng = np.random.default_rng(0)
    truth = np.arange(n) % 3
    spaces = {name: rng.normal(size=(n, 2)) + 6 * np.eye(3)[truth, :2] for name in ("a", EVIL)}
    labels = {"true": truth, EVIL: truth > 0, "mixed": rng.integers(0, 3, n)}
    return ws.Runs.from_parts(spaces, labels), truth


@pytest.fixture(scope="module")
def results():
    runs, truth = made_runs()
    X = runs.spaces["a"]
    indices = ["silhouette", "calinski_harabasz"]
    judgement = ws.judge(runs, indices, dip=False, n_draws=6, X=X)
    agreed = contested_judgement().agreed
    made = [
        judgement,
        judgement.clusters,
        agreed,
        agreed.questions[0],
        ws.explore(X, methods=["k-means"], k=(2, 3), n_draws=4, random_state=0),
        judgement.scores,
        judgement.by_ace,
        judgement.ranking,
        judgement.confidence,
        judgement.details,
        judgement.embeddings,
        judgement.structure,
        judgement.verdict,
        ws.agreement(judgement.ranking, runs, truth),
        ws.consensus(runs, index={"true": 0.9, EVIL: 0.5, "mixed": 0.0}),
        ws.consensus_partition(runs),
        ws.choose_k(X, range(2, 5), indices=indices, random_state=0),
        ws.stability(ws.KMeans(3), X, runs.partitions[EVIL], n_draws=4, n_splits=2),
        ws.describe_clusters(X, truth, [EVIL, "b"], ids=[EVIL] * len(X)),
        ws.resolution_tree(runs),
        ws.score_partitions(X, runs.partitions),
        ws.local_connectivity(X, truth),
        ws.membership_report(X, runs.partitions["mixed"], ids=[EVIL] * len(X)),
        ws.gap_statistic(X, range(1, 4), n_references=3, random_state=0),
        ws.silhouette_estimate(X, truth),
        ws.multimodality(X),
        ws.dip_test(X[:, 0]),
        holm(np.linspace(0.001, 1, 300)),
        ws.load_dataset("iris"),
    ]
    return {type(result).__name__: result for result in made}


RECORDS = [
    "AceResult", "AgreedGroups", "Agreement", "ChosenK", "ClusterDescription", "Consensus",
    "ConsensusPartition", "EmbeddingRanking", "Exploration", "JudgedClusters", "Judgement",
    "PartitionDetails", "Question", "RankConfidence", "Ranking", "ResolutionTree", "Scores",
    "Stability",
]  # fmt: skip
PLAIN = [
    "Dataset", "DipResult", "GapStatistic", "HolmResult", "LocalConnectivity",
    "MembershipReport", "Multimodality", "PartitionScores", "SilhouetteEstimate",
]  # fmt: skip
# With a table and sentences; the last two have no public name.
BARE = ("Dataset", "Question")
RESULTS = [*(name for name in (*RECORDS, *PLAIN) if name not in BARE), "Structure", "Verdict"]


def test_no_public_record_is_left_out():
    public = [getattr(room, name) for room in (ws, records) for name in room.__all__]
    saved = [c for c in public if inspect.isclass(c) and issubclass(c, Record)]
    assert sorted(c.__name__ for c in saved if c is not ws.Ace) == RECORDS  # Ace: options
    plain = [c for c in public if inspect.isclass(c) and is_dataclass(c)]
    other = {c.__name__ for c in plain if not issubclass(c, BaseEstimator)} - set(RECORDS)
    assert other - set(PLAIN) <= {"Ace", "Run", "Runs"}  # no results


def equal(first, second):
    """Whether two values of a record are the same, arrays and records included."""
    if isinstance(first, np.ndarray):
        return first.dtype == second.dtype and np.array_equal(
            first, second, equal_nan=first.dtype.kind == "f"
        )
    if is_dataclass(first):
        saved = [f.name for f in fields(first) if f.metadata.get("saved", True)]
        return type(first) is type(second) and all(
            equal(getattr(first, name), getattr(second, name)) for name in saved
        )
    if isinstance(first, dict):
        return list(first) == list(second) and all(equal(first[k], second[k]) for k in first)
    if isinstance(first, tuple | list):
        return len(first) == len(second) and all(map(equal, first, second))
    return first == second or (first != first and second != second)


@pytest.mark.parametrize("name", RECORDS)
def test_a_record_comes_back_as_it_was(name, results, tmp_path):
    first = results[name]
    folder = first.save(tmp_path / "record")
    again = type(first).load(folder)
    assert equal(first, again)
    assert equal(first, ws.load(folder))
    assert repr(again) == repr(first)
    assert again._repr_html_() == first._repr_html_()


@pytest.mark.parametrize("name", RECORDS)
def test_the_file_of_a_record_names_its_format(name, results, tmp_path):
    folder = results[name].save(tmp_path / "record")
    manifest = json.loads((folder / MANIFEST).read_text())
    assert manifest["format"] == RECORD.version
    assert manifest["record"]["kind"] == name
    manifest["format"] = RECORD.version - 1
    (folder / MANIFEST).write_text(json.dumps(manifest))
    with pytest.raises(ValueError, match="was saved by an older version of wellsep; make it again"):
        type(results[name]).load(folder)


def heirs(kind):
    return {kind, *(heir for child in kind.__subclasses__() for heir in heirs(child))}


def test_no_result_is_left_out():
    kinds = {c.__name__ for c in heirs(Views) if c.__module__.startswith("wellsep.")}
    assert kinds - {"Views", "Result", "Answer"} == set(RESULTS)  # what these share


@pytest.mark.parametrize("name", RESULTS)
def test_the_rows_of_a_result_are_its_columns_as_plain_values(name, results):
    columns, rows = results[name].columns(), results[name].to_rows()
    assert len({len(values) for values in columns.values()}) == 1
    assert len(rows) > 0
    for column, values in columns.items():
        assert isinstance(values, list)
        assert not any(isinstance(value, np.generic | np.ndarray) for value in values)
        if (name, column) != ("EmbeddingRanking", "copies"):  # by name in the rows
            assert [str(row[column]) for row in rows] == [str(value) for value in values]
    assert {tuple(row) for row in rows} == {tuple(columns)}


@pytest.mark.parametrize("name", RESULTS)
def test_what_a_result_says_is_the_same_in_all_places(name, results):
    result = results[name]
    said = list(result.sentences())
    assert said
    assert all(isinstance(sentence, str) and sentence.strip() for sentence in said)
    assert result.explain() == "\n".join(said)
    text = result.to_dict()
    assert "explanation" not in text or list(text["explanation"]) == said or name == "Judgement"
    printed = str(result)
    if name == "PartitionScores":
        assert printed == repr(result)
    else:
        assert 0 < len(printed.splitlines()) <= 12
        assert set(printed.splitlines()) <= set(result.explain().splitlines())
    shown = unescape(result._repr_html_())
    assert all(sentence in shown for sentence in said)


@pytest.mark.parametrize("name", RESULTS)
def test_a_result_is_json(name, results):
    found = results[name].to_dict()
    assert (
        json.loads(json.dumps(to_json(found, nan="null"), allow_nan=False)).keys() == found.keys()
    )


@pytest.mark.parametrize("name", RESULTS)
def test_the_frame_of_a_result_has_its_columns(name, results):
    pytest.importorskip("pandas", reason="needs pandas")
    result = results[name]
    frame, columns = result.to_frame(), result.columns()
    if name == "Scores":  # one index as a matrix
        assert frame.to_numpy().ravel().tolist() == columns["silhouette"]
        return
    named = frame.reset_index() if result.row_names else frame
    assert sorted(named) == sorted(columns)
    for column, values in columns.items():
        np.testing.assert_array_equal(named[column].tolist(), values)


@pytest.mark.parametrize("name", RESULTS)
def test_a_frame_without_pandas_says_what_is_needed(name, results, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match=r"^to_frame needs pandas: pip install pandas; to_dict"):
        results[name].to_frame()


@pytest.mark.parametrize("name", RESULTS)
def test_a_result_has_its_own_sentences_and_no_view_of_its_own(name, results):
    own = vars(type(results[name])).keys()
    assert "sentences" in own
    assert not {"explain", "_repr_html_", "table"} & own


@pytest.mark.parametrize("name", ["AceResult", "RankConfidence", "PartitionScores"])
def test_a_frame_of_partitions_keeps_their_names(name, results):
    pytest.importorskip("pandas", reason="needs pandas")
    frame = results[name].to_frame()
    assert frame.index.name == "partition"
    assert frame.index.tolist() == list(results["Scores"].partitions)
    assert EVIL in frame.index


@pytest.mark.parametrize("name", [*RECORDS, *PLAIN])
def test_a_repr_has_at_most_ten_lines(name, results):
    text = repr(results[name])
    assert text.startswith(f"{name}(")
    assert text.endswith(")")
    assert len(text.splitlines()) <= 10
    assert max(map(len, text.splitlines())) <= 200


@pytest.mark.parametrize("name", [*RECORDS, *PLAIN])
def test_a_notebook_gets_a_table_or_sentences_and_no_script(name, results):
    shown = results[name]._repr_html_()
    assert shown.startswith("<div")
    assert "<table" in shown or "<p" in shown
    assert "<script" not in shown
    assert not re.search(r"\son\w+=|javascript:|https?://", shown)


@pytest.mark.parametrize("name", ["Scores", "Judgement", "AceResult", "RankConfidence"])
def test_a_repr_says_what_was_computed(name, results):
    text = repr(results[name])
    wanted = {
        "Scores": ["silhouette", "calinski_harabasz", "spaces=", "partitions="],
        "Judgement": ["scores=Scores(…)", "confidence=RankConfidence(…)", "judge='index'"],
        "AceResult": ["index='silhouette'", "partitions=(", "won_by="],
        "RankConfidence": ["ranks=array (6, 3)", "n_draws=6"],
    }
    for words in wanted[name]:
        assert words in text


def test_no_name_breaks_a_line_or_moves_the_cursor():
    names = ["\x1b[2J", "two\nlines", "long " * 100]
    text = repr(ws.Scores.from_matrix([[1.0, 2.0, 3.0]], partitions=names))
    assert "\x1b" not in text
    assert len(text.splitlines()) <= 10
    assert max(map(len, text.splitlines())) <= 100


def test_a_long_record_says_how_much_it_leaves_out():
    @dataclass(frozen=True)
    class Many(Shown):
        a: str = "x" * 300
        b: int = 1
        c: int = 1
        d: int = 1
        e: int = 1
        f: int = 1
        g: int = 1
        h: int = 1
        i: int = 1
        empty: tuple = ()

    lines = repr(Many()).splitlines()
    assert len(lines) == 10
    assert lines[-1] == "  … and 1 more)"
    assert all(len(line) <= 100 for line in lines)
    assert "empty" not in repr(Many())


def test_a_repr_of_its_own_is_kept():
    @dataclass(frozen=True)
    class Own(Shown):
        a: int = 1

        def __repr__(self):
            return "mine"

    @dataclass(frozen=True)
    class Heir(Own):
        b: int = 2

    assert (repr(Own()), repr(Heir())) == ("mine", "mine")
