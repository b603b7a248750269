"""The pages of describe, cluster and resolutions, and features as the input has them."""

from __future__ import annotations

import numpy as np
import pytest
from browsing import CHROMIUM, Visit

import wellsep as ws
from wellsep.cli.main import main


@pytest.fixture
def table(tmp_path):
    """A table of two columns, one a hundred times as wide, and its path."""
    rng = np.random.default_rng(0)
    X = np.column_stack([np.arange(60) % 3 * 10.0, np.arange(60) % 3 * -700.0])
    X += rng.normal(size=X.shape) * [1, 100]
    lines = ["age,income", *(f"{a + 40:.2f},{b + 9000:.2f}" for a, b in X)]
    path = tmp_path / "data.csv"
    path.write_text("\n".join(lines))
    return path


def page_of(command, table, capsys):
    path = table.parent / "page.html"
    assert main([*command, "--report", str(path)]) == 0
    assert f"wrote {path}" in capsys.readouterr().err
    return path


@pytest.mark.parametrize(
    "command",
    [["cluster", "-k", "3"], ["choose-k", "--k", "2:4"], ["stability", "-k", "3", "--draws", "4"]],
)
def test_clusters_of_scaled_columns_are_told_in_the_units_of_the_file(command, table, capsys):
    text = page_of([*command, str(table), "--scale"], table, capsys).read_text("utf-8")
    assert "high income (9" in text
    assert "Reproduce" in text


def test_describe_shows_the_rules_the_map_and_every_sentence(table, capsys):
    labels = table.parent / "labels.csv"
    assert main(["cluster", str(table), "-k", "3", "--scale", "-o", str(labels)]) == 0
    text = page_of(["describe", str(table), str(labels)], table, capsys).read_text("utf-8")
    assert 'id="answer-map"' in text
    assert "income &gt; " in text or "income &lt;= " in text
    assert "Cross-validated: recall" in text


def test_a_description_without_its_labels_has_a_table_and_no_map(tmp_path):
    X, labels = np.arange(12.0)[:, None] + 30 * (np.arange(12)[:, None] > 5), np.arange(12) > 5
    found = ws.describe_clusters(X, labels)
    text = ws.render_report(found, tmp_path / "r.html", runs=X).read_text("utf-8")
    assert 'id="answer-map"' not in text
    assert "2 clusters of 12 objects." in text
    assert "made without the data" in text


def test_resolutions_draw_their_tree_on_the_first_screen(table, capsys):
    folder = table.parent / "chosen"
    assert main(["choose-k", str(table), "--scale", "--k", "2:5", "--save", str(folder)]) == 0
    text = page_of(["resolutions", str(folder)], table, capsys).read_text("utf-8")
    answer = text.partition('<section id="answer"')[2].partition("</section>")[0]
    assert 'data-chart="tree"' in answer
    assert "of their objects from one cluster of the level before." in answer


def test_clusters_of_anndata_are_told_by_the_genes_before_scaling(tmp_path):
    anndata = pytest.importorskip("anndata", reason="anndata is not installed")
    rng = np.random.default_rng(0)
    kinds = np.arange(120) % 3
    counts = rng.poisson(2 + 8 * np.eye(3, 5)[kinds]).astype(float)
    names = [f"gene {i}" for i in range(5)]
    cells = anndata.AnnData(counts)
    cells.var_names, cells.obs_names = names, [f"cell {i}" for i in range(120)]
    cells.raw = cells.copy()
    cells.X = (counts - counts.mean(axis=0)) / counts.std(axis=0)
    cells.obsm["X_pca"] = cells.X @ rng.normal(size=(5, 3))
    for k, labels in (("three", kinds), ("two", kinds > 0), ("four", np.arange(120) % 4)):
        cells.obs[k] = labels.astype(int).astype(str)
    path = tmp_path / "cells.h5ad"
    cells.write_h5ad(path)
    for source in (cells, path):
        judgement = ws.judge(source, labels="two,three,four", n_draws=0)
        described = judgement.clusters.descriptions["three"]
        assert described.features == tuple(names)
        mean = counts[kinds == 0][:, 0].mean()
        assert described.inside[0, 0] == pytest.approx(mean, rel=1e-6)


@pytest.mark.parametrize("width", [1440, 390])
@pytest.mark.parametrize("kind", ["clusters", "resolutions"])
@pytest.mark.browser
@pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed")
def test_the_pages_are_quiet_and_fit_a_phone(browser, tmp_path, kind, width):
    X = np.repeat([[0.0, 0], [9, 0], [0, 9]], 20, axis=0)
    X += np.random.default_rng(0).normal(size=X.shape)
    labels = np.arange(60) // 20
    if kind == "clusters":
        result, given = ws.describe_clusters(X, labels), {"runs": X, "labels": labels}
    else:
        result, given = ws.resolution_tree({"two": labels > 0, "three": labels}), {}
    path = ws.render_report(result, tmp_path / "r.html", **given)
    seen = Visit(browser, path, viewport={"width": width, "height": 900})
    assert seen.page.evaluate("document.documentElement.scrollWidth") <= width
    seen.page.locator("#ranking-table tbody tr").last.click()
    assert seen.chosen() == seen.rows()[-1:]
    seen.close()
    assert seen.problems == []
