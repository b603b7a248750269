"""What README and guides show is what the program does."""

from __future__ import annotations

import re
import shlex
import tomllib
from importlib.util import find_spec

import numpy as np
import pytest
from golden import ROOT
from sklearn.datasets import make_blobs

import wellsep
from wellsep.cli.commands import COMMANDS, load_command
from wellsep.cli.main import main

PAGES = [
    path
    for path in [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
    if not {"_build", "generated", "auto_examples"} & set(path.parts)
]


def name_of(path):
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", PAGES, ids=name_of)
def test_the_commands_a_page_shows_exist(path):
    fenced = re.findall(r"^```sh\n(.*?)^```", path.read_text(encoding="utf-8"), re.M | re.S)
    shown = set(re.findall(r"^wellsep ([a-z][a-z-]*)", "\n".join(fenced), re.M))
    assert shown <= set(COMMANDS)


def commands_of(path):
    """Command lines in the blocks of a page, or between double backticks in a story."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        text = re.sub(r"^# ?", "", text, flags=re.M)
        return [" ".join(c.split()) for c in re.findall(r"``(wellsep [a-z-]+ [^`]+)``", text)]
    fenced = re.findall(r"^```sh\n(.*?)^```", text, re.M | re.S)
    return re.findall(r"^wellsep [a-z-]+ .*", "\n".join(fenced), re.M)


@pytest.mark.parametrize("path", [*PAGES, *sorted((ROOT / "examples").glob("*.py"))], ids=name_of)
def test_the_program_takes_the_options_of_the_commands_that_a_page_shows(path):
    lines = [shlex.split(line.split(" > ")[0], comments=True)[1:] for line in commands_of(path)]
    parsed = [load_command(n).make_context(n, rest) for n, *rest in lines if "--help" not in rest]
    assert all(context.params for context in parsed)


def commands_of_the_readme():
    """Blocks of command lines, and single ones with arguments from the sentences."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    fenced = re.compile(r"^```(\w*)\n(.*?)^```", re.M | re.S)
    plain = [block for language, block in fenced.findall(text) if language == "sh"]
    blocks = [re.findall(r"^wellsep .*", block, re.M) for block in plain]
    inline = re.findall(r"`(wellsep [a-z-]+ [^`]+)`", fenced.sub("", text))
    return [block for block in blocks if block] + [[line] for line in inline]


@pytest.mark.parametrize("block", commands_of_the_readme(), ids=lambda block: block[0])
def test_the_commands_of_the_readme_run_as_printed(block, tmp_path, monkeypatch, capsys):
    for word, package in (("cuda", "torch"), ("h5ad", "anndata"), ("train", "torch")):
        if any(word in line for line in block):
            pytest.importorskip(package, reason=f"{word} needs it")
    if any("--device cuda" in line for line in block) and not has_cuda():
        pytest.skip("needs a GPU")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WELLSEP_DATA", str(tmp_path / "sets"))
    monkeypatch.setenv("WELLSEP_CACHE", str(tmp_path / "cache"))
    write_what_the_readme_names(tmp_path, runs=not block[0].startswith("wellsep train"))
    for line in block:
        assert main(shlex.split(line)[1:]) == 0, (line, capsys.readouterr().err)


def has_cuda():
    import torch

    return torch.cuda.is_available()


def write_what_the_readme_names(folder, runs):
    X, y = make_blobs(60, 3, centers=3, random_state=0)
    rng = np.random.default_rng(0)
    pd = pytest.importorskip("pandas", reason="writes the tables")
    pd.DataFrame(X, columns=list("abc")).to_csv(folder / "data.csv")
    pd.DataFrame({"k2": y > 0, "k3": y, "k4": np.arange(60) % 4}).astype(int).to_csv(
        folder / "labels.csv"
    )
    np.save(folder / "labels.npy", y)
    (folder / "sets").mkdir()
    np.savez(folder / "sets" / "digits.npz", X=X.astype(np.float32), y=y)
    spaces = {f"Z{i}": X + rng.normal(size=X.shape) for i in range(3)}
    labels = {f"leiden_{k}": np.arange(60) % k for k in (2, 4)} | {"leiden_3": y}
    for name in ("runs", "more-runs") if runs else ():
        for space, Z in spaces.items():
            wellsep.save_run(folder / name, Z, name=space)
        for partition, values in labels.items():
            wellsep.save_run(folder / name, None, values, name=partition, space="Z1")
    if find_spec("anndata"):
        import anndata

        names = [f"c{i}" for i in range(60)]
        cells = anndata.AnnData(X, obs=pd.DataFrame(labels, index=names).astype("category"))
        cells.obsm = {"X_pca": spaces["Z0"], "X_scvi": spaces["Z1"]}
        cells.write_h5ad(folder / "data.h5ad")


@pytest.mark.parametrize("path", PAGES, ids=name_of)
def test_the_make_targets_a_page_names_exist(path):
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = set(
        re.findall(r"(?:`|^)make ([a-z-]+)", path.read_text(encoding="utf-8"), re.MULTILINE)
    )
    assert named <= targets


def test_the_readme_names_demo_and_test():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert "make demo" in text
    assert "make test" in text
    assert "make test" in (ROOT / ".ci" / "run").read_text()


def test_the_extras_the_installation_page_lists_exist():

    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"][
        "optional-dependencies"
    ]
    page = (ROOT / "docs" / "installation.md").read_text(encoding="utf-8")
    rows = [line for line in page.splitlines() if line.startswith("| `")]
    listed = {name for row in rows for name in re.findall(r"`(\w+)`", row.split("|")[1])}
    assert listed == set(extras)
