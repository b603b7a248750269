"""Which index finds the right clustering of which shape? Writes the table and the pictures.

    python docs/shapes.py     # two or three minutes on one core; `make pictures` calls it

Each shape has a right clustering. It competes with wrong ones: k-means and Ward at several K, the
right one with two clusters merged or the largest one split, single linkage, and where there is
noise, clusterings that call too many or too few objects noise. A cell of the table is the adjusted
Rand index (ARI) between the right clustering and the one that the index scores best, as a mean over
the seeds. Of equal scores the worst counts. In the ARI, noise is one more class.
"""

from __future__ import annotations

import io
import re
import sys
import warnings
from pathlib import Path

import numpy as np
from sklearn.cluster import AgglomerativeClustering, KMeans
from sklearn.datasets import make_circles, make_moons
from sklearn.metrics import adjusted_rand_score

import wellsep as ws

HERE = Path(__file__).resolve().parent
PAGE = HERE / "tutorials" / "which-index.md"
PICTURE = HERE / "_static" / "shapes.png"
FAILURES = HERE / "guides" / "indices.md"
BEGIN, END = "<!-- table: made by docs/shapes.py -->", "<!-- end of table -->"
FAILURES_BEGIN = "<!-- failures: made by docs/shapes.py -->"
FAILURES_END = "<!-- end of failures -->"
INDICES = (
    "silhouette",
    "simplified_silhouette",
    "silhouette_cosine",
    "calinski_harabasz",
    "davies_bouldin",
    "cfq",
    "cfq_mixture",
    "dunn",
    "generalized_dunn",
    "c_index",
    "s_dbw",
    "cdbw",
    "ccc",
    "dbcv",
    "disco",
    "lcd",
)
DRAWN = ("silhouette", "calinski_harabasz", "davies_bouldin", "dunn", "dbcv", "disco")
SHAPES = (
    "round",
    "overlapping",
    "sizes",
    "spread",
    "elongated",
    "moons",
    "rings",
    "directions",
    "50-d",
    "30 clusters",
    "background",
)
SEEDS = range(5)
RIGHT = 0.9  # an ARI from here on is drawn as right


def far_centres(rng, k, d, gap, side):
    """Draw k centres in a box, no two nearer than gap."""
    while True:
        centres = []
        for _ in range(4000):
            new = rng.uniform(0, side, size=d)
            if all(np.linalg.norm(new - old) >= gap for old in centres):
                centres.append(new)
            if len(centres) == k:
                return np.array(centres)


def gaussians(rng, centres, sizes, deviations):
    """Draw sizes[i] points about centres[i]; return points and labels."""
    d = np.shape(centres)[1]
    parts = [
        rng.normal(size=(m, d)) * s + c for c, m, s in zip(centres, sizes, deviations, strict=True)
    ]
    return np.vstack(parts), np.repeat(np.arange(len(sizes)), sizes)


def make(shape, seed):
    """Return points and the right labels (-1: noise)."""
    rng = np.random.default_rng(seed)
    if shape == "round":
        return gaussians(rng, far_centres(rng, 5, 2, 8, 24), [100] * 5, [1] * 5)
    if shape == "overlapping":
        return gaussians(rng, far_centres(rng, 5, 2, 3.5, 9), [100] * 5, [1] * 5)
    if shape == "sizes":
        return gaussians(rng, far_centres(rng, 4, 2, 7, 16), [400, 60, 30, 15], [1] * 4)
    if shape == "spread":
        return gaussians(rng, np.array([[0, 0], [7, 0], [3, 5.5]]), [170] * 3, [2.2, 0.7, 0.3])
    if shape == "elongated":
        return gaussians(
            rng, np.array([[0, 0], [1, 4], [2, 8]]), [150] * 3, [np.array([3, 0.5])] * 3
        )
    if shape == "moons":
        return make_moons(500, noise=0.06, random_state=seed)
    if shape == "rings":
        return make_circles(500, noise=0.04, factor=0.4, random_state=seed)
    if shape == "directions":  # clusters are directions, lengths vary: word counts, spectra
        centres = rng.normal(size=(5, 20))
        centres /= np.linalg.norm(centres, axis=1, keepdims=True)
        X, y = gaussians(rng, centres, [100] * 5, [0.09] * 5)
        return X * rng.lognormal(0, 0.8, size=(500, 1)), y
    if shape == "50-d":
        centres = rng.normal(size=(5, 50))
        centres *= 6 / np.linalg.norm(centres, axis=1, keepdims=True)
        return gaussians(rng, centres, [100] * 5, [1] * 5)
    if shape == "30 clusters":
        return gaussians(rng, far_centres(rng, 30, 2, 6, 48), [20] * 30, [1] * 30)
    X, y = gaussians(rng, far_centres(rng, 4, 2, 9, 22), [100] * 4, [0.8] * 4)  # background
    noise = rng.uniform(X.min(0) - 1, X.max(0) + 1, size=(100, 2))
    return np.vstack([X, noise]), np.r_[y, [-1] * 100]


