"""Mistakes of a first hour at the shell get a right answer, or a sentence that says what to do."""

from __future__ import annotations

import shlex

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.datasets import make_blobs

import wellsep as ws
from wellsep.cli.main import main

pd = pytest.importorskip("pandas", reason="mistakes are made with its tables")

X, Y = make_blobs(200, 4, centers=3, random_state=0)
FRAME = pd.DataFrame(X, columns=list("abcd"))
ORDER = np.random.default_rng(0).permutation(200)
IDS = np.array([f"c{i:03d}" for i in range(200)])
CLUSTERS = {k: KMeans(k, n_init=1, random_state=0).fit_predict(X) for k in (2, 3, 4, 5)}
RIGHT = "0.713"  # the silhouette of the right labels
# what Python objects and pickles, tables of other programs and NumPy's rarer types hold
ARRAYS = {
    "X": X,
    "X1": X[:, 0],
    "Xconst": np.ones((50, 3)),
    "Xcomplex": X + 1j * X,
    "ybool": Y == 0,
    "yhuge": Y.astype(np.int64) + 2**62,
    "yhugef": Y + 2.0**60,
    "ycomplex": Y + 1j,
    "yone": np.zeros(200, int),
    "ynoise": np.full(200, -1),
    "yuniq": np.arange(200),
    "ynan": np.where(np.arange(200) == 7, np.nan, Y),
}
LABELS = {
    "y": Y,
    "yshort": Y[:150],
    "yfloat": Y.astype(float),
    "yreal": Y + np.random.default_rng(0).random(200) / 2,
    "ystr": np.array(["low", "mid", "high"])[Y],
    "ybool": Y == 0,
}
MEASURED = pd.DataFrame({f"k{k}": codes for k, codes in CLUSTERS.items()})


def write_tables(folder):
    FRAME.to_csv(folder / "X.csv", index=False)
    FRAME.assign(customer=IDS).to_csv(folder / "Xlast.csv", index=False)
    FRAME.set_axis(IDS).to_csv(folder / "Xid.csv", index_label="customer")
    named = pd.DataFrame({"customer": IDS, "label": Y})
    named.iloc[ORDER].to_csv(folder / "yperm.csv", index=False)
    FRAME.assign(a=FRAME["a"].where(FRAME.index != 5)).to_csv(folder / "Xnan.csv", index=False)
    FRAME.to_csv(folder / "semi.csv", index=False, sep=";", decimal=",")
    FRAME.to_csv(folder / "win.csv", index=False, lineterminator="\r\n")
    FRAME.to_csv(folder / "mac.csv", index=False, lineterminator="\r")
    FRAME.assign(plan="x").to_csv(folder / "words.csv", index=False)
    FRAME.assign(income=[f"${i},000" for i in range(200)]).to_csv(folder / "money.csv", index=False)
    pd.concat([FRAME, FRAME[["a"]]], axis=1).to_csv(folder / "dup.csv", index=False)
    (folder / "latin.csv").write_bytes("größe,b\n1,2\n3,4\n".encode("latin-1"))
    (folder / "empty.csv").write_text("")
    (folder / "header.csv").write_text("a,b,c\n")
    FRAME.to_pickle(folder / "X.pkl")
    MEASURED.to_csv(folder / "labels.csv", index=False)
    MEASURED.set_axis(["k"] * 4, axis=1).to_csv(folder / "names.csv", index=False)
    MEASURED.assign(spend=X[:, 0].round(3)).to_csv(folder / "spend.csv", index=False)


def write_folders(folder):
    for k, codes in CLUSTERS.items():
        ws.save_run(folder / "runs", X, codes, name=f"k={k}")
    for name in ("empty", "pandas", "misnamed", "header0"):
        (folder / name).mkdir()
    for k in (2, 3):
        labels = pd.Series(CLUSTERS[k])
        FRAME.to_csv(folder / "pandas" / f"m{k}.embedding.csv", index=False)
        labels.to_csv(folder / "pandas" / f"m{k}.labels.csv")
        FRAME.to_csv(folder / "misnamed" / f"m{k}_emb.csv", index=False)
    FRAME.to_csv(folder / "header0" / "m.embedding.csv", index=False)
    labels.to_csv(folder / "header0" / "m.labels.csv", index=False)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("mistakes")
    for name, values in ARRAYS.items():
        np.save(folder / f"{name}.npy", values)
    np.save(folder / "Xobj.npy", np.array([[1, "a"]], dtype=object), allow_pickle=True)
    for name, values in LABELS.items():
        pd.DataFrame({"label": values}).to_csv(folder / f"{name}.csv", index=False)
    write_tables(folder)
    write_folders(folder)
    return folder


