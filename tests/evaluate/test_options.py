"""An option is one field and one flag; it is checked, parsed and encoded once, at the door."""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass, fields

import numpy as np
import pytest
import typer

import wellsep as ws
import wellsep.evaluate
from wellsep import partitions
from wellsep.cli.main import build_app
from wellsep.evaluate import options as options_module
from wellsep.evaluate.keywords import takes_options
from wellsep.evaluate.options import (
    AceOptions,
    ConfidenceOptions,
    Options,
    ScoreOptions,
    Settings,
)
from wellsep.records import AceResult

CALLS = {
    "ace": (AceOptions, 1),
    "score_runs": (ScoreOptions, 1),
    "rank_confidence": (ConfidenceOptions, 3),
    "judge": (Options, 1),
}
# What the shell has no flag for: a choice among the indices is their order, the rest is the page's.
WITHOUT_FLAG = {
    "details", "feature_names", "index", "leave_out", "level", "n_groups", "n_plotted",
    "progress", "redo_dip", "tie_tolerance", "undefined",
}  # fmt: skip
FLAGS = {
    "X": "--input", "indices": "--index", "n_draws": "--draws",
    "n_jobs": "--jobs", "random_state": "--seed",
}  # fmt: skip


def made(n=90, spaces=3):
    rng = np.random.default_rng(0)
    truth = np.arange(n) % 3
    labels = {
        f"{wrong:.0%}": np.where(rng.random(n) < wrong, rng.integers(0, 3, n), truth)
        for wrong in (0.0, 0.2, 0.4, 0.8)
    }
    return ws.Runs.from_parts(
        {f"s{i}": rng.normal(size=(n, 3)) + 6 * np.eye(3)[truth] for i in range(spaces)}, labels
    )


def names_of(kind):
    return [option.name for option in fields(kind) if option.init]


@pytest.mark.parametrize("name", CALLS)
def test_every_field_is_a_keyword_with_its_default_and_its_sentence(name):
    kind, n_data = CALLS[name]
    keywords = list(inspect.signature(getattr(wellsep.evaluate, name)).parameters.values())[n_data:]
    assert sorted(p.name for p in keywords) == sorted(names_of(kind))
    for parameter in keywords:
        assert parameter.default == inspect.signature(kind).parameters[parameter.name].default
        entry = rf"^{parameter.name} : .+\n    \S"
        assert len(re.findall(entry, getattr(wellsep.evaluate, name).__doc__, re.MULTILINE)) == 1
    assert "**options" not in getattr(wellsep.evaluate, name).__doc__


def test_every_option_of_judge_is_a_flag_of_rank():
    command = typer.main.get_command(build_app()).commands["rank"]
    flags = {flag for parameter in command.params for flag in parameter.opts}
    names = set(names_of(Options))
    assert names >= WITHOUT_FLAG
    wanted = {FLAGS.get(name, "--" + name.replace("_", "-")) for name in names - WITHOUT_FLAG}
    assert wanted <= flags


def test_the_defaults_of_the_flags_are_those_of_the_options():
    command = typer.main.get_command(build_app()).commands["rank"]
    given = {p.name: p.default for p in command.params if p.name in names_of(Options)}
    # Text that may be "none"; the shell's list of indices; drawn only where a page is written.
    different = {"alpha", "index", "layout"}
    plain = {name: getattr(Options(), name) for name in given if name not in different}
    assert {name: given[name] for name in plain} == plain
    assert float(given["alpha"]) == Options().alpha


def test_a_new_option_is_one_field():
    @dataclass(frozen=True, kw_only=True)
    class Coloured(ScoreOptions):
        """Options with one more.

        Parameters
        ----------
        colour : str
            What to paint.
        """

        colour: str = options_module._option("red", options_module._one_of(("red", "blue")))

    @takes_options(Coloured)
    def paint(runs, options):
        """Paint runs.

        Parameters
        ----------
        runs : Runs
        **options
            The fields of Coloured.

        Returns
        -------
        str
        """
        return options.colour, options.noise

    assert paint(None, colour="blue", noise="exclude") == ("blue", "exclude")
    assert "colour : str\n    What to paint.\n" in paint.__doc__
    assert paint.__doc__.index("colour") < paint.__doc__.index("Returns")
    with pytest.raises(ValueError, match="colour must be one of 'red', 'blue', got 'green'"):
        paint(None, colour="green")
    with pytest.raises(TypeError, match=r"^paint\(\) got an unexpected keyword argument 'color'"):
        paint(None, color="red")


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"noise": "keep"}, "noise must be one of"),
        ({"convention": "paper"}, "convention must be one of"),
        ({"projection": "tsne"}, "projection must be one of"),
        ({"n_plotted": -1}, "n_plotted must be at least 0, got -1"),
        ({"n_draws": -1}, "n_draws must be at least 0, got -1"),
        ({"n_groups": 1}, "n_groups must be at least 2, got 1"),
        ({"leave_out": 1.0}, "leave_out must be at most 0.95, got 1.0"),
        ({"level": 0.0}, "level must be greater than 0.0, got 0.0"),
        ({"grouping": "kmeans"}, "grouping must be one of"),
        ({"alpha": 2.0}, "alpha must be at most 1.0, got 2.0"),
        ({"index": "dunn"}, "index must be one of 'silhouette', got 'dunn'"),
        ({"indices": ["no such"]}, "indices must be among"),
    ],
)
def test_a_wrong_option_is_refused_before_a_space_is_opened(wrong, sentence, monkeypatch):
    monkeypatch.setattr("wellsep.evaluate.judging.score_spaces", lambda *_: pytest.fail("opened"))
    with pytest.raises(ValueError, match=sentence):
        ws.judge(made(), **wrong)


@pytest.mark.parametrize("n_draws", [0, 4])
def test_a_judgement_encodes_each_label_vector_once(n_draws, monkeypatch):
    encoded, encode = [], partitions._encode
    monkeypatch.setattr(partitions, "_encode", lambda *a: encoded.append(a[-1]) or encode(*a))
    runs = made()
    ws.judge(runs, n_draws=n_draws, X=runs.spaces["s0"])
    assert encoded == list(runs.partitions)
    assert len(encoded) == 4


def test_a_judgement_parses_the_indices_once(monkeypatch):
    calls, parse = [], options_module.parse_indices
    monkeypatch.setattr(options_module, "parse_indices", lambda *a: calls.append(a) or parse(*a))
    ws.judge(made(), ["silhouette", "calinski_harabasz"], n_draws=4)
    assert len(calls) == 1


def test_the_deciding_index_may_be_any_of_those_computed():
    found = ws.judge(made(), ["silhouette", "davies_bouldin"], index="davies_bouldin", n_draws=2)
    assert found.answer.index == "davies_bouldin"
    assert set(found.ranking.by_other_index) == {"silhouette"}


def test_scores_keep_what_they_depend_on_and_nothing_of_how_they_were_made(tmp_path):
    scores = ws.score_runs(made(), n_jobs=1, noise="exclude", progress=print, cache=tmp_path / "c")
    assert scores.settings == Settings(noise="exclude")
    again = ws.Scores.load(scores.save(tmp_path / "scores"))
    assert again.settings == scores.settings
    assert again.index_specs == scores.index_specs
    assert again.index_specs["silhouette"][0] == "silhouette"


def test_the_answer_keeps_its_options(tmp_path):
    answer = ws.judge(made(), n_draws=0, links="hits", alpha=None).answer
    assert answer.options == AceOptions(links="hits", alpha=None)
    assert AceResult.load(answer.save(tmp_path)).options == answer.options
