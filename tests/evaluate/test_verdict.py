"""Each verdict has a case that calls for it and one that just does not; its words are one."""

from __future__ import annotations

import html
import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from contested import contested_judgement
from sklearn.cluster import KMeans
from verdict_cases import camps, cloud, crowd, equals, input_of, noisy, six, square

import wellsep as ws
from wellsep.cli.main import main
from wellsep.evaluate.words.verdict import KINDS, WORTH, worth_table
from wellsep.records import Judgement
from wellsep.runs import Runs

DRAWS = 20
DOCS = Path(__file__).parents[2] / "docs"


def judged(runs, **options):
    return ws.judge(runs, n_draws=DRAWS, details=False, **options)


def judged_with_input(runs, **options):
    return judged(runs, X=input_of(runs), **options)


@pytest.mark.parametrize(
    ("runs", "judge", "kind"),
    [
        (cloud(0), "auto", "nothing to cluster"),
        (cloud(2), "auto", "nothing to cluster"),
        (cloud(3), "auto", "practically tied"),  # a gain of .08: not nothing
        (camps(), "auto", "two camps"),
        (camps(batch=2), "auto", "clear"),  # two runs are no camp
        (camps(shared=0.6), "auto", "clear"),  # the camps have something in common
        (crowd(0.25), "auto", "judges disagree"),
        (crowd(0.20), "auto", "clear"),  # the judges' picks have an ARI of .504
        (crowd(0.15), "ace", "stands alone"),
        (crowd(0.10), "ace", "clear"),  # support .77
        (square(1.00), "ace", "practically tied"),
        (square(1.02), "ace", "clear"),  # first in 85 % of the draws
    ],
    ids=[
        "noise", "faint", "two", "camps", "few", "shared", "disagree", "agree", "alone",
        "supported", "square", "rectangle",
    ],
)  # fmt: skip
def test_each_verdict_has_a_case_and_one_that_just_is_none(runs, judge, kind):
    found = judged_with_input(runs, judge=judge).verdict
    assert found.kind == kind
    assert found.kind in KINDS
    assert found.headline.endswith(".")


@pytest.mark.parametrize("kind", KINDS)
def test_the_pictures_of_the_guide_show_the_verdict_they_are_named_after(kind):
    runs, options = six()[kind]
    assert judged(runs, **options).verdict.kind == kind
    for width in (1440, 390):
        name = f"verdict-{kind.replace(' ', '-')}-{width}.png"
        assert (DOCS / "_static" / name).stat().st_size > 10_000
        assert f"../_static/{name}" in (DOCS / "guides" / "verdict.md").read_text(encoding="utf-8")


def test_noise_is_said_to_be_nothing_before_any_winner_is_named():
    judgement = judged_with_input(cloud(0))
    shown = judgement.explain()
    names = "|".join(re.escape(repr(name)) for name in judgement.ranking.names)
    assert shown.startswith("Nothing to cluster")
    assert re.search(names, shown).start() > shown.index("is clearer than")
    assert re.search(names, judgement.verdict.headline) is None
    assert abs(judgement.structure.gain) < 0.05


def test_little_structure_is_a_remark_and_much_is_none():
    judgement = judged_with_input(crowd(0.10), judge="ace")
    said = "little clearer than those that k-means finds"
    for gain, remarked in ((0.05, True), (0.119, True), (0.12, False), (0.3, False)):
        made = replace(judgement, structure=replace(judgement.structure, gain=gain))
        assert made.verdict.kind == "clear"
        assert (said in " ".join(made.verdict.second)) is remarked
    made = replace(judgement, structure=replace(judgement.structure, gain=0.049))
    assert made.verdict.kind == "nothing to cluster"


def test_the_dip_test_is_a_remark_and_never_a_headline():
    judgement = judged(crowd(0.10), judge="ace")
    ace = judgement.by_ace
    quiet = replace(ace, screen=replace(ace.screen, none_passed=True))
    made = replace(judgement, answers={**judgement.answers, "ace": {ace.index: quiet}})
    assert made.verdict.kind == "clear"
    assert "No embedding passes the dip test for more than one mode." in made.verdict.second


