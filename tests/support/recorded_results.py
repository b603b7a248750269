"""Compute the results that `recorded/*.json` keep, and rewrite them.

This record is scaffolding of a rebuild: it holds what users see while the code below it changes.
Every public call is made here and nowhere else. A group is one function and one file of
the record; it returns {case name: numbers, texts, or lists and dicts of them}. Sentences are
recorded in the groups `page`, `shell`, `saved` and `words` only; seconds, dates and versions in
none. The group `mended` holds results that were wrong before.

    python tests/support/recorded_results.py             # what differs from the record
    python tests/support/recorded_results.py --write     # rewrite the whole record
    python tests/support/recorded_results.py --write ace 'cli/rank*'   # groups and cases named so
"""

from __future__ import annotations

import base64
import contextlib
import fnmatch
import hashlib
import io
import json
import os
import re
import shlex
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
from ugly import DATA, D, N
from verdict_cases import cloud, crowd, equals, six, square

import wellsep as ws
from wellsep import records as result_records
from wellsep.evaluate import input_scores, rank
from wellsep.records import ChosenK, Judgement, Stability
from wellsep.spaces import dip_statistic, holm

FOLDER = Path(__file__).parents[1] / "recorded"
INDICES = [name for name in ws.INDICES if name != "disco"]  # which has oracles of its own
SETS = list(DATA)  # the data sets of the groups `indices` and `clusterers`
Results = dict[str, Any]

# --------------------------------------------------------------------------- values and tolerances


def plain(value: Any) -> Any:
    """Numbers, texts, lists and dicts as JSON holds them; floats keep all their digits."""
    if isinstance(value, dict):
        return {str(key): plain(entry) for key, entry in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    if isinstance(value, list | tuple):
        return [plain(entry) for entry in value]
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise TypeError(f"a recorded value must be numbers or text, got {type(value).__name__}.")


def tolerance(case: str) -> float:
    """Relative tolerance of the floats of a case; whole numbers and texts must be equal."""
    if "float32" in case:
        return 1e-4
    if case.startswith("page/"):
        return 1e-6  # a page holds seven digits, or float32
    if case.startswith("saved/"):
        return 1e-7  # coordinates to draw are float32
    if "far" in case and ("cosine" in case or "sparse" in case):
        return 1e-6  # 1 - cos of rows that differ by 1e-4 of their length; not centred
    return 1e-9


def differences(found: Any, kept: Any, rtol: float, at: str = "") -> list[str]:
    """Where two plain values differ, in words."""
    if isinstance(kept, dict) and isinstance(found, dict):
        if list(found) != list(kept):
            return [f"{at or 'value'} has the keys {list(found)}, recorded are {list(kept)}"]
        return [d for key in kept for d in differences(found[key], kept[key], rtol, f"{at}.{key}")]
    numbers = _floats(found), _floats(kept)
    if numbers[0] is not None and numbers[1] is not None:
        a, b = numbers
        if a.shape != b.shape:
            return [f"{at or 'value'} has the shape {a.shape}, recorded is {b.shape}"]
        finite = np.abs(b[np.isfinite(b)])
        scale = float(finite.max()) if finite.size else 0.0
        same = np.isclose(a, b, rtol=rtol, atol=rtol * scale, equal_nan=True)
        return [] if same.all() else [f"{at or 'value'} is {found}, recorded is {kept}"]
    if isinstance(kept, list) and isinstance(found, list) and len(kept) == len(found):
        pairs = enumerate(zip(found, kept, strict=True))
        return [d for i, (a, b) in pairs for d in differences(a, b, rtol, f"{at}[{i}]")]
    same_type = type(found) is type(kept)
    return [] if same_type and found == kept else [f"{at or 'value'} is {found!r}, not {kept!r}"]


def _floats(value: Any) -> np.ndarray | None:
    """The value as an array if it is a float or a (nested) list with a float in it."""
    if isinstance(value, float):
        return np.array(value)
    if not isinstance(value, list):
        return None
    try:
        array = np.array(value)
    except ValueError:
        return None
    return array if array.dtype == np.float64 else None


def attempt(call: Callable[[], Any]) -> Any:
    """What a call returns, NaN where an index is undefined, or the class of a refusal."""
    try:
        return call()
    except ws.UndefinedIndex:
        return float("nan")
    except (ValueError, TypeError) as error:
        return f"refused: {type(error).__name__}"


# --------------------------------------------------------------------------- indices

METRICS = ("cosine", "sqeuclidean", "manhattan", "precomputed")
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "silhouette": ws.silhouette_score,
    "silhouette_cosine": lambda X, y, **options: ws.silhouette_score(
        X, y, metric="cosine", **options
    ),
    "simplified_silhouette": ws.simplified_silhouette_score,
    "calinski_harabasz": ws.calinski_harabasz_score,
    "davies_bouldin": ws.davies_bouldin_score,
    "dunn": ws.dunn_score,
    "generalized_dunn": ws.generalized_dunn_score,
    "c_index": ws.c_index_score,
    "s_dbw": ws.s_dbw_score,
    "cdbw": ws.cdbw_score,
    "ccc": ws.ccc_score,
    "dbcv": ws.dbcv_score,
    "cfq": ws.cfq_score,
    "cfq_mixture": lambda X, y, covariances="diagonal", **options: ws.cfq_score(
        X, y, covariances=covariances, **options
    ),
    "lcd": lambda X, y, aggregate="mean", **options: getattr(
        ws.local_connectivity(X, y, **options), {"mean": "mean", "max": "maximum"}[aggregate]
    ),
}
OPTIONS: dict[str, list[dict[str, Any]]] = {
    "silhouette": [
        {},
        {"average": "cluster"},
        {"singleton": 1},
        *({"metric": metric} for metric in METRICS),
        {"metric": "cosine", "average": "cluster"},
    ],
    "silhouette_cosine": [{}, {"average": "cluster"}],
    "simplified_silhouette": [{}, {"average": "cluster"}],
    "calinski_harabasz": [{}],
    "davies_bouldin": [{}, {"q": 2}],
    "dunn": [{}, *({"metric": metric} for metric in METRICS)],
    "generalized_dunn": [
        {"separation": separation, "diameter": diameter}
        for separation in (
            "single",
            "complete",
            "average",
            "centroid",
            "to-centroids",
            "hausdorff",
        )
        for diameter in ("complete", "average", "half-average", "centroid")
    ],
    "c_index": [{}, {"variant": "nbclust"}, *({"metric": metric} for metric in METRICS)],
    "s_dbw": [{}, {"density": "own"}, {"strict": True}, {"normalise": False}],
    "cdbw": [{}, {"flavour": "fpc"}, {"order": "first"}, {"n_representatives": 3}],
    "ccc": [{"variant": variant} for variant in ("sarle", "fastclus", "nbclust")],
    "dbcv": [{}],
    "cfq": [{}, {"wrong_side": "squared"}],
    "cfq_mixture": [
        {"covariances": rule, "wrong_side": side}
        for rule, side in (("diagonal", "zero"), ("full", "zero"), ("authors", "squared"))
    ],
    "lcd": [{}, {"n_neighbors": 3, "aggregate": "max"}],
}
SPECS = [(name, options) for name, listed in OPTIONS.items() for options in listed]


def spelled(name: str, options: dict[str, Any]) -> str:
    inside = ", ".join(f"{key}={value}" for key, value in options.items())
    return f"{name}({inside})" if inside else name


def is_wrong(name: str, options: dict[str, Any], data: str) -> bool:
    """Cosine distances of two zero rows: Dunn and the C index take them as 0."""
    cosine = options.get("metric") == "cosine"
    return cosine and name in ("dunn", "c_index") and not DATA[data].X.any(axis=1).all()


def space_for(options: dict[str, Any], X: np.ndarray) -> np.ndarray:
    if options.get("metric") != "precomputed":
        return X
    from scipy.spatial.distance import cdist

    return cdist(X, X)


def one_by_one(X: Any, y: dict[str, Any], name: str, options: dict[str, Any], **more: Any) -> Any:
    values = [
        attempt(lambda labels=labels: FUNCTIONS[name](X, labels, **options, **more))
        for labels in y.values()
    ]
    return values[0] if all(isinstance(value, str) for value in values) else values


def many(X: Any, y: Any, name: str, options: dict[str, Any], **more: Any) -> Any:
    return attempt(lambda: ws.score_partitions(X, y, [(name, options)], **more).values[:, 0])