def candidates(shape, X, y, seed):
    """Return the right clustering first, then wrong ones, by name."""
    k = y.max() + 1
    found = {"right": y}
    many = [5, 10, 15, 20, 25, 29, 30, 31, 40, 60]
    for q in many if k == 30 else sorted({2, 3, 4, 5, 6, 8, 10, k, 2 * k}):
        found[f"k-means {q}"] = KMeans(q, n_init=5, random_state=seed).fit_predict(X)
    for q in (k - 1, k, k + 1):
        if q > 1:
            found[f"ward {q}"] = AgglomerativeClustering(q).fit_predict(X)
            single = AgglomerativeClustering(q, linkage="single")
            found[f"single {q}"] = single.fit_predict(X)
    centres = np.array([X[y == c].mean(0) for c in range(k)])
    if k > 2:
        apart = np.linalg.norm(centres[:, None] - centres, axis=2) + 1e9 * np.eye(k)
        a, b = np.unravel_index(apart.argmin(), apart.shape)
        found["two merged"] = np.where(y == b, a, y)
    largest = np.flatnonzero(y == np.bincount(y[y >= 0]).argmax())
    halves = KMeans(2, n_init=5, random_state=seed).fit_predict(X[largest])
    split = y.copy()
    split[largest[halves == 1]] = k
    found["largest split"] = split
    if shape == "background":
        to_centre = np.linalg.norm(X[:, None] - centres, axis=2)
        radius = to_centre.min(1)
        median = np.array([np.median(radius[y == c]) for c in range(k)])
        found["no noise"] = to_centre.argmin(1)
        found["outer halves noise"] = np.where((y >= 0) & (radius > median[y]), -1, y)
        found["two clusters noise"] = np.where(y >= 2, -1, y)
    return found


def pick(scores, truth, labels):
    """Return ARI and place of the best candidate, the worst of equals."""
    scores = np.where(np.isfinite(scores), scores, -np.inf)
    top = np.flatnonzero(scores >= scores.max() - 1e-12 * max(1, abs(scores.max())))
    return min((adjusted_rand_score(truth, labels[i]), i) for i in top)


def short(value):
    """Write .88, 1 or 0; what is right in bold."""
    text = f"{value:.2f}".removeprefix("0") if 0.005 <= value < 0.995 else f"{abs(value):.0f}"
    return f"**{text}**" if value >= RIGHT else text


def measure():
    """Return (index, shape) → mean ARI, and what to draw of the first seed."""
    hits, drawn = {}, {}
    for shape in SHAPES:
        for seed in SEEDS:
            X, y = make(shape, seed)
            named = candidates(shape, X, y, seed)
            labels = list(named.values())
            found = ws.score_partitions(X, named, list(INDICES))
            values = np.asarray(found.values, float) * np.asarray(found.directions)
            for j, index in enumerate(INDICES):
                ari, at = pick(values[:, j], y, labels)
                hits.setdefault((index, shape), []).append(ari)
                if seed == 0:
                    drawn[shape, index] = X, labels[at], list(named)[at], ari
            priced = ws.score_partitions(X, named, ["silhouette"], noise="penalize")
            ari, _ = pick(np.asarray(priced.values, float)[:, 0], y, labels)
            hits.setdefault(("silhouette, noise priced", shape), []).append(ari)
            if seed == 0:
                drawn[shape, "right"] = X, y, "right", 1.0
        print(shape, file=sys.stderr)
    return {key: float(np.mean(found)) for key, found in hits.items()}, drawn