def test_runs_that_are_one_partition_are_one_answer():
    found = judged(equals()).verdict
    assert found.kind == "clear"
    assert found.headline == (
        "'same 0' (K = 3) is ranked first of 20 runs. It comes first in 19 of 20 half-samples. "
        "15 runs found it."
    )
    assert found.facts["found_by"] == 15
    assert found.facts["first_in"] == 0.95


def nearly_equal(seed, n=120):
    """Clusterings of which some differ by a few objects, in three or four clusters."""
    rng = np.random.default_rng(seed)
    truth = np.arange(n) % 3
    spaces = {s: rng.normal(size=(n, 2)) + 5 * np.eye(3)[truth, :2] for s in "abc"}
    labels = {}
    for i, moved in enumerate((0, 0, 1, 2, 3, 10, 40, 60)):
        labels[f"k{i}"] = truth.copy()
        at = rng.permutation(n)[:moved]
        labels[f"k{i}"][at] = 3 if i % 2 else (truth[at] + 1) % 3
    some = rng.permutation(list(labels))[: 5 + seed % 4]
    return Runs.from_parts(spaces, {name: labels[name] for name in some})


@pytest.mark.parametrize("judge", ["ace", "consensus"])
@pytest.mark.parametrize("seed", range(10))
def test_the_share_and_the_count_of_a_verdict_are_those_of_the_rows_it_names(seed, judge):
    judgement = judged(nearly_equal(seed), judge=judge, random_state=seed)
    ranking, verdict = judgement.ranking, judgement.verdict
    rows = dict(zip(ranking.columns()["partition"], ranking.columns()["first_in"], strict=True))
    said = " ".join(verdict.sentences())
    told = " ".join((verdict.headline, *verdict.second))
    for name, times in re.findall(r"'([^']+)'[^.]*(?:\. It)? comes first in (\d+) of 20", told):
        assert round(rows[name] * DRAWS) == int(times)
    for name, times in re.findall(r"'([^']+)' does more often, in (\d+)\.", told):
        assert round(rows[name] * DRAWS) == int(times) > round(rows[ranking.best] * DRAWS)
    best = ranking.names.index(ranking.best)
    n_equal = int((ranking.classes.of == ranking.classes.of[best]).sum())
    assert verdict.facts["found_by"] == n_equal
    for count in re.findall(r"(\d+) runs found it\.|found by (\d+) runs", said):
        assert int("".join(count)) == n_equal


def test_without_the_input_the_test_is_not_made_and_the_verdict_says_so():
    judgement = judged(cloud(0))
    assert judgement.structure is None and judgement.verdict.facts["above_structureless"] is None
    assert judgement.verdict.kind != "nothing to cluster"
    untested = "Whether there is anything to cluster was not tested: that needs the input (X)."
    assert untested in judgement.verdict.second
    assert untested not in judged_with_input(cloud(3)).verdict.second


def test_where_all_clusters_are_small_the_verdict_says_that_this_was_not_tested():
    rng = np.random.default_rng(0)
    X = np.repeat(20 * rng.normal(size=(40, 3)), 6, axis=0) + rng.normal(size=(240, 3))
    labels = {"a": np.repeat(np.arange(40), 6), "b": np.arange(240) % 40}
    told = ws.judge(ws.Runs.from_parts({"X": X}, labels), X=X, n_draws=0).explain()
    assert "was not tested: no clustering of the input has two clusters with 5 % of" in told


def test_silence_of_the_test_is_said_to_be_no_evidence():
    silent = judged_with_input(equals())
    assert silent.verdict.kind == "clear"
    assert "That is no evidence for clusters" in silent.explain()
    assert "no evidence for clusters" not in judged_with_input(cloud(0)).explain()


def test_labels_alone_are_tested_where_the_input_is_given():
    runs = cloud(0)
    alone = Runs.from_parts(None, dict(runs.partitions))
    assert judged(alone, X=input_of(runs)).verdict.kind == "nothing to cluster"


def same_runs(n_runs, spaces=True, gap=6):
    rng = np.random.default_rng(0)
    truth = np.arange(150) % 3
    made = {s: rng.normal(size=(150, 2)) + gap * np.eye(3)[truth, :2] for s in "abc"}
    labels = KMeans(3, n_init=2, random_state=0).fit_predict(made["a"])
    names = {f"run {i}": (labels + i) % 3 for i in range(n_runs)}
    return Runs.from_parts(made if spaces else None, names)