def _index_cases(wrong: bool) -> Iterator[tuple[str, Any]]:
    for data in SETS:
        _, X, every, weights = DATA[data]
        for name, options in SPECS:
            if is_wrong(name, options, data) != wrong:
                continue
            # The mixtures' boundaries take most of the time.
            slow = name == "cfq_mixture"
            y = {key: every[key] for key in ("two", "noisy and lone")} if slow else every
            case, space = f"{data}/{spelled(name, options)}", space_for(options, X)
            if name != "generalized_dunn" or data == "all":
                yield f"one/{case}", one_by_one(space, y, name, options)
            yield f"many/{case}", many(space, y, name, options)
            if data in ("all", "far"):
                small = space.astype(np.float32)
                if not (data == "far" and "cosine" in case):
                    yield f"many/float32/{case}", many(small, y, name, options)
                if name != "lcd":
                    more = {"sample_weight": weights}
                    yield f"weighted/{case}", many(space, y, name, options, **more)
            if data == "all" and not slow:
                for noise in ("cluster", "singletons", "error"):
                    found = many(space, y, name, options, noise=noise)
                    yield f"noise={noise}/{case}", found


def indices() -> Results:
    """Every index with its options: by its own function and among many partitions."""
    import scipy.sparse as sp

    found = dict(_index_cases(wrong=False))
    _, X, y, weights = DATA["all"]
    for name, options in SPECS:
        if not ws.INDICES[name].sparse and options.get("metric") != "cosine":
            continue
        if not is_wrong(name, options, "all"):
            case = spelled(name, options)
            found[f"sparse/{case}"] = many(sp.csr_array(X), y, name, options)
            more = {"sample_weight": weights}
            found[f"sparse weighted/{case}"] = many(sp.csc_array(X), y, name, options, **more)
    frame = pd.DataFrame(X, columns=list("abcd"), index=[f"o{i}" for i in range(N)])
    table = ws.score_partitions(frame, pd.DataFrame(y), noise="exclude")
    found["frame/values"] = table.values
    found["frame/names"] = [table.names, table.indices]
    found["frame/facts"] = [table.coverage, table.n_clusters, table.directions]
    text = np.array(["b", "a", "c"])[y["three"]]
    found["labels as text"] = ws.silhouette_score(frame, pd.Series(text))
    found["given centres"] = ws.cfq_score(X, y["two"], centers=np.eye(2, D) * 3)
    ace = ws.score_partitions(X, y, INDICES, convention="ace")
    found["convention=ace"] = dict(zip(ace.indices, ace.values.T, strict=True))
    found["undefined"] = sorted(
        [name, index]
        for name, index in ws.score_partitions(
            X, {"one": np.zeros(N, int), "each": np.arange(N)}, INDICES
        ).reasons
    )
    return found


def values_of_objects() -> Results:
    """Widths, margins, estimates, local connectivity, values of clusters, reports of objects."""
    import scipy.sparse as sp

    found: Results = {}
    for data, (_, X, y, weights) in DATA.items():
        for name in ("random", "noisy and lone"):
            labels, case = y[name], f"{data}/{name}"
            for metric in ("euclidean", *METRICS):
                found[f"silhouette_samples/{metric}/{case}"] = ws.silhouette_samples(
                    space_for({"metric": metric}, X), labels, metric=metric
                )
            found[f"silhouette_samples/weighted/{case}"] = ws.silhouette_samples(
                X, labels, sample_weight=weights
            )
            found[f"margins/{case}"] = ws.margins(X, labels)
            found[f"cfq_clusters/{case}"] = ws.cfq_clusters(X, labels)
            found[f"dbcv_clusters/{case}"] = ws.dbcv_clusters(X, labels)
            local = ws.local_connectivity(X, labels)
            found[f"local_connectivity/{case}"] = {
                "objects": local.objects,
                "clusters": local.clusters,
                "support": local.n_witnesses,
                "better": local.better_cluster,
                "labels": local.labels,
                "radii": local.radii,
                "summary": [local.maximum, local.mean, local.coverage],
            }
            report = ws.membership_report(X, labels)
            found[f"membership_report/{case}"] = {
                "columns": _columns(report.columns()),
                "worst": report.worst,
                "suits": report.better_cluster,
            }
            for metric in ("euclidean", "cosine", "manhattan"):
                if metric == "cosine" and data in ("zeros", "all"):
                    continue
                case_of = f"silhouette_estimate/{metric}/{case}"
                found[f"{case_of}/sample"] = _estimate(X, labels, metric, 20)
                found[f"{case_of}/exact"] = _estimate(X, labels, metric, N)
    X, y = DATA["all"].X, DATA["all"].partitions["noisy and lone"]
    for noise in ("exclude", "cluster", "singletons"):
        found[f"noise={noise}/silhouette_samples"] = ws.silhouette_samples(X, y, noise=noise)
        found[f"noise={noise}/margins"] = ws.margins(X, y, noise=noise)
    small = X.astype(np.float32)
    found["float32/silhouette_samples"] = ws.silhouette_samples(small, y)
    found["float32/margins"] = ws.margins(small, y)
    found["sparse/margins"] = ws.margins(sp.csr_array(X), y)
    found["sparse/silhouette_samples"] = ws.silhouette_samples(sp.csr_array(X), y, metric="cosine")
    return found


def _columns(columns: dict[str, Any]) -> dict[str, Any]:
    recorded = {"better_cluster": "suits", "relative_margin": "fence", "n_witnesses": "support"}
    return {
        recorded.get(key, key): np.asarray(value).tolist()
        for key, value in columns.items()
        if key != "reason"
    }


def _estimate(X: Any, labels: Any, metric: str, n_sampled: int) -> list[Any]:
    found = ws.silhouette_estimate(X, labels, metric=metric, n_sampled=n_sampled, random_state=0)
    numbers = [found.value, found.low, found.high, found.standard_error]
    return [*numbers, float(found.n_sampled), float(found.exact)]


# --------------------------------------------------------------------------- clusterers


def _fitted(model: Any, *extra: str) -> dict[str, Any]:
    names = ("labels_", "cluster_centers_", "inertia_", "n_iter_", *extra)
    facts: dict[str, Any] = {name: getattr(model, name) for name in names}
    return {**facts, "dtype": str(model.cluster_centers_.dtype)}


def clusterers() -> Results:
    """Fits with fixed seeds."""
    import scipy.sparse as sp

    found: Results = {}
    kinds = {
        "dense": lambda X: X,
        "float32": lambda X: X.astype(np.float32),
        "sparse": sp.csr_array,
    }
    for data in SETS:
        _, X, _, weights = DATA[data]
        for kind, turn in kinds.items():
            for weighted in (False, True):
                case = f"{data}/{kind}{'/weighted' if weighted else ''}"
                options = {"sample_weight": weights} if weighted else {}
                km = ws.KMeans(4, n_init=3, random_state=0).fit(turn(X), **options)
                found[f"KMeans/{case}"] = _fitted(km)
                cf = ws.CFMeans(4, random_state=0).fit(turn(X), **options)
                found[f"CFMeans/{case}"] = _fitted(cf, "n_moves_", "margins_", "cfq_")
                if data not in ("zeros", "all") and not (data.endswith("far") and kind != "dense"):
                    model = ws.KMeans(3, n_init=2, metric="cosine", random_state=0)
                    found[f"KMeans cosine/{case}"] = _fitted(model.fit(turn(X), **options))
            if kind != "sparse":
                lof = ws.LOFKMeans(3, n_init=2, random_state=0).fit(turn(X))
                found[f"LOFKMeans/{data}/{kind}"] = _fitted(lof, "lof_scores_", "weights_")
    _, X, _, weights = DATA["all"]
    model = ws.KMeans(3, n_init=2, random_state=0).fit(pd.DataFrame(X, columns=list("abcd")))
    found["KMeans/frame"] = _fitted(model)
    found["KMeans/predict"] = model.predict(DATA["plain"].X)
    found["KMeans/transform"] = model.transform(DATA["plain"].X[:5])
    found["KMeans/score"] = model.score(DATA["plain"].X)
    found["KMeans/init"] = _fitted(ws.KMeans(3, init=X[:3]).fit(X))
    found["KMeans/random"] = _fitted(ws.KMeans(5, init="random", random_state=1).fit(X))
    for schedule in ("oscillate", "none"):
        options = {"schedule": schedule, "safeguard": False, "random_state": 2}
        found[f"CFMeans/{schedule}"] = attempt(lambda o=options: _fitted(ws.CFMeans(5, **o).fit(X)))
    return found


