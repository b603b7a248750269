"""`wellsep report` turns what was saved into a page, and `wellsep rank --report` writes one."""

from __future__ import annotations

import numpy as np
import pytest
from pages import small_choice, small_judgement, small_runs

from wellsep.cli.main import main


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with runs, their saved judgement, a saved choice of K, data and truth."""
    root = tmp_path_factory.mktemp("result")
    runs, truth = small_runs()
    chosen, X, _ = small_choice()
    runs.save(root / "runs.npz")
    small_judgement().save(root / "result")
    chosen.save(root / "chosen")
    np.save(root / "data.npy", X)
    np.save(root / "truth.npy", truth)
    return root


def test_a_saved_judgement_becomes_a_page(folder, tmp_path, capsys):
    page = tmp_path / "page.html"
    assert main(["report", str(folder / "result"), "-o", str(page)]) == 0
    assert "is the best</" not in page.read_text("utf-8")
    assert "is ranked first of 8 runs." in page.read_text("utf-8")
    assert f"wrote {page}" in capsys.readouterr().err


def test_runs_and_truth_add_their_sections(folder, tmp_path):
    page = tmp_path / "page.html"
    given = ["--runs", str(folder / "runs.npz"), "--truth", str(folder / "truth.npy")]
    assert main(["report", str(folder / "result"), "-o", str(page), *given]) == 0
    assert "Agreement with the true labels" in page.read_text("utf-8")


def test_a_saved_choice_of_k_becomes_a_page(folder, tmp_path):
    page = tmp_path / "page.html"
    runs = ["--runs", str(folder / "data.npy")]
    assert main(["report", str(folder / "chosen"), "-o", str(page), *runs]) == 0
    assert "is the median of" in page.read_text("utf-8")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nowhere"], "RESULT must be a folder that was saved"),
        (["result", "--truth", "truth.npy"], "truth must come with runs"),
        (["result", "--layout", "mds"], "layout must be one of"),
        (["result", "--space", "X_pca"], "--space must be left out for a result without a data"),
        (["."], "must hold a saved record"),
    ],
)
def test_a_mistake_is_one_sentence_and_exit_code_two(folder, arguments, words, capsys, monkeypatch):
    monkeypatch.chdir(folder)
    assert main(["report", *arguments]) == 2
    said = capsys.readouterr().err
    assert words in said
    assert "Traceback" not in said
    assert not (folder / "report.html").exists()


def test_ranking_writes_the_page_at_once(folder, tmp_path):
    page = tmp_path / "page.html"
    arguments = ["--draws", "0", "--cache", "none", "--report", str(page), "--truth"]
    runs = ["rank", str(folder / "runs.npz"), *arguments, str(folder / "truth.npy")]
    assert main(runs) == 0
    assert "Agreement with the true labels" in page.read_text("utf-8")
