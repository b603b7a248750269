"""README, quick start, demo, shell and Python give one answer to one question."""

from __future__ import annotations

import doctest
import json
import re
import shlex

import numpy as np
import pytest
from golden import ROOT

import wellsep as ws
from wellsep.cli.main import main


def example_of(page):
    """Folder and judgement of a page's first ranking of runs."""
    text = (ROOT / page).read_text(encoding="utf-8")
    names: dict = {}
    if plain := re.search(r"^```python\n(from .*?judge.*?)^```", text, re.MULTILINE | re.DOTALL):
        exec(compile(plain[1], page, "exec"), names)
        return "runs", names["judgement"]
    for example in doctest.DocTestParser().get_examples(text):
        exec(compile(example.source, page, "single"), names)
        if "judgement" in names:
            return "runs", names["judgement"]
    raise AssertionError(f"{page} ranks no runs")


def examples_of_the_readme():
    """(code, output) of the blocks with their output below: explore, which takes longer; judge."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    pattern = r"^```python\n(.*?)^```\n\n^```text\n(.*?)^```"
    explore, judge = re.findall(pattern, text, re.MULTILINE | re.DOTALL)
    return [
        pytest.param(*explore, 1, marks=pytest.mark.slow, id="explore"),
        pytest.param(*judge, 2, id="judge"),
    ]


@pytest.mark.parametrize(("code", "shown", "times"), examples_of_the_readme())
def test_an_example_of_the_readme_prints_what_stands_below_it(
    code, shown, times, tmp_path, monkeypatch, capsys
):
    assert len([line for line in code.splitlines() if line]) <= 20
    monkeypatch.chdir(tmp_path)
    for _ in range(times):  # everybody runs a cell twice
        exec(compile(code, "README.md", "exec"), {})
        assert capsys.readouterr().out == shown


def in_the_shell(capsys, *arguments):
    assert main(["rank", *arguments, "--cache", "none", "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def rows(table):
    """Name, score and certainty of each run, best first."""
    keys = ("partition", "score", "first_in")
    return [tuple(row[key] for key in keys) for row in table]


@pytest.mark.parametrize("page", ["README.md", "docs/tutorials/first-ranking.md"])
def test_the_shell_ranks_the_runs_of_a_page_as_python_does(page, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder, judgement = example_of(page)
    capsys.readouterr()  # what the page prints
    shell = in_the_shell(capsys, folder)
    assert shell["best"] == list(judgement.ranking.winners)
    python = json.loads(json.dumps(judgement.to_dict()["ranking"], default=np.ndarray.tolist))
    assert rows(shell["ranking"]) == rows(python)
    assert shell["explanation"] == list(judgement.explanation)


def clustered(n=90):
    """Data, clusterings of it by k-means, and the true classes."""
    rng = np.random.default_rng(0)
    truth = np.arange(n) % 3
    X = rng.normal(size=(n, 4)) + 6 * np.eye(3, 4)[truth]
    labels = {
        f"leiden_{k}": ws.KMeans(k, n_init=2, random_state=0).fit_predict(X) for k in (2, 3, 4)
    }
    return X, labels, truth


def test_anndata_gets_one_answer_from_object_file_and_shell(tmp_path, capsys):
    anndata = pytest.importorskip("anndata", reason="needs the extra anndata")
    pd = pytest.importorskip("pandas", reason="needs pandas")
    X, labels, _ = clustered()
    rng = np.random.default_rng(1)
    obs = pd.DataFrame({k: v.astype(str) for k, v in labels.items()}, [f"c{i}" for i in range(90)])
    obsm = {"X_pca": X, "X_scvi": X + rng.normal(size=X.shape), "X_umap": X[:, :2]}
    cells = anndata.AnnData(obs=obs, obsm=obsm)
    cells.write_h5ad(tmp_path / "cells.h5ad")
    python = ws.judge(cells, labels="leiden_*")
    shell = in_the_shell(capsys, str(tmp_path / "cells.h5ad"), "--labels", "leiden_*")
    assert shell["best"] == list(python.ranking.winners)
    assert rows(shell["ranking"]) == rows(python.to_dict()["ranking"])
    assert shell["explanation"] == list(python.explanation)
    from_file = ws.judge(ws.adapters.load_any(tmp_path / "cells.h5ad", labels="leiden_*"))
    assert from_file.explain() == python.explain()


def test_score_gives_one_answer_in_shell_and_python(tmp_path, capsys):
    X, labels, _ = clustered()
    labels["leiden_4"] = np.where(labels["leiden_4"] == 3, -1, labels["leiden_4"])  # with noise
    np.save(tmp_path / "x.npy", X)
    np.savez(tmp_path / "y.npz", **labels)
    assert main(["score", str(tmp_path / "x.npy"), str(tmp_path / "y.npz"), "--json"]) == 0
    shell = json.loads(capsys.readouterr().out)
    python = ws.score_partitions(X, labels)
    assert [one["name"] for one in shell["indices"]] == list(python.indices)
    for m, one in enumerate(shell["partitions"]):
        assert [one["scores"][name] for name in python.indices] == python.values[m].tolist()


def test_choose_k_gives_one_answer_in_shell_and_python(tmp_path, capsys):
    X, _, _ = clustered()
    np.save(tmp_path / "x.npy", X)
    assert main(["choose-k", str(tmp_path / "x.npy"), "--k", "2:5", "--json"]) == 0
    shell = json.loads(capsys.readouterr().out)
    python = ws.choose_k(X, range(2, 6), random_state=0)
    assert shell["best"] == python.best
    assert shell["explanation"] == python.explain().splitlines()
    assert shell["votes"] == {str(k): votes for k, votes in python.votes.items()}


@pytest.mark.slow
def test_the_command_the_demo_prints_gives_the_answer_of_the_demo(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["demo"]) == 0
    shown = capsys.readouterr().out
    command = shlex.split(re.search(r"Again +wellsep rank (.*)", shown)[1])
    shell = in_the_shell(capsys, *command)
    assert len(shown.splitlines()) <= 25
    assert re.search(rf"^ *1 +{re.escape(shell['best'][0])} ", shown, re.MULTILINE)
    assert "7 embeddings" in " ".join(shown.split())
    runs = ws.load_runs("wellsep-demo/runs")
    assert shell["best"] == list(ws.judge(runs).ranking.winners)
    page = (tmp_path / "wellsep-demo" / "report.html").read_text("utf-8")
    assert re.search(r'id="reproduce">wellsep rank wellsep-demo/runs (.*?)</code>', page)