def choosing() -> Results:
    """The number of clusters, searches over settings, the gap statistic."""
    from sklearn.cluster import DBSCAN

    found: Results = {}
    _, X, _, weights = DATA["all"]
    model = ws.KMeans(n_init=2)
    votes = {"indices": ["silhouette", "calinski_harabasz", "davies_bouldin", "cfq"], "gate": False}
    for case, options in {
        "default": {"indices": None, "gate": True},
        "plain": {},
        "repeats": {"n_repeats": 2, "subsample": 0.8},
        "weights": {"sample_weight": weights},
        "all indices": {"indices": INDICES},
    }.items():
        options = {"estimator": model, **votes, **options}
        chosen = ws.choose_k(X, range(2, 6), random_state=0, **options)
        found[f"choose_k/{case}"] = {
            "best": chosen.best,
            "picks": dict(chosen.picks),
            "votes": dict(chosen.votes),
            "values": chosen.values,
            "stability": chosen.stability,
            "labels": chosen.labels,
            "indices": chosen.indices,
        }
    for case, estimator, grid, options in (
        ("k-means", ws.KMeans(n_init=2, random_state=0), {"n_clusters": [2, 3, 5]}, {}),
        ("dbscan", DBSCAN(min_samples=3), {"eps": [1.0, 2.0]}, {"noise": "exclude"}),
        ("noise", DBSCAN(min_samples=3), {"eps": [1.0, 2.0]}, {"noise": "singletons"}),
    ):
        scoring = ["silhouette", "davies_bouldin"]
        search = ws.ClusterSearch(estimator, grid, scoring=scoring, refit="silhouette", **options)
        search.fit(X)
        kept = {k: v for k, v in search.cv_results_.items() if "score" in k and "time" not in k}
        found[f"ClusterSearch/{case}"] = {
            "best": dict(search.best_params_),
            "labels": search.labels_,
            **{key: np.asarray(value, dtype=float) for key, value in kept.items()},
        }
    for reference in ("pca", "uniform"):
        gap = attempt(
            lambda r=reference: ws.gap_statistic(
                X, range(1, 5), n_references=3, reference=r, random_state=0
            )
        )
        found[f"gap_statistic/{reference}"] = (
            gap if isinstance(gap, str) else [gap.gap, gap.error, gap.log_within]
        )
        found[f"gap_statistic/{reference}/best"] = gap if isinstance(gap, str) else gap.best
    return found


# --------------------------------------------------------------------------- spaces


def spaces() -> Results:
    """The dip test and multimodality by each projection, Holm's correction."""
    found: Results = {}
    for data in DATA:
        X = DATA[data].X
        for column in (0, 2):
            dip = ws.dip_test(X[:, column])
            numbers = [dip.statistic, dip.pvalue, *dip.modal_interval]
            found[f"dip_test/table/{data}/{column}"] = numbers
        found[f"dip_statistic/{data}"] = [dip_statistic(column) for column in X.T]
        for kind, turned in (("float64", X), ("float32", X.astype(np.float32))):
            for projection in ("pca-scaled", "pca", "components", "distances"):
                space = ws.multimodality(turned, projection=projection, n_components=2)
                found[f"multimodality/{projection}/{data}/{kind}"] = {
                    "numbers": [space.statistic, space.pvalue, space.relative_gap],
                    "each": [float(v) for v in (*space.statistics, *space.pvalues)],
                    "counts": [space.n_objects, space.n_values, space.defined, space.scaled],
                }
    sampled = ws.multimodality(DATA["all"].X, projection="distances", max_pairs=100, random_state=0)
    found["multimodality/distances/sampled"] = [sampled.statistic, sampled.pvalue]
    for alpha in (0.05, 0.2):
        result = holm([0.01, 0.04, 0.03, 0.5, np.nan, 0.01], alpha)
        found[f"holm/{alpha}"] = {"adjusted": result.adjusted, "reject": result.reject}
    return found


# --------------------------------------------------------------------------- runs and judgement


def made_runs(noise: bool = False, dtypes: Any = np.float64) -> ws.Runs:
    """Six runs: the later, the less their spaces are separated and their labels right."""
    rng = np.random.default_rng(21)
    n = 60
    truth = np.arange(n) % 3
    runs = []
    for i, wrong in enumerate((0.0, 0.1, 0.2, 0.35, 0.5, 0.8)):
        d = 2 + i % 3
        X = rng.normal(size=(n, d)) + (0 if i == 5 else 5 - i) * np.eye(3, d)[truth]
        X[[4, 7]] = 0.0
        X[12] = X[15]
        labels = np.where(rng.random(n) < wrong, rng.integers(0, 4, n), truth)
        if noise:
            labels[rng.choice(n, 5, replace=False)] = -1
        X = X.astype(dtypes[i] if isinstance(dtypes, list) else dtypes)
        runs.append(ws.Run(f"run {i}", labels=labels, embedding=X, params={"wrong": wrong}))
    return ws.Runs(runs)


TRUTH = np.arange(60) % 3
INPUT = np.random.default_rng(22).normal(size=(60, 5)) + 4 * np.eye(3, 5)[TRUTH]
JUDGED = [
    "silhouette",
    ("davies_bouldin", {"q": 2}),
    "calinski_harabasz",
    ("silhouette", {"metric": "cosine"}),
    "dbcv",
    "cdbw",
]


def _scores(scores: Any) -> dict[str, Any]:
    facts = {
        "values": dict(scores.values),
        "directions": dict(scores.directions),
        "spaces": scores.spaces,
        "partitions": scores.partitions,
        "made_in": scores.made_in,
        "undefined": {k: sorted(v) for k, v in scores.reasons.items()},
        "coverage": scores.coverage,
        "n_clusters": scores.n_clusters,
        "dims": scores.dims,
        "n_objects": scores.n_objects,
    }
    dip = scores.dip
    return {**facts, "dip": None if dip is None else [dip.statistic, dip.pvalue]}


def _ace(result: Any) -> dict[str, Any]:
    return {
        "index": result.index,
        "direction": result.direction,
        "scores": result.scores,
        "kind": result.winner.won_by,
        "winning_spaces": result.winner.spaces,
        "weights": result.winner.weights,
        "retained": result.screen.retained,
        "dropped": [[d.space, d.step] for d in result.dropped],
        "groups": result.groups.members,
        "outliers": result.groups.outliers,
        "winners": result.winner.subgroups,
        "fallback": result.groups.fallback,
        "subgroups": [
            [list(s.members), s.group, s.weights, s.n_edges, s.mean, s.scores]
            for s in result.groups.subgroups
        ],
        "agreement": result.groups.agreement,
        "pvalue": result.groups.pvalue,
        "adjusted": result.groups.adjusted,
        "edges": result.groups.edges,
        "dip": [result.screen.pvalue, result.screen.adjusted],
        "outlier_test": result.winner.test,
        "undefined": [entry[:2] for entry in result.undefined],
        "fill": result.undefined_value,
        "baselines": list(result.baselines.values()),
    }


def _ranking(ranking: Any) -> dict[str, Any]:
    sure = ranking.confidence
    return {
        "names": ranking.names,
        "score": ranking.score,
        "rank": ranking.rank,
        "order": ranking.order,
        "best": ranking.best,
        "winners": ranking.winners,
        "baselines": list(ranking.baselines.values()),
        "beside": dict(ranking.by_other_index),
        "confidence": None
        if sure is None
        else {
            "ranks": sure.ranks,
            "first_in": sure.first_in,
            "interval": sure.interval,
            "counts": [sure.n_draws, sure.n_groups, sure.spaces_left_out],
        },
    }


