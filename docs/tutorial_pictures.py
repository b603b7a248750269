"""Draw the pictures of the tutorials on the number of clusters and on noise.

python docs/tutorial_pictures.py     # docs/_static/how-many.png, noise.png; `make pictures` too
"""

from __future__ import annotations

import io
from pathlib import Path

import matplotlib.pyplot as plt
from PIL import Image
from shapes import make
from sklearn.cluster import DBSCAN
from sklearn.datasets import make_blobs

import wellsep as ws
from wellsep import plot

STATIC = Path(__file__).resolve().parent / "_static"


def write(figure: plt.Figure, name: str) -> None:
    """Save a figure with few colours, so that the file stays small."""
    buffer = io.BytesIO()
    figure.savefig(buffer, dpi=110)
    path = STATIC / name
    Image.open(buffer).convert("RGB").quantize(64).save(path, optimize=True)
    print(f"docs/_static/{name}", f"{path.stat().st_size / 1000:.0f} kB")


def how_many() -> None:
    """Draw four indices over the number of clusters, each with the K it picks."""
    X, _ = make_blobs(400, 3, centers=4, random_state=1)
    names = ["elbow", "gap", "silhouette", "mixture_bic"]
    chosen = ws.choose_k(X, range(2, 9), indices=names, n_repeats=3, random_state=0)
    display = plot.CurvesDisplay.from_result(chosen)
    display.figure_.set_size_inches(11, 2.8)
    write(display.figure_, "how-many.png")


def noise() -> None:
    """Draw three DBSCAN clusterings of one data set with their scores."""
    X, _ = make("background", 0)
    figure, axes = plt.subplots(1, 3, figsize=(9, 3.2))
    for ax, eps in zip(axes, (0.2, 0.7, 3.0), strict=True):
        labels = DBSCAN(eps=eps, min_samples=5).fit_predict(X)
        plain = ws.score_partitions(X, labels, ["silhouette", "dbcv"])
        priced = ws.score_partitions(X, labels, ["silhouette"], noise="penalize")
        ax.scatter(*X[labels < 0].T, c="0.75", s=4)
        ax.scatter(*X[labels >= 0].T, c=labels[labels >= 0], s=4, cmap="tab10")
        ax.set(xticks=[], yticks=[])
        silhouette, dbcv = plain.values[0]
        ax.set_title(
            f"DBSCAN, eps={eps}: {labels.max() + 1} clusters, coverage "
            f"{plain.coverage[0]:.2f}\nsilhouette {silhouette:.2f}, priced "
            f"{priced.values[0, 0]:.2f}, DBCV {dbcv:.2f}",
            fontsize=8,
        )
    figure.tight_layout()
    write(figure, "noise.png")


if __name__ == "__main__":
    how_many()
    noise()