@pytest.mark.parametrize("spaces", [True, False], ids=["spaces", "labels"])
def test_runs_that_are_all_equal_leave_nothing_to_choose(spaces, tmp_path):
    judgement = judged(same_runs(15, spaces), X=input_of(same_runs(15)) if spaces else None)
    said = judgement.verdict
    assert said.kind == "clear"
    assert said.headline == (
        "All 15 runs found the same clustering, 'run 0' (K = 3), so there is nothing to choose "
        "between."
    )
    assert said.next == "Next: look at its clusters, and add runs with other settings to compare."
    assert (said.facts["found_by"], said.facts["different_runs"]) == (15, 1)
    assert (said.facts["above_structureless"] is None) is not spaces
    assert judgement.explain().startswith(said.headline)
    assert "No judge had to decide: all runs are the same clustering." in judgement.explain()
    assert judgement.ranking.rank.tolist() == [1] * 15
    page = ws.render_report(judgement, tmp_path / "r.html").read_text(encoding="utf-8")
    assert "found the same clustering" in page
    again = Judgement.load(judgement.save(tmp_path / "saved"))
    assert again.verdict.explain() == said.explain()


def test_two_equal_runs_are_called_both():
    assert judged(same_runs(2)).verdict.headline.startswith("Both runs found the same clustering")


def test_equal_runs_in_noise_are_still_nothing_to_cluster():
    said = judged_with_input(same_runs(15, gap=0)).verdict
    assert said.kind == "nothing to cluster"
    assert said.second[0].startswith("All 15 runs found the same clustering, 'run 0'")


def test_a_tie_says_how_many_runs_found_the_first():
    runs = square(1)
    labels = dict(runs.partitions)
    labels |= {f"left or right, again {i}": 1 - labels["left or right"] for i in range(14)}
    said = judged(Runs.from_parts(dict(runs.spaces), labels), judge="ace").verdict
    assert said.kind == "practically tied"
    assert "'left or right' (found by 15 runs) and 'up or down'" in said.headline
    assert "runs found it" not in " ".join(said.second)


def test_a_copy_changes_neither_verdict_nor_shares():
    one, many = judged(equals(1)), judged(equals(15))
    assert one.verdict.kind == many.verdict.kind
    assert one.verdict.second == many.verdict.second
    for fact in ("first_in", "relative_agreement", "ari_of_picks", "tied", "above_structureless"):
        assert one.verdict.facts[fact] == pytest.approx(many.verdict.facts[fact])


@pytest.mark.parametrize("runs", [cloud(3), crowd(0.15), square(1)], ids=["k", "ace", "tied"])
def test_the_order_of_the_runs_changes_no_word(runs):
    spaces, labels = dict(runs.spaces), dict(runs.partitions)
    pairs = {run.name: run.space for run in runs if run.space}
    backwards = Runs.from_parts(
        dict(reversed(spaces.items())), dict(reversed(labels.items())), pairs=pairs
    )
    assert judged(backwards).verdict.explain() == judged(runs).verdict.explain()