def ace() -> Results:
    """Scores of runs, ACE with its options, baselines."""
    found: Results = {}
    runs, noisy = made_runs(), made_runs(noise=True)
    scores = ws.score_runs(runs, JUDGED, projection="pca")
    found["score_runs"] = _scores(scores)
    small = made_runs(dtypes=np.float32)
    found["score_runs/float32"] = _scores(ws.score_runs(small, JUDGED, projection="pca"))
    found["score_runs/convention"] = _scores(
        ws.score_runs(runs, ["c_index", "s_dbw", "ccc"], convention="ace", dip=False)
    )
    found["score_runs/noise=error"] = attempt(lambda: ws.score_runs(noisy, noise="error"))
    for noise in ("exclude", "cluster", "singletons"):
        found[f"score_runs/noise={noise}"] = _scores(
            ws.score_runs(noisy, JUDGED[:3], noise=noise, projection="pca")
        )
    for projection in ("pca-scaled", "pca", "components", "distances"):
        dip = ws.score_runs(runs, projection=projection).dip
        found[f"score_runs/{projection}"] = [dip.statistic, dip.pvalue]
    for case, options in {
        "default": {},
        "no dip": {"dip": False},
        "dip_alpha": {"dip_alpha": 0.5},
        "alpha": {"alpha": 0.5, "dip": False},
        "no alpha": {"alpha": None, "dip": False},
        "kendall": {"correlation": "kendall", "dip": False},
        "dbscan": {"grouping": "dbscan", "eps": 0.3, "dip": False},
        "hits": {"links": "hits", "dip": False},
        "compete": {"outliers": "compete", "dip": False},
    }.items():
        for index in scores.indices:
            found[f"ace/{case}/{index}"] = _ace(ws.ace(scores, index=index, **options))
    for index in scores.indices:
        baselines = ws.ace(scores, index=index).baselines
        found[f"baselines/{index}"] = [
            baselines[name] for name in ("own_space", "mean_admitted", "mean_all")
        ]
    found["baselines of the input"] = {
        label: input_scores(INPUT, runs, index=index)
        for label, index in zip(scores.indices, JUDGED, strict=True)
    }
    matrix = np.random.default_rng(3).normal(size=(9, 12)).cumsum(axis=1)
    matrix[4, 3] = np.nan
    for direction in (1, -1):
        made = ws.Scores.from_matrix(matrix, paired=False, direction=direction)
        found[f"ace/matrix/{direction}"] = _ace(ws.ace(made, dip=False))
    return found


def judgement() -> Results:
    """Judgements with half-samples, and agreement with the truth."""
    found: Results = {}
    runs, noisy = made_runs(), made_runs(noise=True)
    whole = None
    for case, given, indices, options in (
        # Few draws where an index is computed anew for each.
        ("silhouette", runs, ["silhouette"], {}),
        ("several", runs, JUDGED, {"X": INPUT}),
        ("calinski_harabasz", runs, ["calinski_harabasz"], {"dip": False}),
        ("cosine", runs, [("silhouette", {"metric": "cosine"})], {"dip": False}),
        ("manhattan", runs, [("silhouette", {"metric": "manhattan"})], {"dip": False}),
        ("dunn", runs, ["dunn"], {"dip": False, "n_draws": 5}),
        ("c_index", runs, ["c_index"], {"dip": False, "n_draws": 5}),
        ("dbcv", runs, ["dbcv"], {"dip": False, "n_draws": 5}),
        ("simplified", runs, ["simplified_silhouette"], {"dip": False}),
        ("cfq", runs, ["cfq"], {"dip": False, "n_draws": 5}),
        ("s_dbw", runs, ["s_dbw"], {"dip": False, "n_draws": 5}),
        ("davies_bouldin", runs, ["davies_bouldin"], {"ace": {"grouping": "dbscan"}, "n_draws": 5}),
        ("float32", made_runs(dtypes=np.float32), ["silhouette"], {}),
        ("noise=exclude", noisy, ["silhouette"], {"noise": "exclude"}),
        ("noise=cluster", noisy, ["silhouette"], {"noise": "cluster"}),
        ("noise=singletons", noisy, ["silhouette"], {"noise": "singletons"}),
    ):
        options = {"n_draws": 20, "random_state": 0, **options}
        judged = ws.judge(given, indices, **options)
        found[f"judge/{case}"] = _ranking(judged.ranking)
        choice = judged.details
        found[f"judge/{case}/details"] = {
            "names": [choice.partition, choice.space, *choice.clusters],
            "codes": choice.codes,
            "widths": choice.widths,
            "margins": choice.margins,
        }
        whole = judged if case == "several" else whole
    agreement = ws.agreement(whole.ranking, runs, TRUTH)
    found["agreement"] = {
        "external": dict(agreement.external),
        "correlations": [list(row.values()) for row in agreement.correlations.values()],
        "picks": list(agreement.picks.values()),
    }
    answer, *others = whole.answers["ace"].values()
    found["rank"] = _ranking(rank(answer, others=others))
    with tempfile.TemporaryDirectory() as folder:
        whole.save(Path(folder) / "kept")
        found["loaded"] = _ranking(Judgement.load(Path(folder) / "kept").ranking)
    return found


def stored_runs() -> Results:
    """Runs saved and loaded in each format."""
    found: Results = {}
    runs = made_runs(noise=True, dtypes=[np.float64, np.float32] * 3)
    ids = [f"o{i}" for i in range(60)]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        runs.save(folder / "folders")
        runs.save(folder / "runs.npz")
        for kind in ("tables", "parquet", "plain", "saved"):
            (folder / kind).mkdir()
        for run in runs:
            X, y = np.asarray(run.embedding), np.asarray(run.labels)
            frame = pd.DataFrame(X, index=pd.Index(ids, name="id")).rename(columns=str)
            labels = pd.DataFrame({"label": y}, index=frame.index)
            frame.to_csv(folder / "tables" / f"{run.name}.embedding.csv")
            labels.to_csv(folder / "tables" / f"{run.name}.labels.csv")
            frame.reset_index().to_parquet(folder / "parquet" / f"{run.name}.embedding.parquet")
            labels.reset_index().to_parquet(folder / "parquet" / f"{run.name}.labels.parquet")
            (folder / "plain" / run.name).mkdir()
            np.save(folder / "plain" / run.name / "embedding.npy", X)
            np.save(folder / "plain" / run.name / "labels.npy", y)
            ws.save_run(
                folder / "saved", X, y, name=f"{run.name}/é", params=run.params, ids=ids,
                metadata={"by": "test"},
            )  # fmt: skip
        ws.save_run(folder / "saved", np.eye(60, 3), None, name="space only", ids=ids)
        ws.save_run(folder / "saved", None, TRUTH, name="labels only", ids=ids, space="space only")
        for kind in ("folders", "runs.npz", "tables", "parquet", "plain", "saved"):
            loaded = ws.load_runs(folder / kind, verify=True)
            found[f"loaded/{kind}"] = {
                "names": loaded.names,
                "ids": None if loaded.ids is None else list(map(str, loaded.ids)),
                "params": {k: dict(v or {}) for k, v in loaded.params.items()},
                "metadata": {k: dict(v or {}) for k, v in loaded.metadata.items()},
                "made_in": np.asarray(loaded.made_in),
                "partitions": {k: np.asarray(v) for k, v in loaded.partitions.items()},
                "sums": {k: np.asarray(v).sum(axis=0).tolist() for k, v in loaded.spaces.items()},
                "dtypes": {k: str(np.asarray(v).dtype) for k, v in loaded.spaces.items()},
            }
        tree = sorted(p.relative_to(folder).as_posix() for p in (folder / "saved").rglob("*"))
        found["files of saved runs"] = tree
        run_json = (folder / "folders").glob("run*0/run.json")
        found["run.json"] = json.loads(next(run_json).read_text(encoding="utf-8"))
    return found


def external() -> Results:
    """Indices against true classes, for every pair of partitions."""
    found: Results = {}
    y = DATA["all"].partitions
    functions = {
        "nmi": ws.nmi_score,
        "accuracy": ws.clustering_accuracy,
        "purity": ws.purity_score,
        "ari": ws.ari_score,
        "ami": ws.ami_score,
    }
    for name, function in functions.items():
        found[name] = [[float(function(a, b)) for b in y.values()] for a in y.values()]
    for average in ("min", "geometric", "max"):
        found[f"nmi/{average}"] = [
            float(ws.nmi_score(y["three"], b, average_method=average)) for b in y.values()
        ]
    return found


# --------------------------------------------------------------------------- deep