SHELL = [
    # what is read as it was meant
    ("score X.csv yfloat.csv", 0, RIGHT),
    ("score X.csv ystr.csv", 0, RIGHT),
    ("score X.npy yhuge.npy", 0, RIGHT),
    ("score win.csv y.csv", 0, RIGHT),
    ("score mac.csv y.csv", 0, RIGHT),
    ("score semi.csv y.csv", 0, RIGHT),
    ("score X.csv ybool.csv", 0, "0.277"),
    ("score X.npy ybool.npy", 0, "0.277"),
    ("score Xid.csv yperm.csv", 0, RIGHT),
    ("score Xid.csv yperm.csv", 0, "rows put in the order of Xid.csv by their ids"),
    ("rank pandas", 0, "With only two different clusterings a ranking means little"),
    ("rank spend.csv", 0, "spend.csv: 'spend' left out as measurements"),
    ("describe X.csv ystr.csv", 0, "high"),
    # what has no score says why
    ("score X.npy yone.npy", 0, "needs at least 2 clusters, got 1"),
    ("score X.npy ynoise.npy", 0, "no object is counted"),
    ("score X.npy yuniq.npy", 0, "every one of the 200 objects is a cluster of its own"),
    ("choose-k Xconst.npy", 3, "One cluster: all objects are equal"),
    # what is refused, with what to do
    ("score missing.csv y.csv", 2, "DATA must be an existing file, got 'missing.csv'"),
    ("score y.csv X.csv", 2, "are X and labels exchanged?"),
    ("score X.csv yshort.csv", 2, "label must have one entry per object (200), got 150"),
    ("score X.csv yreal.csv", 2, "must be whole numbers or names, got 2.31"),
    ("score X.npy yhugef.npy", 2, "such floats are rounded: pass integers or text"),
    ("score X.npy ycomplex.npy", 2, "ycomplex must be integers or text"),
    ("score Xcomplex.npy yone.npy", 2, "must hold numbers, got dtype complex128"),
    ("score X.npy ynan.npy", 2, "got none for 1 object(s), first at 7; label such objects -1"),
    ("score Xnan.csv y.csv", 2, "must have no empty cells, got one in column 'a', row 6"),
    ("score X.csv yperm.csv", 2, "sort their rows alike"),
    ("rank runs --truth yperm.csv", 2, "sort their rows alike"),
    ("score X.pkl y.csv", 2, "DATA must end in one of .csv, .tsv"),
    ("score latin.csv y.csv", 2, "iconv -f latin1 -t utf-8 OLD.csv > NEW.csv"),
    ("score empty.csv y.csv", 2, "empty.csv must not be empty"),
    ("score header.csv y.csv", 2, "must have rows below its header"),
    ("score dup.csv y.csv", 2, "must name each column once, got 'a' twice"),
    ("score words.csv y.csv", 2, "got 'x' in column 'plan'; leave names and classes out"),
    ("score Xlast.csv y.csv", 2, "got 'c000' in column 'customer'"),
    ("score money.csv y.csv", 2, "got '$0,000' in column 'income'"),
    ("choose-k money.csv", 2, "got '$0,000' in column 'income'"),
    ("score Xobj.npy y.csv", 2, "got pickled Python objects, which are never loaded"),
    ("score X.csv y.csv -i sillhouette", 2, "did you mean 'silhouette'?"),
    ("choose-k X1.npy", 2, "must hold a matrix with one object per row"),
    ("choose-k X.csv --k 2-10", 2, "--k must read like 2:12, 2:20:2 or 3,5,8"),
    ("choose-k X.csv --k 1", 2, "--k must hold a number from 2 on"),
    ("choose-k X.csv --k 500", 2, "--k must not exceed the number of objects (200)"),
    ("cluster X.csv", 2, "Missing option '--clusters' / '-k'"),
    ("cluster X.csv -k auto", 2, "wellsep choose-k DATA finds one"),
    ("cluster X.csv -k 3 -o nowhere/out.csv", 2, "make the folder first"),
    ("cluster X.csv -k 3 -o out.xlsx", 2, "--output must end in .csv"),
    ("rank", 2, "Missing argument 'SOURCE'"),
    ("rank empty", 1, "call tables NAME.embedding.csv and NAME.labels.csv"),
    ("rank misnamed", 1, "got 'misnamed', with 'm2_emb.csv'"),
    ("rank header0", 2, "if a header 0 was read as a label, write the labels under a name"),
    ("rank X.csv", 2, "which looks like data (9.49"),
    ("rank X.csv", 2, "wellsep explore finds clusters in data"),
    ("resolutions X.csv", 2, "wellsep explore finds clusters in data"),
    ("rank names.csv", 2, "must name each column once, got 'k' twice"),
    ("rank runs runs", 2, "SOURCE must name each source once"),
    ("rank runs --report nowhere/page.html", 2, "make the folder first"),
    ("rank runs --truth yshort.csv", 2, "one class per object (200), got 150"),
    ("rank runs --truth label", 2, "--truth must end in one of .csv"),
    ("rank runs --draws ten", 2, "Invalid value for '--draws'"),
    ("rank runs --labels 'lieden*'", 2, "--labels must match one of 'k=2', 'k=3'"),
    ("stability X.csv", 2, "say -k 3, or name a label file after the data file"),
    ("describe X.csv", 2, "name the file after the data file"),
    ("describe X.csv yshort.csv", 2, "LABELS must have one entry per object (200), got 150"),
    ("explain runs", 2, "save one there first, with wellsep rank or choose-k and --save"),
    ("report runs", 2, "save one there first, with wellsep rank or choose-k and --save"),
]


@pytest.mark.parametrize(("command", "code", "words"), SHELL, ids=[one[0] for one in SHELL])
def test_a_mistake_at_the_shell_gets_a_right_answer_or_a_sentence(
    folder, monkeypatch, capsys, command, code, words
):
    monkeypatch.chdir(folder)
    assert main(shlex.split(command)) == code
    shown = capsys.readouterr()
    assert words in " ".join((shown.out + shown.err).replace("│", " ").split())
