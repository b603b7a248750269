"""The page of a stability: what it says, how sure that is, and what it draws."""

from __future__ import annotations

import re

import numpy as np
import pytest
import scipy.sparse as sp
from browsing import NEEDS_CHROMIUM, Visit
from pages import small_choice, small_runs, small_stability
from scipy.spatial.distance import pdist, squareform

import wellsep as ws
from wellsep.cli.main import main
from wellsep.report.pages.clusters import build_stability_page


def data():
    return np.asarray(small_runs()[0].spaces["first"])


def page_of(found, **given):
    return build_stability_page(
        found, **{"runs": None, "truth": None, "title": None, "layout": "pca", **given}
    )


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    return {
        "with data": ws.render_report(small_stability(), folder / "a.html", runs=data()),
        "alone": ws.render_report(small_stability(), folder / "b.html"),
    }


def test_the_answer_is_the_headline_and_says_how_sure_it_is():
    found = small_stability()
    page = page_of(found)
    assert page.lead == (("text", found.explain().splitlines()[0]),)
    worst = found.half_width.max()
    assert f"known to within ±{worst:.2f} at worst" in page.sure[0]
    assert any("Prediction strength is" in sentence for sentence in page.sure)


def test_whether_more_draws_would_tell_follows_from_the_intervals():
    X = np.repeat([[0.0], [50.0]], 20, axis=0) + np.random.default_rng(0).normal(size=(40, 1))
    sure = ws.stability(ws.KMeans(2, random_state=0), X, n_draws=6, n_splits=0, random_state=0)
    assert set(sure.words) == {"highly stable"}
    assert "More samples would change no verdict" in page_of(sure).sure[1]
    unsure = small_stability()
    assert any(word.startswith("between") for word in unsure.words)
    assert "More samples would say more of" in page_of(unsure).sure[1]


def test_the_table_has_a_row_per_cluster_the_least_stable_first():
    found = small_stability()
    page = page_of(found)
    assert page.table.rows.tolist() == np.argsort(found.jaccard, kind="stable").tolist()
    assert ("4", "clusters") in page.facts


def test_the_clusters_are_described_with_their_stability():
    found = small_stability()
    sections = {s.name: s.shown for s in page_of(found, runs=data()).sections}
    table = sections["clusters"]["table"]
    assert table["stability"] == pytest.approx(found.jaccard.tolist())
    assert table["objects"] == found.sizes.tolist()


def test_data_of_another_length_are_refused():
    with pytest.raises(ValueError, match="runs must hold the 240 objects that were clustered"):
        page_of(small_stability(), runs=data()[:9])
    with pytest.raises(ValueError, match=r"truth must have one class per object \(240\), got 3"):
        page_of(small_stability(), runs=data(), truth=[0, 1, 2])


def test_a_stand_in_has_no_numbers_of_clusters_to_show():
    X, labels = data(), np.arange(240) % 3
    found = ws.stability(None, X, labels, n_draws=4, n_splits=0, random_state=0)
    page = page_of(found)
    assert not len(page.data["stability"]["n_found"])
    assert any("No clusterer was given" in sentence for sentence in page.sure)


def test_the_command_writes_the_page_and_a_saved_result_gives_it_again(tmp_path, capsys):
    file = tmp_path / "data.csv"
    rows = ["id,height,weight", *(f"cell {i},{a},{b}" for i, (a, b) in enumerate(data()[:90, :2]))]
    file.write_text("\n".join(rows))
    page, again = tmp_path / "page.html", tmp_path / "again.html"
    given = ["stability", str(file), "-k", "3", "--draws", "5", "--set", "n_splits=2"]
    assert main([*given, "--report", str(page), "--save", str(tmp_path / "found")]) == 0
    text = page.read_text("utf-8")
    assert "clusters are stable over 5 bootstraps" in text
    assert "weight (" in text
    assert "cell 7" in text
    assert re.search(r"wellsep stability \S+data.csv --clusters 3", text)
    assert main(["report", str(tmp_path / "found"), "--runs", str(file), "-o", str(again)]) == 0
    assert "cell 7" in again.read_text("utf-8")
    capsys.readouterr()
    assert main([*given, "--report", str(tmp_path / "page.txt")]) == 2
    assert "report must end in .html" in capsys.readouterr().err


