"""Draw the README's picture: its own example, three embeddings and the ranks of the nine runs.

python docs/readme_picture.py     # docs/_static/readme.png; `make pictures` calls it
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from PIL import Image
from sklearn.decomposition import PCA

import wellsep as ws
from wellsep.records import Judgement

HERE = Path(__file__).resolve().parent
PICTURE = HERE / "_static" / "readme.png"
DRAWN = ("PCA 1", "PCA 20", "Isomap 5")


def example() -> tuple[str, Judgement, tuple[dict, dict]]:
    """Run the README's example; return its output, the judgement, spaces and labels."""
    text = (HERE.parent / "README.md").read_text(encoding="utf-8")
    code = re.search(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)[1]
    names: dict[str, object] = {}
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        with contextlib.redirect_stdout(io.StringIO()) as out:
            exec(code, names)
        runs = ws.load_runs(os.path.join(folder, "runs"))
        spaces = {name: np.array(runs.spaces[name]) for name in DRAWN}
        labels = {name: np.array(runs.partitions[f"{name}, K=12"]) for name in DRAWN}
    return out.getvalue(), names["judgement"], (spaces, labels)


def main() -> None:
    """Print what the example prints and write the picture."""
    shown, judgement, (spaces, labels) = example()
    print(shown)
    table = judgement.to_frame()
    figure, axes = plt.subplots(1, 4, figsize=(13, 3.5), width_ratios=[1, 1, 1, 1.35])
    for ax, name in zip(axes, DRAWN, strict=False):
        Z = spaces[name]
        flat = (
            PCA(2).fit_transform(Z)
            if Z.shape[1] > 2
            else np.c_[Z, np.random.default_rng(0).random(len(Z))]
        )
        rank = int(table.loc[table["partition"] == f"{name}, K=12", "rank"].iloc[0])
        ax.scatter(*flat.T, c=labels[name], s=2, cmap="tab10")
        ax.set(xticks=[], yticks=[])
        ax.set_title(f"{name}, K=12: rank {rank} of {len(table)}", fontsize=9)
    ax = axes[3]
    for row, run in enumerate(table.itertuples()):
        ends = [run.rank_low, run.rank_high]
        ax.plot(ends, [row, row], color="tab:blue", lw=5, solid_capstyle="round", alpha=0.35)
        ax.plot(run.rank, row, "o", color="tab:blue")
    ax.set_yticks(range(len(table)), list(table["partition"]))
    ax.invert_yaxis()
    ax.set_xticks(range(1, len(table) + 1))
    ax.set_title("rank, and its range in 90 % of random halves", fontsize=9)
    ax.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    buffer = io.BytesIO()
    figure.savefig(buffer, dpi=110)
    Image.open(buffer).convert("RGB").quantize(128).save(PICTURE, optimize=True)
    print(PICTURE.relative_to(HERE.parent), f"{PICTURE.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
