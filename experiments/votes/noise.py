"""Make the runs with noise of DECLARED.md: HDBSCAN on UMAP embeddings of the fresh sets.

    WELLSEP_DATA=FOLDER python experiments/votes/noise.py OUT

Needs the package umap-learn. OUT gets one file per set, in the form of `train.py`, with a
two-dimensional layout of the input (`plane`), in which a rival judge takes silhouettes.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import numpy as np
from sklearn.cluster import HDBSCAN

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from experiments.votes.train import EMPTY, SETS, load


def layout(X: np.ndarray, n_neighbors: int, n_components: int) -> np.ndarray:
    """A UMAP embedding, the same on every call."""
    import umap

    model = umap.UMAP(n_neighbors=n_neighbors, n_components=n_components, random_state=0, n_jobs=1)
    return model.fit_transform(X)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("out", type=Path)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    for name in SETS + EMPTY:
        target = options.out / f"noise-{name}.npz"
        if target.exists():
            continue
        X, truth = load(name)
        labels, runs, arrays = [], [], {"plane": layout(X, 15, 2).astype(np.float32)}
        for n_neighbors in (5, 15, 30, 50):
            Z = layout(X, n_neighbors, 5).astype(np.float32)
            arrays[f"space{n_neighbors}"] = Z
            for size in (5, 10, 20, 40):
                for least in (2, None):
                    model = HDBSCAN(min_cluster_size=size, min_samples=least, copy=True)
                    labels.append(model.fit_predict(Z).astype(np.int16))
                    runs.append(
                        {"space": n_neighbors, "min_cluster_size": size, "min_samples": least}
                    )
        meta = {"set": name, "task": "noise", "runs": runs, "failed": {}}
        np.savez_compressed(target, labels=labels, truth=truth, meta=json.dumps(meta), **arrays)
        print(f"noise {name}: {len(runs)} runs", flush=True)


if __name__ == "__main__":
    main()