def deep() -> Results:
    """Losses and agglomeration on the CPU in float64."""
    import torch

    from wellsep import deep as methods
    from wellsep.deep import losses

    found: Results = {}
    for data in ("plain", "all", "far"):
        X = DATA[data].X
        z = torch.tensor(X)
        centres = torch.tensor(X[[0, 1, 2, 9, 12]])
        two = losses.nearest_two(z, centres)
        q = losses.soft_assignment(z, centres)
        target = losses.sharpened(q)
        labels = torch.tensor(DATA[data].partitions["lone"])
        drawn = losses.sample_triplets(labels[:20], 3, torch.Generator().manual_seed(0))
        values = {
            "reconstruction": losses.reconstruction(z, z.flip(0)),
            "squared_distances": losses.squared_distances(z[:6], centres),
            "nearest_two": torch.stack([two.own, two.margin]),
            "kmeans_loss": two.own.mean(),
            "separation": two.margin.square().mean(),
            "soft_assignment": q,
            "soft_assignment/freedom": losses.soft_assignment(z, centres, 3.0),
            "sharpened": target,
            "balanced": losses.balanced(q),
            "divergence": losses.divergence(target, q),
            "cross_entropy": losses.cross_entropy(q, torch.tensor(X[:, 0] > 3).long()),
            "layered_reconstruction": losses.layered_reconstruction(
                [z, z[:, :2]], [z.flip(0), z[:, 2:]]
            ),
            "triplets": torch.stack(list(drawn)),
            "triplet_loss": losses.triplet_loss(z[:20], drawn),
        }
        for name, value in values.items():
            found[f"{name}/{data}"] = value.numpy()
        for linkage in (methods.degree_linkage, methods.path_integral):
            for k in (2, 5):
                found[f"{linkage.__name__}/{k}/{data}"] = linkage(X, k, n_neighbors=6)
            start = DATA[data].partitions["random"]
            given = linkage(X, 3, labels=start, n_neighbors=4)
            found[f"{linkage.__name__}/given/{data}"] = given
    return found


# --------------------------------------------------------------------------- Dask and tensors


def _taken(value: Any) -> Any:
    """A lazy array computed, a tensor as an array; anything else as it is."""
    if hasattr(value, "compute"):
        return value.compute()
    return value.numpy() if hasattr(value, "numpy") else value


def _library(value: Any) -> str:
    return type(value).__module__.partition(".")[0]


def _fitted_elsewhere(model: Any, X: Any, options: dict[str, Any]) -> dict[str, Any]:
    """What a fit of data on Dask or of tensors publishes, and of which library it is."""
    model.fit(X, **options)
    names = ("labels_", "cluster_centers_", "inertia_", "n_iter_", "n_moves_", "safeguarded_")
    names += ("cfq_", "margins_", "lof_scores_", "weights_", "medoid_indices_")
    facts = {name: getattr(model, name) for name in names if hasattr(model, name)}
    facts["predict"] = model.predict(X)
    if hasattr(model, "transform"):
        facts["transform"] = model.transform(X[:3])
    if hasattr(model, "score"):
        facts["score"] = model.score(X)
    libraries = {name: _library(value) for name, value in facts.items() if np.ndim(value)}
    return {**{name: _taken(value) for name, value in facts.items()}, "libraries": libraries}