def table(hits):
    """Return the table as Markdown, one row per index."""
    rows = ["| index | " + " | ".join(SHAPES) + " |", "|---" * (1 + len(SHAPES)) + "|"]
    for index in (*INDICES, "silhouette, noise priced"):
        cells = " | ".join(short(hits[index, shape]) for shape in SHAPES)
        name = f"`{index}`" if index in INDICES else '`silhouette`, `noise="penalize"`'
        rows.append(f"| {name} | {cells} |")
    return "\n".join(rows)


def panel(ax, X, labels, name, ari):
    """Draw one clustering, with a green frame if it is right and a red one if not."""
    ax.scatter(*X[labels >= 0].T, c=labels[labels >= 0], s=1.5, cmap="tab10")
    ax.scatter(*X[labels < 0].T, c="0.75", s=1.5)
    ax.set(xticks=[], yticks=[])
    fine = ari >= RIGHT
    for side in ax.spines.values():
        side.set(color="tab:green" if fine else "tab:red", linewidth=1.2)
    ax.set_xlabel(name if fine else f"{name}: wrong", fontsize=6, labelpad=2)


def save(figure, path):
    """Write a figure in few colours."""
    import matplotlib.pyplot as plt
    from PIL import Image

    figure.tight_layout(pad=0.4)
    buffer = io.BytesIO()
    figure.savefig(buffer, dpi=130)
    plt.close(figure)
    Image.open(buffer).convert("RGB").quantize(64).save(path, optimize=True)
    print(path.relative_to(HERE.parent), f"{path.stat().st_size / 1000:.0f} kB")


def flat_shapes(drawn):
    """Return the shapes of two columns that a small picture can show."""
    return [s for s in SHAPES if drawn[s, "right"][0].shape[1] == 2 and s != "30 clusters"]


def draw(drawn):
    """Draw each flat shape, right and as six indices choose it."""
    import matplotlib.pyplot as plt

    flat = flat_shapes(drawn)
    columns = ("right", *DRAWN)
    size = (1.5 * len(columns), 1.6 * len(flat))
    figure, axes = plt.subplots(len(flat), len(columns), figsize=size)
    for row, shape in zip(axes, flat, strict=True):
        for ax, index in zip(row, columns, strict=True):
            panel(ax, *drawn[shape, index])
            if shape == flat[0]:
                ax.set_title(index, fontsize=7)
        row[0].set_ylabel(shape, fontsize=8)
    save(figure, PICTURE)


def draw_failures(drawn):
    """Draw the worst choice of each index; return the pictures as Markdown with a sentence each."""
    import matplotlib.pyplot as plt

    blocks = []
    for index in INDICES:
        shape = min(flat_shapes(drawn), key=lambda s: drawn[s, index][3])
        X, labels, name, ari = drawn[shape, index]
        figure, axes = plt.subplots(1, 2, figsize=(4.2, 2.1))
        panel(axes[0], *drawn[shape, "right"])
        panel(axes[1], X, labels, name, ari)
        axes[1].set_title(f"best by {index}", fontsize=7)
        axes[0].set_title(shape, fontsize=7)
        file = HERE / "_static" / f"fails-{index.replace('_', '-')}.png"
        save(figure, file)
        score = f"{ari:.2f}".replace("-0.00", "0.00")
        noise = f" ({(labels < 0).mean():.0%} noise)" if (labels < 0).any() else ""
        verdict = (
            f"On {shape!r} its best clustering is {name!r}{noise}. "
            f"Its ARI with the right one is {score}."
            if ari < RIGHT
            else f"It chose well on every flat shape; its lowest ARI is {score}, on {shape!r}."
        )
        blocks.append(f"**{index}.** {verdict}\n\n![{index} on {shape}](../_static/{file.name})")
    return "\n\n".join(blocks)


def put(path, begin, end, text):
    """Put a text between two marks of a page."""
    page = path.read_text(encoding="utf-8")
    pattern = re.compile(re.escape(begin) + ".*?" + re.escape(end), re.DOTALL)
    assert pattern.search(page), f"{path} has no marks {begin}"
    path.write_text(pattern.sub(lambda _: f"{begin}\n\n{text}\n\n{end}", page), encoding="utf-8")


def main():
    """Write the table and the failures into their pages, and the pictures beside them."""
    warnings.filterwarnings("ignore")
    hits, drawn = measure()
    put(PAGE, BEGIN, END, table(hits))
    draw(drawn)
    put(FAILURES, FAILURES_BEGIN, FAILURES_END, draw_failures(drawn))


if __name__ == "__main__":
    main()