def test_the_same_words_are_in_terminal_page_explanation_and_json(tmp_path, capsys):
    runs = cloud(3, n=120)
    runs.save(tmp_path / "runs.npz")
    arguments = ["rank", str(tmp_path / "runs.npz"), "--draws", str(DRAWS), "--cache", "none"]
    files = ["--report", str(tmp_path / "r.html"), "--save", str(tmp_path / "saved")]
    assert main([*arguments, *files]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert main([*arguments, "--json"]) == 0
    said = ws.judge(runs, n_draws=DRAWS).verdict
    assert len(said.second) >= 3
    data = json.loads(capsys.readouterr().out)["verdict"]
    sentences = list(said.sentences())
    assert [data["groups"], data["headline"], *data["second"], data["next"]] == sentences
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    answer = page[page.index('<h1 id="lead">') : page.index('<dl class="facts">')]
    on_page = html.unescape(re.sub("<[^>]+>", " ", answer))
    told = Judgement.load(tmp_path / "saved").explain().splitlines()
    assert told[: len(sentences)] == sentences
    for sentence in sentences:
        assert " ".join(sentence.split()) in shown
        assert re.sub(r"\s", "", sentence) in re.sub(r"\s", "", on_page)


def test_the_k_that_were_tried_are_said_once_where_a_vote_decides():
    judgement = judged(cloud(3))
    assert judgement.judge == "consensus"
    limit = "Only the numbers of clusters that were tried (2 to 6) can be ranked."
    assert limit in judgement.verdict.second
    assert judgement.explain().count("tried") == 1
    assert "tried" not in judged(cloud(3), judge="ace").verdict.explain()


def test_zero_has_no_sign():
    judgement = judged(camps())
    assert -0.005 < judgement.verdict.facts["camps"]["between"] < 0
    assert "ARI 0.00 between them" in judgement.verdict.headline
    flat = replace(judged_with_input(cloud(0)).structure, gain=-0.001)
    for text in (flat.explain(), replace(judgement, structure=flat).verdict.explain()):
        assert "0.00" in text and not re.search(r"[-+]0\.00\b", text)


def test_no_verdict_is_called_clear_while_questions_are_open():
    settled, contested = judged(equals()).verdict, contested_judgement().verdict
    assert (settled.kind, settled.label) == ("clear", "clear")
    assert (contested.kind, contested.facts["questions"]) == ("clear", 1)
    assert contested.label == "questions open"
    assert contested.heading == "Verdict: questions open"


def test_the_best_at_the_edge_of_k_is_pointed_out():
    judgement = judged(cloud(3))
    for best, said in (
        (2, None),
        (3, None),
        (6, "largest K tried (6): try more."),
    ):
        scores = np.where(judgement.ranking.n_clusters == best, 1.0, 0.0)
        vote = replace(judgement.vote, distinct_scores=scores[judgement.vote.classes.first])
        made = replace(judgement, answers={**judgement.answers, "consensus": {"silhouette": vote}})
        edge = [s for s in made.verdict.second if "The best has" in s]
        assert edge == ([] if said is None else [f"The best has the {said}"])
        assert sum("can be ranked" in s for s in made.verdict.second) == 1


def test_few_runs_one_space_and_noise_stand_in_the_second_line():
    rng = np.random.default_rng(0)
    truth = np.arange(120) % 3
    X = rng.normal(size=(120, 2)) + 6 * np.eye(3)[truth, :2]
    some = np.where(np.arange(120) % 8 == 0, -1, truth)
    two = {"three": some, "pair": truth > 0}
    found = judged(Runs.from_parts({"flat": X}, two)).verdict
    text = " ".join(found.second)
    assert "There is one embedding only" in text
    assert "only two different clusterings a ranking means little" in text
    assert "It puts 88% of the objects into clusters" in text
    more = {f"noisy {i}": noisy(truth, 0.1 * i, rng) for i in range(1, 3)}
    found = judged(Runs.from_parts({"flat": X}, {**two, **more})).verdict
    assert "There are only 4 different clusterings" in " ".join(found.second)
    more["another"] = noisy(truth, 0.5, rng)
    found = judged(Runs.from_parts({"flat": X}, {**two, **more})).verdict
    assert "different clusterings" not in " ".join(found.second)


def test_a_rank_outside_its_interval_gets_a_word():
    judgement = judged(crowd(0.10), judge="ace")
    sure = judgement.confidence
    low = np.maximum(sure.interval, [[2, 3]])
    made = replace(judgement, confidence=replace(sure, interval=low))
    assert "'own' has rank 1, but ranks 2 to 3 in 90% of the half-samples." in made.verdict.second
    assert "lies outside the interval of their ranks" in made.explain()
    assert "'own' lies outside" not in judgement.explain()
    assert "has rank 1, but" not in judgement.explain()


@pytest.mark.parametrize("moved", [0.15, 0.20])
def test_nothing_is_called_certain_or_probable(moved):
    for judge in ("ace", "consensus"):
        said = judged(crowd(moved), judge=judge).explain().lower()
        assert not re.search(r"\bcertain\b|\bprobabl|\bp_best\b", said)


def test_where_every_judge_beside_it_picks_another_run_the_headline_says_so():
    found = judged(crowd(0.10)).verdict
    assert "Every judge and baseline beside it picks another run." in found.headline
    assert "Every judge" not in judged(equals()).verdict.headline


def test_the_share_of_k_stands_beside_that_of_the_run():
    judgement = judged(cloud(4))
    facts = judgement.verdict.facts
    assert sum(facts["first_in_by_k"].values()) == pytest.approx(1)
    k = int(judgement.ranking.n_clusters[judgement.ranking.order[0]])
    assert f"K = {k} in {round(facts['first_in_by_k'][k] * DRAWS)}" in judgement.verdict.explain()


def test_what_a_share_is_worth_is_read_from_the_shipped_table():
    judgement = judged(equals())
    share = judgement.verdict.facts["first_in"]
    row = next(row for row in worth_table() if share >= row["low"])
    sentence = WORTH.format(**row)
    assert sentence in judgement.verdict.second
    counts = row["best_quarter"], row["above_median"], row["lost_less"]
    assert f"In {row['trials']} trials on {row['sets']} data sets with known classes" in sentence
    for words, count in zip(
        ("quarter of the runs", "median run", "to the best"), counts, strict=True
    ):
        assert f"{words} in {count}" in sentence
        assert isinstance(count, int) and count <= row["trials"]
    guide = (DOCS / "guides" / "verdict.md").read_text(encoding="utf-8")
    for one in worth_table():
        cells = (one[k] for k in ("trials", "sets", "best_quarter", "above_median", "lost_less"))
        assert f"| {' | '.join(map(str, cells))} ({one['loss']:.2f}) |" in guide
    lows = [one["low"] for one in worth_table()]
    assert lows == sorted(lows, reverse=True) and lows[-1] == 0
    assert all(one["trials"] >= 10 for one in worth_table())
    assert judged(equals(), judge="ace").verdict.facts["worth"] is None  # measured for the vote


def test_two_camps_are_named_with_their_best_runs_and_what_tells_them_apart():
    found = judged(camps()).verdict
    assert "two camps that have little in common (8 and 5 runs" in found.headline
    best, other = re.search(r"Best of each: '([^']+)' and '([^']+)'", found.headline).groups()
    assert best.startswith("kind") and other.startswith("batch")
    assert "They differ in embedding: kind 0, kind 1, kind 2" in found.headline
    assert {name.split()[0] for name in found.facts["camps"]["second"]} == {"batch"}


def test_embeddings_that_contradict_each_other_are_not_said_to_agree():
    rng = np.random.default_rng(0)
    sides = {"x": np.arange(240) % 2, "y": np.arange(240) % 4 // 2}
    spaces = {s: rng.normal(size=(240, 2)) + 5 * np.outer(v, [1, 0]) for s, v in sides.items()}
    labels = {f"{s} {i}": noisy(v, i / 10, rng) for s, v in sides.items() for i in range(3)}
    opposed = judged(Runs.from_parts(spaces, labels), judge="ace")
    assert "the runs in opposite ways (mean correlation -" in " ".join(opposed.verdict.second)
    assert "winning embeddings agree" not in opposed.explain()
    agreed = judged(square(1.02), judge="ace")
    assert "opposite ways" not in agreed.explain()
    assert "winning embeddings agree" in agreed.explain()


def test_labels_alone_ask_for_embeddings_next():
    labels = dict(equals(2).partitions)
    found = judged(Runs.from_parts({}, labels)).verdict
    assert found.kind == "clear"
    assert found.next.startswith("Next: rank again with embeddings")


def test_a_run_of_noise_does_not_widen_the_k_that_were_tried():
    labels = dict(cloud(3).partitions) | {"noise": np.full(200, -1), "one": np.zeros(200, int)}
    assert "that were tried (2 to 6)" in ws.consensus(labels).explain()


def test_the_next_best_is_named_however_long_the_names():
    names = {"a clustering with a very long name": 0.0, "another with a long name as well": 0.3}
    rng = np.random.default_rng(0)
    spaces, truth = dict(crowd(0).spaces), np.arange(240) % 3
    runs = Runs.from_parts(spaces, {name: noisy(truth, s, rng) for name, s in names.items()})
    assert "Next: 'another with a long name as well' (" in judged(runs).explain()


def test_a_share_that_was_not_computed_is_not_claimed():
    found = ws.judge(equals(), n_draws=0, details=False).verdict
    assert found.headline == (
        "'same 0' (K = 3) is ranked first of 20 runs. How stable this is was not computed. "
        "15 runs found it."
    )
    assert found.next.startswith("Next: rank again with 100 half-samples")


def test_limits_are_said_wherever_an_answer_is():
    for runs in (cloud(3), crowd(0.10)):
        assert "every method here can be wrong in the same way" in judged(runs).explain().lower()