def _made_groups() -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Five groups of unequal size, 90 objects, with the groups and a worse partition."""
    rng = np.random.default_rng(31)
    truth = np.sort(rng.integers(0, 10, 90) ** 2 // 20)
    X = rng.normal(size=(90, 3)) + 5 * rng.normal(size=(5, 3))[truth]
    order = rng.permutation(90)
    worse = np.where(rng.random(90) < 0.2, rng.integers(-1, 4, 90), truth)
    return X[order], {"groups": truth[order], "worse": worse[order]}


def estimators() -> Results:
    """Estimators and indices on Dask arrays of three chunks and on tensors in host memory."""
    import dask
    import dask.array as da
    import torch

    kinds: dict[str, Callable[[np.ndarray], Any]] = {
        "dask": lambda X: da.from_array(X, chunks=((len(X) // 2, 5, len(X) - len(X) // 2 - 5), -1)),
        "tensor": torch.tensor,
    }
    ugly = DATA["all"]
    few = {name: ugly.partitions[name] for name in ("three", "noisy and lone")}
    sets = {"all": (ugly.X, few), "groups": _made_groups()}
    found: Results = {}
    with dask.config.set(scheduler="synchronous"):
        for data, (X, y) in sets.items():
            weights = np.random.default_rng(32).integers(0, 5, len(X)) / 4.0
            models = {
                "KMeans": lambda: ws.KMeans(4, n_init=3, random_state=0),
                "KMeans/init": lambda X=X: ws.KMeans(5, init=X[:5].copy()),
                "CFMeans": lambda: ws.CFMeans(4, random_state=0),
                "CFMeans/init": lambda X=X: ws.CFMeans(
                    5, init=X[:5].copy(), schedule="oscillate", max_moves=8, random_state=1
                ),
                "KMedoids": lambda: ws.KMedoids(3, random_state=0),
                "LOFKMeans": lambda: ws.LOFKMeans(3, n_init=2, n_neighbors=6, random_state=0),
                "RobustKMeans": lambda: ws.RobustKMeans(3, min_cluster_size=9, random_state=0),
            }
            if data != "all":  # which has rows of zeros
                models["KMeans/cosine"] = lambda: ws.KMeans(
                    3, n_init=2, metric="cosine", random_state=0
                )
            for kind, turn in kinds.items():
                space = turn(X)
                for name, made in models.items():
                    ways: dict[str, dict[str, Any]] = {"": {}}
                    if name != "KMedoids":  # which takes no weights
                        ways["/weighted"] = {"sample_weight": weights}
                    for case, options in ways.items():
                        found[f"{name}/{kind}/{data}{case}"] = attempt(
                            lambda made=made, X=space, options=options: _fitted_elsewhere(
                                made(), X, options
                            )
                        )
                for name in ("silhouette", "dunn", "c_index", "cfq", "dbcv"):
                    case = f"{name}/{kind}/{data}"
                    found[f"one/{case}"] = one_by_one(space, y, name, {})
                    found[f"many/{case}"] = many(space, y, name, {})
    return found


# --------------------------------------------------------------------------- command line

# Prose, paths and times.
SAID = ("headline", "second", "next")  # words of a verdict
NOT_RECORDED = {"explanation", "why", "note", "notes", "seconds", "undefined", *SAID}


def _without_prose(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _without_prose(v) for k, v in value.items() if k not in NOT_RECORDED}
    return [_without_prose(v) for v in value] if isinstance(value, list) else value


def printed(*arguments: Any) -> Any:
    """What a command prints as JSON; its exit code and error where it fails."""
    from wellsep.cli.main import main

    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main([str(a) for a in arguments])
    if code:
        return f"exit code {code}"
    return _without_prose(json.loads(out.getvalue()))


def cli() -> Results:
    """The JSON of the commands."""
    found: Results = {}
    _, X, y, _ = DATA["all"]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        frame = pd.DataFrame(X, columns=list("abcd"))
        frame.to_csv(folder / "data.csv", index=False)
        frame.to_parquet(folder / "data.parquet")
        np.save(folder / "data.npy", X)
        pd.DataFrame(y).to_csv(folder / "labels.csv", index=False)
        made_runs().save(folder / "runs")
        made_runs(noise=True).save(folder / "noisy.npz")
        np.save(folder / "truth.npy", TRUTH)
        np.save(folder / "input.npy", INPUT)
        for ending in ("csv", "parquet", "npy"):
            data, labels = folder / f"data.{ending}", folder / "labels.csv"
            found[f"score/{ending}"] = printed("score", data, labels, "--json")
        indices = ["-i", "davies_bouldin(q=2)", "-i", "dunn"]
        found["score/indices"] = printed(
            "score", folder / "data.csv", folder / "labels.csv", *indices, "--json"
        )
        found["score/noise"] = printed(
            "score", folder / "data.csv", folder / "labels.csv", "--noise", "cluster", "--json"
        )
        quick = ("--draws", "10", "--cache", "none", "--ace", "projection=pca", "--json")
        found["rank"] = printed("rank", folder / "runs", *quick)
        found["rank/options"] = printed(
            "rank", folder / "runs", *indices, "--ace", "dip=no", "--ace", "grouping=dbscan",
            "--truth",
            folder / "truth.npy", "--input", folder / "input.npy", *quick,
        )  # fmt: skip
        found["rank/noise"] = printed("rank", folder / "noisy.npz", "--noise", "exclude", *quick)
        found["rank/refused"] = printed("rank", folder / "noisy.npz", "--noise", "error", *quick)
        found["choose-k"] = printed("choose-k", folder / "data.csv", "-k", "2:5", "--json")
        found["choose-k/options"] = printed(
            "choose-k", folder / "data.npy", "-k", "2,4", "--method", "ward", "--scale", *indices,
            "--json",
        )  # fmt: skip
        for method in ("k-means", "cf-means", "lof-k-means", "ward", "gaussian-mixture"):
            found[f"cluster/{method}"] = printed(
                "cluster", folder / "data.csv", "-k", "3", "--method", method, "--json"
            )
    return found


# --------------------------------------------------------------------------- what users read

MOST_VALUES = 40  # of an array that is recorded whole
INDEX_PAIR = ["silhouette", "calinski_harabasz"]


def briefly(value: Any) -> Any:
    """A plain value whose long lists of numbers or texts are facts about them.

    Of floats these are the number of those that are finite, and of these the smallest, the
    greatest, the mean, and a sum with weights that differ, which sees an exchange; a digest would
    change with the last bit. Of all others: a digest.
    """
    if isinstance(value, dict):
        return {str(key): briefly(entry) for key, entry in value.items()}
    if not isinstance(value, list):
        return value
    array = _one_kind(value)
    if array is None or array.size <= MOST_VALUES:
        return [briefly(entry) for entry in value]
    facts: dict[str, Any] = {"shape": list(array.shape)}
    if array.dtype.kind != "f":
        text = json.dumps(array.tolist(), ensure_ascii=False)
        return {**facts, "digest": hashlib.sha256(text.encode()).hexdigest()[:16]}
    flat = array.ravel()
    finite = np.isfinite(flat)
    numbers, weights = flat[finite], np.cos(np.arange(flat.size))[finite]
    if numbers.size:
        found = numbers.min(), numbers.max(), numbers.mean(), weights @ numbers
        facts["values"] = [float(value) for value in found]
    return {**facts, "finite": int(finite.sum())}


def _one_kind(value: list[Any]) -> np.ndarray | None:
    """The list as an array of numbers, flags or texts, or None; None in it is NaN."""
    kinds: set[type] = set()
    pending = [value]
    while pending:
        for entry in pending.pop():
            if isinstance(entry, list):
                pending.append(entry)
            else:
                kinds.add(type(entry))
    with contextlib.suppress(ValueError):
        if kinds <= {int, float, type(None)} and kinds != {int}:
            return np.array(value, dtype=float)
        if len(kinds) == 1 and kinds <= {int, bool, str}:
            return np.array(value)
    return None


def unpacked(value: Any) -> Any:
    """The payload of a page with its packed arrays as lists of numbers, as the script reads it."""
    if isinstance(value, list):
        return [unpacked(entry) for entry in value]
    if not isinstance(value, dict):
        return value
    if "$" not in value:
        return {key: unpacked(entry) for key, entry in value.items()}
    data, kind = base64.b64decode(value["b"]), value["$"]
    if kind == "bits":
        return np.unpackbits(np.frombuffer(data, np.uint8), count=value["n"]).tolist()
    if kind == "plane":
        three = np.frombuffer(data, np.uint8).reshape(-1, 3).astype(int)
        x, y = three[:, 0] << 4 | three[:, 1] >> 4, (three[:, 1] & 15) << 8 | three[:, 2]
        grid = {key: value[key] for key in "xyswh"}
        return {**grid, "points": (np.column_stack([x, y]) / 1.0).tolist()}
    return np.frombuffer(data, "<" + kind).tolist()


class PageText(HTMLParser):
    """The text of a page, a line for each block and each row of a table."""

    INLINE = frozenset({"a", "b", "bdi", "code", "span", "strong"})
    CELLS = frozenset({"td", "th", "dd", "button", "option"})
    UNSEEN = frozenset({"script", "style", "title", "noscript"})

    def __init__(self, page: str) -> None:
        super().__init__()
        self.pieces: list[str] = []
        self.unseen = 0
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.unseen += tag in self.UNSEEN
        if tag not in self.INLINE:
            self.pieces.append(" | " if tag in self.CELLS else "\n")

    def handle_endtag(self, tag: str) -> None:
        self.unseen -= tag in self.UNSEEN
        if tag not in self.INLINE | self.CELLS:
            self.pieces.append("\n")

    def handle_data(self, data: str) -> None:
        if not self.unseen:
            self.pieces.append(re.sub(r"\s+", " ", data))

    @property
    def lines(self) -> list[str]:
        lines = (" ".join(line.split()) for line in "".join(self.pieces).split("\n"))
        return [anonymous(line) for line in lines if line]


def anonymous(text: str, folder: str = "") -> str:
    """A text without the version, the date, seconds and the folder it came about in."""
    text = text.replace(f"wellsep {ws.__version__}", "wellsep <version>")
    text = re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d UTC", "<date>", text)
    text = re.sub(r"\d+(\.\d+)? (s|seconds|min)\b", "<seconds>", text)
    return text.replace(folder, "<folder>") if folder else text


GLOSSARY = re.compile(r'<details [^>]*id="words">.*?</details>', re.DOTALL)


def _page(result: Any, **options: Any) -> dict[str, Any]:
    """What the script of a page reads and what a page says without it."""
    with tempfile.TemporaryDirectory() as name:
        path = ws.render_report(result, Path(name) / "page.html", layout="pca", **options)
        html = path.read_text(encoding="utf-8")
    inside = re.search(r'<script type="application/json" id="data">(.*?)</script>', html, re.DOTALL)
    data = json.loads(inside[1])
    data.pop("palette")  # of every page alike
    carried = {f"data/{key}": value for key, value in _timeless(data).items()}
    return {**briefly(unpacked(carried)), "text": PageText(GLOSSARY.sub("", html)).lines}


def _timeless(value: Any) -> Any:
    """A payload without seconds and version."""
    if isinstance(value, dict):
        kept = {k: v for k, v in value.items() if k not in ("seconds", "version")}
        return {k: _timeless(v) for k, v in kept.items()}
    return [_timeless(v) for v in value] if isinstance(value, list) else value


def labels_alone(runs: ws.Runs) -> ws.Runs:
    return ws.Runs.from_parts(None, runs.partitions)


def one_clustering(spaces: bool = True) -> ws.Runs:
    """Five runs that differ in the names of their clusters only."""
    runs = made_runs()
    names = {f"run {i}": (TRUTH + i) % 3 for i in range(5)}
    return ws.Runs.from_parts(
        {k: runs.spaces[k] for k in runs.names[:3]} if spaces else None, names
    )


def judged(runs: ws.Runs, indices: Any = "silhouette", **options: Any) -> Judgement:
    return ws.judge(runs, indices, **{"n_draws": 10, "random_state": 0, **options})


def stopped_clock() -> Any:
    """No time passes: the seconds in a table are 0."""
    return mock.patch("time.perf_counter", return_value=0.0)


def chosen_k(**options: Any) -> ChosenK:
    with stopped_clock():
        return ws.choose_k(INPUT, range(2, 6), indices=INDEX_PAIR, random_state=0, **options)


def stable(**options: Any) -> Stability:
    return ws.stability(
        ws.KMeans(3, n_init=2), INPUT, n_draws=6, n_splits=2, random_state=0, **options
    )


FEATURES = ["height", "weight", "age", "income", "distance"]
NAMED = pd.DataFrame(INPUT, columns=FEATURES)
OBJECTS = {"site": ["north", "south"] * 30, "age": list(range(60))}


def page() -> Results:
    """What pages carry for their script, and what they say without it."""
    runs, noisy = made_runs(), made_runs(noise=True)
    full = judged(runs, INDEX_PAIR, dip=False, X=NAMED)
    with tempfile.TemporaryDirectory() as name:
        path = ws.render_report(full, Path(name) / "page.html")
        glossary = GLOSSARY.search(path.read_text(encoding="utf-8"))
    pages = {
        "ranking": _page(full, runs=runs, truth=TRUTH, objects=OBJECTS, title="Six runs"),
        "ranking without runs": _page(full),
        "ranking, screened": _page(judged(runs), runs=runs),
        "ranking, no draws": _page(judged(runs, n_draws=0, dip=False, details=False), runs=runs),
        "ranking, noise": _page(judged(noisy, judge="consensus"), runs=noisy, truth=TRUTH),
        "ranking, labels only": _page(judged(labels_alone(runs)), runs=labels_alone(runs)),
        "ranking, all equal": _page(judged(one_clustering()), runs=one_clustering()),
        "choose_k": _page(chosen_k(), runs=INPUT, truth=TRUTH),
        "choose_k without data": _page(chosen_k(gate=False, n_repeats=2)),
        "stability": _page(stable(), runs=INPUT, truth=TRUTH),
        "stability without data": _page(stable(subsample=0.5)),
    }
    found = {f"{kind}/{key}": value for kind, made in pages.items() for key, value in made.items()}
    return {"words": PageText(glossary[0]).lines, **found}


class Terminal(io.StringIO):
    """A screen of 80 columns without colours."""

    def isatty(self) -> bool:
        return True


PLAIN_SCREEN = {"COLUMNS": "80", "LINES": "50", "TERM": "dumb", "NO_COLOR": "1"}


def shown(command: str, screen: bool = True) -> dict[str, Any]:
    """The exit code of a command and what it prints; JSON as values, usage errors not at all."""
    from wellsep.cli.main import main

    out, err = Terminal() if screen else io.StringIO(), io.StringIO()
    streams = contextlib.redirect_stdout(out), contextlib.redirect_stderr(err)
    with stopped_clock(), mock.patch.dict(os.environ, PLAIN_SCREEN), streams[0], streams[1]:
        for name in ("FORCE_COLOR", "CLICOLOR_FORCE", "TTY_COMPATIBLE", "WELLSEP_DEBUG"):
            os.environ.pop(name, None)
        code = main(shlex.split(command))
    here = str(Path.cwd())
    said, errors = anonymous(out.getvalue(), here), anonymous(err.getvalue(), here)
    if code == 0 and "--json" in command.split():
        printed_json: Any = briefly(_timeless(json.loads(said)))
        return {"code": code, "json": printed_json, "err": _lines(errors)}
    usage = errors.startswith("Usage:")  # a page of another library
    return {"code": code, "out": _lines(said), "err": "usage" if usage else _lines(errors)}


def _lines(text: str) -> list[str]:
    return [line.rstrip() for line in text.rstrip().split("\n")]


@contextlib.contextmanager
def files_to_read() -> Iterator[Path]:
    """A folder, made the present one, with runs, a table of data, labels and true classes."""
    with tempfile.TemporaryDirectory() as name, contextlib.chdir(name):
        runs = made_runs()
        runs.save("runs")
        made_runs(noise=True).save("noisy.npz")
        one_clustering().save("equal.npz")
        np.save("truth.npy", TRUTH)
        _write_table("data.csv", dict(zip(FEATURES, INPUT.T.round(6), strict=True)))
        _write_table("labels.csv", runs.partitions)
        levels = {
            f"k{k}": np.minimum(TRUTH + 3 * (np.arange(60) % 4 == 0), k - 1) for k in (2, 3, 5)
        }
        _write_table("levels.csv", levels)
        yield Path(name)


def _write_table(path: str, columns: Mapping[str, Any]) -> None:
    rows = zip(*(np.asarray(column).tolist() for column in columns.values()), strict=True)
    lines = [",".join(columns), *(",".join(map(str, row)) for row in rows)]
    Path(path).write_text("\n".join(lines) + "\n", encoding="utf-8")


RANK = "--cache none --draws 10"
# In this order: some read what an earlier one saved. Those that print JSON in the group `cli` too
# have their sentences here.
COMMANDS = [
    f"rank runs {RANK}",
    f"rank runs {RANK} --json",
    "rank runs --cache none --draws 0 --ace dip=no",
    f"rank runs {RANK} --truth truth.npy --input data.csv -i silhouette -i cfq --ace dip=no",
    f"rank runs {RANK} --layout pca --save kept --report page.html",
    f"rank labels.csv {RANK}",
    f"rank noisy.npz {RANK} --judge consensus",
    f"rank equal.npz {RANK}",
    "explain kept",
    "explain kept --json",
    "report kept -o again.html --runs runs --layout pca --truth truth.npy",
    "score data.csv labels.csv",
    "score data.csv labels.csv -i silhouette -i 'davies_bouldin(q=2)'",
    "choose-k data.csv -k 2:5 --save chosen --report chosen.html",
    "choose-k data.csv -k 2:4 -i silhouette -i cfq --no-gate --repeats 2",
    "report chosen -o chosen-again.html --runs data.csv",
    "cluster data.csv -k 3 -o found.csv --centers centres.npy",
    "cluster data.csv -k 3 --method cf-means",
    "stability data.csv -k 3 --draws 5 --set n_splits=2 --save stable --report stable.html",
    "stability data.csv labels.csv --labels 'run 1' --draws 5 --set n_splits=0",
    "stability data.csv labels.csv --labels 'run 1' --draws 5 --set n_splits=0 --json",
    "report stable -o stable-again.html",
    "describe data.csv labels.csv --labels 'run 0'",
    "describe data.csv labels.csv --labels 'run 0' --json",
    "resolutions levels.csv",
    "resolutions levels.csv --json",
    "indices",
    "indices --json",
    "indices cfq",
    "indices silhouette --json",
    # Errors.
    "rank nowhere",
    "rank runs --noise loud",
    "rank runs --unknown",
    "rank",
    "rank data.csv labels.csv",
    "rank runs --truth labels.csv --draws 0",
    "explain runs",
    "report nowhere -o page.html",
    "report kept -o page.txt",
    "score data.csv labels.csv -i silhuette",
    "score data.csv nowhere.csv",
    "score data.csv labels.csv -i 'davies_bouldin(p=2)'",
    "choose-k data.csv -k 9:2",
    "choose-k data.csv --method kmeans",
    "cluster data.csv -k 100",
    "cluster data.csv -k three",
    "stability data.csv",
    "describe data.csv labels.csv --labels 'run 9'",
    "indices silhuette",
    "unknown",
]


def shell() -> Results:
    """What the commands print on a screen of 80 columns."""
    with files_to_read():
        found = {command: shown(command) for command in COMMANDS}
        found["in a pipe: rank"] = shown(f"rank runs {RANK}", screen=False)
        found["in a pipe: indices"] = shown("indices", screen=False)
        found["files"] = sorted(p.as_posix() for p in Path().iterdir())
    return found


def shell_deep() -> Results:
    """What `train` prints; the widths of its columns differ with the seconds."""
    settings = "-k 3 -s epochs=1 -s pretrain_epochs=1 --device cpu --seed 0"
    with files_to_read():
        found = {}
        for case, more in (("once", ""), ("again", ""), ("json", " --json")):
            said = shown(f"train -d data.csv -m dec -o deep {settings}{more}")
            if "out" in said:
                lines = [re.sub("[ ─]+", " ", line).strip() for line in said["out"]]
                said["out"] = [re.sub(r"(done|kept) \d.*", r"\1", line) for line in lines]
            found[f"train/{case}"] = said
        found["train/unknown method"] = shown("train -d data.csv -m nothing -o deep")
    return found


def saved() -> Results:
    """The fields of every public record after it was saved and loaded."""
    runs = made_runs()
    whole = judged(runs, INDEX_PAIR, dip=False, X=NAMED)
    levels = {f"k{k}": np.minimum(TRUTH + np.arange(60) % 2, k - 1) for k in (2, 3, 4)}
    with tempfile.TemporaryDirectory() as name:

        def again(record: Any) -> Any:
            return type(record).load(record.save(Path(name) / type(record).__name__))

        whole = again(whole)
        records = [
            whole,
            whole.scores,
            whole.answers["ace"]["silhouette"],
            whole.answers["consensus"]["silhouette"],
            whole.ranking,
            whole.confidence,
            whole.details,
            whole.embeddings,
            whole.clusters,
            whole.agreed,
            whole.clusters.descriptions[whole.ranking.best],
            ws.agreement(whole.ranking, runs, TRUTH),
            ws.consensus_partition(runs),
            chosen_k(),
            stable(),
            ws.resolution_tree(levels),
        ]
        found = {type(record).__name__: _fields(again(record)) for record in records}
        more = {
            "labels only": judged(labels_alone(runs)),
            "all equal": judged(one_clustering()),
            "noise": judged(made_runs(noise=True), n_draws=0),
        }
        found |= {f"Judgement/{case}": _fields(again(record)) for case, record in more.items()}
    return found


def _fields(record: Any) -> dict[str, Any]:
    values = _timeless(
        {f.name: getattr(record, f.name) for f in fields(record) if f.metadata.get("saved", True)}
    )
    return {name: _field(value) for name, value in values.items()}


def _field(value: Any) -> Any:
    """An array with dtype and shape; of a record that has a case of its own the kind."""
    if isinstance(value, np.ndarray):
        return {"dtype": value.dtype.str, "shape": value.shape, "values": briefly(value.tolist())}
    if is_dataclass(value):
        kind = type(value).__name__
        has_a_case = kind in (*ws.__all__, *result_records.__all__)
        return f"<{kind}>" if has_a_case else {"kind": kind, **_fields(value)}
    if isinstance(value, Mapping):
        return {repr(key): _field(entry) for key, entry in value.items()}
    if isinstance(value, tuple | list | frozenset | set):
        entries = sorted(value) if isinstance(value, frozenset | set) else value
        return {"kind": type(value).__name__, "values": [_field(entry) for entry in entries]}
    return briefly(plain(value))


def words() -> Results:
    """Verdicts and explanations in full."""
    runs, noisy = made_runs(), made_runs(noise=True)
    two = ws.Runs(list(runs)[:2])
    one_space = ws.Runs.from_parts({"space": runs.spaces["run 0"]}, runs.partitions)
    quick = {"n_draws": 20, "details": False}
    situations = {
        **{kind: judged(made, **quick, **options) for kind, (made, options) in six().items()},
        "two clouds": judged(cloud(3), **quick),
        "supported": judged(crowd(0.10), **quick),
        "rectangle": judged(square(1.02), **quick),
        "six runs": judged(runs),
        "six runs/several indices": judged(runs, JUDGED[:4], X=INPUT, dip=False),
        "six runs/no draws": judged(runs, n_draws=0, dip=False),
        "six runs/consensus": judged(runs, judge="consensus"),
        "six runs/dbscan": judged(
            runs, ace=ws.Ace(grouping="dbscan", eps=0.3, alpha=0.5), dip=False
        ),
        "two runs": judged(two, dip=False),
        "one embedding": judged(one_space),
        "noise": judged(noisy),
        "noise as a cluster": judged(noisy, noise="cluster", dip=False),
        "labels only": judged(labels_alone(runs)),
        "labels only/no draws": judged(labels_alone(runs), n_draws=0),
        "all equal": judged(one_clustering()),
        "all equal/labels only": judged(one_clustering(spaces=False)),
        "many copies": judged(equals(), "calinski_harabasz", **quick),
    }
    found: Results = {case: _said(judgement) for case, judgement in situations.items()}
    whole = situations["six runs/several indices"]
    others = {
        "ace": whole.answers["ace"]["silhouette"],
        "ace/screened": situations["six runs"].answers["ace"]["silhouette"],
        "consensus": ws.consensus(runs, index={name: i / 9 for i, name in enumerate(runs.names)}),
        "consensus/noise": ws.consensus(noisy),
        "consensus_partition": ws.consensus_partition(runs),
        "embeddings": whole.embeddings,
        "description": whole.clusters.descriptions[whole.ranking.best],
        "description/noise": ws.describe_clusters(INPUT, noisy.partitions["run 1"]),
        "choose_k": chosen_k(),
        "choose_k/no gate": chosen_k(gate=False, n_repeats=2),
        "choose_k/a cloud": ws.choose_k(cloud(0).spaces["space 0"], range(2, 5), random_state=0),
        "stability": stable(),
        "stability/labels": ws.stability(
            None, INPUT, runs.partitions["run 1"], n_draws=4, random_state=0
        ),
        "resolution_tree": ws.resolution_tree({k: runs.partitions[k] for k in runs.names[:3]}),
    }
    for case, record in others.items():
        notes = getattr(record, "notes", ())
        found[f"explain/{case}"] = {"explain": record.explain().split("\n"), "notes": notes}
    found["agreement"] = repr(ws.agreement(whole.ranking, runs, TRUTH)).split("\n")
    return {case: _anonymous_texts(plain(value)) for case, value in found.items()}


def _said(judgement: Judgement) -> dict[str, Any]:
    verdict = judgement.verdict
    return {
        "kind": verdict.kind,
        "headline": verdict.headline,
        "facts": verdict.facts,
        "sentences": tuple(verdict.sentences()),
        "explain": judgement.explain().split("\n"),
        "why": judgement.why_this_judge,
        "notes": judgement.notes,
        "ranking": tuple(judgement.ranking.sentences()),
    }


def _anonymous_texts(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _anonymous_texts(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [_anonymous_texts(entry) for entry in value]
    return anonymous(value) if isinstance(value, str) else value


# --------------------------------------------------------------------------- known to be wrong


def mended() -> Results:
    """Two zero rows under cosine, first rows of numbers, columns of ids."""
    found = dict(_index_cases(wrong=True))
    for data in ("zeros", "all"):
        _, X, y, _ = DATA[data]
        for name in ("random", "noisy and lone"):
            for n_sampled in (20, N):
                case = f"silhouette_estimate/cosine/{data}/{name}/{n_sampled}"
                found[case] = _estimate(X, y[name], "cosine", n_sampled)
        model = ws.KMeans(3, n_init=2, metric="cosine", random_state=0)
        found[f"KMeans cosine/{data}"] = attempt(lambda m=model, X=X: _fitted(m.fit(X)))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        text = "0,1\n0.5,1\n2,3\n4,5\n"
        (folder / "data.csv").write_text(text)
        (folder / "runs").mkdir()
        (folder / "runs" / "a.embedding.csv").write_text(text)
        loaded = ws.load_runs(folder / "runs")["a"].embedding.shape
        found["rows of a table with numbers first/load_runs"] = loaded
        found["rows of a table with numbers first/cluster"] = printed(
            "cluster", folder / "data.csv", "-k", "2", "--method", "ward", "--json"
        )
        (folder / "labels.csv").write_text("id,label\n7,0\n8,0\n9,1\n5,1\n")
        np.save(folder / "data.npy", np.arange(8.0).reshape(4, 2))
        found["a column of ids/score"] = printed(
            "score", folder / "data.npy", folder / "labels.csv", "-i", "silhouette", "--json"
        )
    return found


# --------------------------------------------------------------------------- the record

# group -> (function, packages it needs)
GROUPS: dict[str, tuple[Callable[[], Results], tuple[str, ...]]] = {
    "indices": (indices, ("pandas",)),
    "values_of_objects": (values_of_objects, ()),
    "clusterers": (clusterers, ("pandas",)),
    "choosing": (choosing, ()),
    "spaces": (spaces, ()),
    "ace": (ace, ()),
    "judgement": (judgement, ()),
    "stored_runs": (stored_runs, ("pandas", "pyarrow")),
    "external": (external, ()),
    "deep": (deep, ("torch",)),
    "estimators": (estimators, ("dask", "torch")),
    "cli": (cli, ("typer", "pandas", "pyarrow")),
    "mended": (mended, ("typer",)),
    "page": (page, ()),
    "shell": (shell, ()),
    "shell_deep": (shell_deep, ("torch", "safetensors")),
    "saved": (saved, ()),
    "words": (words, ()),
}


def computed(group: str) -> Results:
    """All results of a group, as they are now."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {case: plain(value) for case, value in GROUPS[group][0]().items()}


