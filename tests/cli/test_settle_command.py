"""wellsep settle: questions in words, answers from a file, labels as Python gives them."""

import csv
import json

import numpy as np
import pytest
from contested import contested_judgement

from wellsep.cli.main import main
from wellsep.evaluate import Judgement


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A saved ranking with a question."""
    folder = tmp_path_factory.mktemp("settle") / "result"
    judgement = contested_judgement()
    assert judgement.questions
    judgement.save(folder)
    return folder


def test_the_questions_and_their_answers_are_printed(saved, capsys):
    assert main(["settle", str(saved)]) == 0
    out = " ".join(capsys.readouterr().out.split())
    judgement = Judgement.load(saved)
    for question in judgement.questions:
        assert " ".join(question.text.split()) in out
        for side in question.sides:
            assert f"{side.words!r}" in out


def test_answers_from_a_file_give_the_labels_that_python_gives(saved, tmp_path, capsys):
    judgement = Judgement.load(saved)
    question = judgement.questions[0]
    answers = {question.id: question.sides[-1].words}
    file = tmp_path / "answers.json"
    file.write_text(
        json.dumps({"wellsep": "answers", "run": judgement.agreed.run, "answers": answers})
    )
    output = tmp_path / "labels.csv"
    assert main(["settle", str(saved), "--answers", str(file), "--output", str(output)]) == 0
    with output.open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert [row["group"] for row in rows] == judgement.settle(answers).tolist()
    assert [row["group"] for row in rows] == judgement.settle(file).tolist()
    assert list(rows[0]) == ["id", "support", "group"]
    support = [float(row["support"]) for row in rows]
    assert support == pytest.approx(judgement.clusters.object_support.tolist())


def test_a_file_about_another_run_is_refused(saved, tmp_path, capsys):
    file = tmp_path / "answers.json"
    file.write_text(json.dumps({"wellsep": "answers", "run": "another", "answers": {}}))
    assert main(["settle", str(saved), "-a", str(file)]) == 2
    assert "must hold answers about the groups of" in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize("content", ["[]", '{"answers": {}}', '{"wellsep": "answers"}', "{"])
def test_a_file_without_answers_is_refused(saved, tmp_path, capsys, content):
    file = tmp_path / "answers.json"
    file.write_text(content)
    assert main(["settle", str(saved), "-a", str(file)]) == 2
    assert str(file.name) in capsys.readouterr().err.replace("\n", "")


def test_the_json_has_questions_and_labels(saved, capsys):
    assert main(["settle", str(saved), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    judgement = Judgement.load(saved)
    assert [q["id"] for q in told["questions"]] == [q.id for q in judgement.questions]
    assert told["labels"] == judgement.settle().tolist()


def test_labels_alone_go_to_an_npy_file(saved, tmp_path, capsys):
    output = tmp_path / "labels.npy"
    assert main(["settle", str(saved), "-o", str(output)]) == 0
    assert np.load(output).tolist() == Judgement.load(saved).settle().tolist()