def test_choose_k_writes_its_page_by_the_same_option(tmp_path):
    file, page = tmp_path / "data.csv", tmp_path / "page.html"
    rows = ["height,weight", *(f"{a},{b}" for a, b in data()[:60, :2])]
    file.write_text("\n".join(rows))
    assert main(["choose-k", str(file), "--k", "2:4", "--report", str(page)]) == 0
    text = page.read_text("utf-8")
    assert "Every index over the number of clusters" in text
    assert "high weight (" in text
    assert re.search(r"wellsep choose-k \S+data.csv --k 2:4", text)


@pytest.mark.parametrize("given", ["distances", "sparse", "runs of a sparse space"])
def test_data_without_dense_columns_are_drawn_on_both_pages(tmp_path, given):
    dense = data()
    X = ws.Distances(squareform(pdist(dense))) if given == "distances" else sp.csr_array(dense)
    shown = X
    if given.startswith("runs"):
        shown = ws.Runs.from_parts({"words": X}, {"all": np.zeros(len(dense))})
    chosen, _, _ = small_choice()
    for number, found in enumerate((chosen, small_stability())):
        page = ws.render_report(found, tmp_path / f"{number}.html", runs=shown)
        assert "Silhouette widths" in page.read_text("utf-8")


def test_names_of_distances_name_the_objects_of_the_page():
    names = [f"cell {i}" for i in range(len(data()))]
    table = ws.Distances(squareform(pdist(data())), names=names)
    assert str(
        page_of(small_stability(), runs=table).data["objects"]["worst"]["object"][0]
    ).startswith("cell ")


def test_a_truth_that_would_not_be_drawn_is_refused():
    with pytest.raises(ValueError, match="truth must come with runs, got none"):
        page_of(small_stability(), truth=np.zeros(len(data())))


def test_data_of_more_objects_than_were_clustered_are_refused():
    n = len(data())
    with pytest.raises(ValueError, match=f"runs must hold the {n} objects .*, got {2 * n}"):
        page_of(small_stability(), runs=np.concatenate([data(), data()]))


STABILITY = ["stability", "-k", "3", "--draws", "4", "--set", "n_splits=0"]


@pytest.mark.parametrize(
    "command", [["choose-k", "--k", "2:4", "--scale"], STABILITY, [*STABILITY, "--scale"]]
)
def test_the_command_draws_a_sparse_x_of_anndata(tmp_path, capsys, command):
    anndata = pytest.importorskip("anndata", reason="anndata is not installed")
    file, page = tmp_path / "cells.h5ad", tmp_path / "page.html"
    cells = anndata.AnnData(sp.csr_matrix(data()[:60]))
    cells.write_h5ad(file)
    assert main([*command, str(file), "--space", "X", "--report", str(page)]) == 0
    assert page.is_file()
    assert "60 objects" in capsys.readouterr().err


@NEEDS_CHROMIUM[0]
@NEEDS_CHROMIUM[1]
@pytest.mark.parametrize("name", ["with data", "alone"])
def test_the_page_opens_quietly_and_has_one_axis_per_figure(browser, written, name):
    seen = Visit(browser, written[name])
    seen.frames()
    assert seen.problems == []
    axes = {"jaccard": "Jaccard similarity", "fates": "share of the samples"}
    axes |= {"found": "number of clusters", "strengths": "prediction strength"}
    for figure, axis in axes.items():
        assert axis in seen.page.locator(f"#{figure} svg").text_content()
    for width in (390, 1440):
        seen.page.set_viewport_size({"width": width, "height": 900})
        seen.frames()
        assert seen.page.evaluate("document.documentElement.scrollWidth") <= width
    seen.close()


@NEEDS_CHROMIUM[0]
@NEEDS_CHROMIUM[1]
def test_choosing_a_row_shows_that_cluster_alone(browser, written):
    seen = Visit(browser, written["with data"])
    pressed = "#legend button[aria-pressed=true]"
    assert seen.page.locator(pressed).count() == 0
    row = seen.page.locator("#ranking-table tbody tr").first
    cluster = row.locator("th.name").inner_text()
    row.click()
    assert seen.page.locator(f"{pressed} bdi").inner_text() == cluster
    seen.page.keyboard.press("Escape")
    assert seen.page.locator(pressed).count() == 0
    assert seen.problems == []
    seen.close()