def recorded(group: str) -> Results:
    """All results of a group, as they were recorded."""
    path = FOLDER / f"{group}.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def write(group: str, results: Results) -> None:
    """One line per case, so that a change shows as a changed line."""
    lines = [
        f"{json.dumps(case)}: {json.dumps(value, ensure_ascii=False, separators=(',', ':'))}"
        for case, value in results.items()
    ]
    FOLDER.mkdir(exist_ok=True)
    text = "{\n" + ",\n".join(lines) + "\n}\n"
    (FOLDER / f"{group}.json").write_text(text, encoding="utf-8")


def main(arguments: list[str]) -> int:
    rewrite = "--write" in arguments
    patterns = [a for a in arguments if a != "--write"] or ["*"]
    changed = 0
    for group in GROUPS:
        heads = (pattern.split("/")[0] for pattern in patterns)
        if not any(head == group or "*" in head for head in heads):
            continue
        kept = recorded(group)
        found = computed(group)
        merged = {}
        for case in [*found, *(case for case in kept if case not in found)]:
            names = (group, f"{group}/{case}")
            chosen = any(fnmatch.fnmatch(n, p) for n in names for p in patterns)
            if case in found and case in kept:
                differs = differences(found[case], kept[case], tolerance(f"{group}/{case}"))
            else:
                differs = ["is new" if case in found else "is gone"]
            if chosen and differs:
                changed += 1
                sys.stdout.write(f"{group}/{case}: {differs[0][:300]}\n")
            # A result within its tolerance keeps its line.
            source = found if chosen and differs else kept
            if case in source:
                merged[case] = source[case]
        if rewrite:
            write(group, merged)
    sys.stdout.write(f"{changed} cases {'rewritten' if rewrite else 'differ'}.\n")
    return int(bool(changed and not rewrite))


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    sys.exit(main(sys.argv[1:]))
