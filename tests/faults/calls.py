"""A valid call of every public name; the suite replaces one argument at a time.

What is made by the library only (records) is called through its methods.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import wellsep as ws
from wellsep.evaluate import input_scores, rank, rank_confidence
from wellsep.partitions import Partitions
from wellsep.records import ChosenK, ClusterDescription, Judgement, ResolutionTree, Stability
from wellsep.spaces import dip_statistic, holm

N = 12
# Three groups of four objects in two columns.
X = np.random.default_rng(0).normal(size=(N, 2)) + np.repeat([[0, 0], [6, 0], [0, 6]], 4, axis=0)
LABELS = np.repeat([0, 1, 2], 4)
# Names that no call of this suite covers, and why.
WITHOUT_A_CALL = {
    **dict.fromkeys(("UndefinedIndex", "NoRuns", "NothingToRank"), "an exception"),
    **dict.fromkeys(("INDICES", "__version__"), "not a function"),
}


@dataclass(frozen=True)
class Call:
    """A function, arguments that it accepts, and the names of all its arguments."""

    function: Callable[..., Any]
    given: Mapping[str, Any] = field(default_factory=dict)
    arguments: tuple[str, ...] = ()

    def __call__(self, **replaced: Any) -> Any:
        return self.function(**{**self.given, **replaced})


def call(function: Callable[..., Any], /, **given: Any) -> Call:
    kinds = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
    parameters = inspect.signature(function).parameters.values()
    named = tuple(p.name for p in parameters if p.kind not in kinds)
    return Call(function, given, tuple(dict.fromkeys([*named, *given])))


def fit(kind: Any, data: Any = X, fitting: tuple[str, ...] = (), **given: Any) -> Call:
    """Make an estimator and fit it; arguments of both are replaced."""

    def made_and_fitted(**arguments: Any) -> Any:
        passed = {name: arguments.pop(name) for name in ("X", *fitting) if name in arguments}
        return kind(**arguments).fit(**passed)

    parameters = tuple(inspect.signature(kind).parameters)
    return Call(made_and_fitted, {"X": data, **given}, (*parameters, "X", *fitting))


def runs() -> ws.Runs:
    spaces = {"a": X, "b": X[:, ::-1] * [1, 2], "c": X + 0.1 * LABELS[:, None]}
    labels = {"a": LABELS, "b": LABELS % 2, "c": np.minimum(LABELS, 1)}
    return ws.Runs(tuple(ws.Run(name, spaces[name], labels[name]) for name in spaces))


def calls(folder: Path) -> dict[str, Call]:
    """Every call, by name; files that they read and write lie in ``folder``."""
    made = runs()
    made.save(folder / "runs")
    scores = ws.score_runs(made, details=False)
    result = ws.ace(scores)
    confidence = rank_confidence(made, scores, result, n_draws=2)
    ranking = rank(result, confidence=confidence)
    judgement = ws.judge(made, n_draws=2)
    judgement.save(folder / "judgement")
    partitions = Partitions.from_labels([LABELS, LABELS % 2])
    table = ws.score_partitions(X, {"k3": LABELS}, ["silhouette"])
    chosen = ws.choose_k(X, [2, 3], random_state=0)
    chosen.save(folder / "chosen")
    ws.resolution_tree(made).save(folder / "tree")
    ws.describe_clusters(X, LABELS).save(folder / "described")
    ws.stability(ws.KMeans(3, random_state=0), X, n_draws=2, n_splits=1).save(folder / "stability")
    report = ws.membership_report(X, LABELS)
    fitted = ws.KMeans(3, random_state=0).fit(X)
    np.save(folder / "x.npy", X)
    few = {"X": X, "labels": LABELS}
    two = {"labels_true": LABELS, "labels_pred": LABELS}
    indices = {
        name: call(getattr(ws, name), **few)
        for name in (
            "silhouette_score", "silhouette_samples", "silhouette_estimate", "dunn_score",
            "simplified_silhouette_score", "calinski_harabasz_score", "davies_bouldin_score",
            "generalized_dunn_score", "c_index_score", "s_dbw_score", "cdbw_score", "ccc_score",
            "dbcv_score", "dbcv_clusters", "disco_score", "disco_samples", "describe_clusters",
            "cfq_score", "cfq_clusters", "margins",
            "score_partitions", "local_connectivity", "membership_report",
        )
    }  # fmt: skip
    external = {
        name: call(getattr(ws, name), **two)
        for name in ("nmi_score", "clustering_accuracy", "purity_score", "ari_score", "ami_score")
    }
    return {
        **indices,
        **external,
        "gap_statistic": call(ws.gap_statistic, X=X, k_range=[1, 2], n_references=2),
        "register_index": call(
            ws.register_index, name="fuzzed", function=lambda X, y: 0.0, direction=1, overwrite=True
        ),
        "INDICES.with_params": call(
            ws.INDICES["silhouette"].with_params, given={"metric": "cosine"}
        ),
        "Partitions": call(Partitions.from_labels, labels=LABELS),
        "Partitions.subset": call(partitions.subset, which=[0]),
        "Partitions.take": call(partitions.take, objects=np.arange(6)),
        "PartitionScores.best": call(table.best, index="silhouette"),
        "PartitionScores.column": call(table.column, index="silhouette"),
        "PartitionScores.why": call(table.why, name="k3", index="silhouette"),
        "KMeans": fit(ws.KMeans, fitting=("sample_weight",), n_clusters=3),
        "KMeans.predict": call(fitted.predict, X=X),
        "KMeans.transform": call(fitted.transform, X=X),
        "KMeans.score": call(fitted.score, X=X),
        "CFMeans": fit(ws.CFMeans, fitting=("sample_weight",), n_clusters=3, max_moves=2),
        "LOFKMeans": fit(ws.LOFKMeans, fitting=("sample_weight",), n_clusters=3),
        "RobustKMeans": fit(
            ws.RobustKMeans, fitting=("sample_weight",), n_clusters=2, min_cluster_size=2,
            max_moves=2,
        ),
        "KMedoids": fit(ws.KMedoids, n_clusters=3, n_init=2, random_state=0),
        "Distances": call(ws.Distances, values=np.abs(X[:, :1] - X[:, 0])),
        "MixedTable": call(
            ws.MixedTable, frame=X
        ),
        "dc_metric": call(ws.dc_metric, min_points=3),
        "stability": call(
            ws.stability, clusterer=ws.KMeans(3, n_init=1, random_state=0), X=X, n_draws=2,
            n_splits=1, random_state=0,
        ),
        "Stability.load": call(Stability.load, folder=folder / "stability"),
        "resolution_tree": call(ws.resolution_tree, runs=made),
        "ResolutionTree.load": call(ResolutionTree.load, folder=folder / "tree"),
        "ClusterDescription.load": call(ClusterDescription.load, folder=folder / "described"),
        "choose_k": call(ws.choose_k, X=X, k_range=[2, 3], random_state=0),
        "ChosenK.labels_for": call(chosen.labels_for, k=2),
        "ChosenK.load": call(ChosenK.load, folder=folder / "chosen"),
        "explore": call(
            ws.explore, X=X, methods=["ward"], embeddings=["pca"], k=[2, 3], n_draws=0
        ),
        "ClusterExplorer": fit(
            ws.ClusterExplorer, methods=["ward"], embeddings=["pca"], k=[2, 3], n_draws=0
        ),
        "ClusterSearch": fit(
            ws.ClusterSearch,
            fitting=("sample_weight",),
            estimator=ws.KMeans(2, random_state=0),
            param_grid={"n_clusters": [2, 3]},
        ),
        "MembershipReport.reason": call(report.reason, position=0),
        "MembershipReport.assign_noise": call(report.assign_noise, least=0.5),
        "MembershipReport.columns": call(report.columns, positions=np.array([0])),
        "Run": call(ws.Run, name="r", labels=LABELS, embedding=X),
        "Runs": call(ws.Runs, runs=tuple(made)),
        "Runs.from_parts": call(
            ws.Runs.from_parts, spaces={"a": X}, partitions={"p": LABELS}, pairs={"p": "a"}
        ),
        "Runs.from_iterator": call(ws.Runs.from_iterator, runs=[("a", X, LABELS)]),
        "Runs.subset": call(made.subset, names=["a", "b"]),
        "Runs.save": call(made.save, path=folder / "again", overwrite=True),
        "load_runs": call(ws.load_runs, path=folder / "runs"),
        "open_chunked": call(ws.open_chunked, path=folder / "x.npy"),
        "save_run": call(
            ws.save_run, folder=folder / "saved", embedding=X, labels=LABELS, name="r",
            overwrite=True,
        ),
        "judge": call(ws.judge, runs=made, n_draws=2),
        "load": call(ws.load, folder=folder / "chosen"),
        "Judgement.load": call(Judgement.load, folder=folder / "judgement"),
        "Judgement.save": call(judgement.save, folder=folder / "saved judgement"),
        "score_runs": call(ws.score_runs, runs=made),
        "Scores": call(ws.Scores.from_matrix, matrix=[[1.0, 2.0], [2.0, 3.0]]),
        "Scores.check_index": call(scores.check_index, index="silhouette"),
        "Scores.oriented": call(scores.oriented, index="silhouette"),
        "Scores.to_frame": call(scores.to_frame, index="silhouette"),
        "Scores.why": call(scores.why, space="a", partition="a"),
        "ace": call(ws.ace, scores=scores),
        "rank": call(rank, result=result),
        "Ranking.ranks_by": call(ranking.ranks_by, name="mean_all"),
        "input_scores": call(input_scores, X=X, runs=made),
        "agreement": call(ws.agreement, ranking=ranking, runs=made, truth=LABELS),
        "Ace": call(ws.Ace, alpha=0.1, eps=0.1),
        "consensus": call(ws.consensus, runs=made),
        "consensus_partition": call(ws.consensus_partition, runs=made, n_clusters=2),
        "ConsensusPartition.added_to": call(
            ws.consensus_partition(made, 2).added_to, runs=made
        ),
        "rank_confidence": call(
            rank_confidence, runs=made, scores=scores, result=result, n_draws=2
        ),
        "render_report": call(
            ws.render_report, result=judgement, path=folder / "page.html", runs=made
        ),
        "dip_statistic": call(dip_statistic, x=X[:, 0]),
        "dip_test": call(ws.dip_test, x=X[:, 0]),
        "multimodality": call(ws.multimodality, X=X),
        "holm": call(holm, pvalues=[0.01, 0.5]),
        "load_dataset": call(ws.load_dataset, name="iris", download=False),
        "list_datasets": call(ws.list_datasets, folder=folder),
    }  # fmt: skip


def deep_calls(folder: Path) -> dict[str, Call]:
    from wellsep import deep

    light: dict[str, Any] = {"n_clusters": 2, "epochs": 1, "batch_size": 12, "random_state": 0}
    auto: dict[str, Any] = {"hidden": (4,), "pretrain_epochs": 1, "device": "cpu"}
    own = {
        "DeepKMeans": auto, "DeepCFMeans": auto, "DEC": auto, "IDEC": auto,
        "DEPICT": {**auto, "start_epochs": 1}, "JULE": {"n_neighbors": 3},
    }  # fmt: skip
    data = X.astype(np.float32)
    fits = {name: fit(getattr(deep, name), data, **light, **more) for name, more in own.items()}
    images = np.random.default_rng(0).normal(size=(N, 8, 8)).astype(np.float32)
    model = deep.DeepKMeans(**light, **auto).fit(data)
    model.save(folder / "model")
    tried = deep.DeepKMeans(**light, **auto)
    return {
        **fits,
        "DeepCluster": fit(deep.DeepCluster, images, **light),
        "DeepKMeans.predict": call(model.predict, X=data),
        "DeepKMeans.transform": call(model.transform, X=data),
        "DeepKMeans.reconstruct": call(model.reconstruct, X=data),
        "DeepKMeans.save_run": call(model.save_run, folder=folder / "deep run"),
        "load": call(deep.load, folder=folder / "model"),
        "degree_linkage": call(deep.degree_linkage, X=data, n_clusters=2, n_neighbors=3),
        "path_integral": call(deep.path_integral, X=data, n_clusters=2, n_neighbors=3),
        "sweep": call(
            deep.sweep, estimator=tried, X=data, grid={"n_clusters": [2]}, out=folder / "sweep"
        ),
    }


def adapter_calls(folder: Path) -> dict[str, Call]:
    import anndata
    import pandas as pd

    from wellsep import adapters

    labels = {"k3": LABELS.astype(str), "k2": (LABELS > 0).astype(str)}
    obs = pd.DataFrame(labels, index=[f"c{i}" for i in range(N)])
    cells = anndata.AnnData(obs=obs, obsm={"X_pca": X})
    judgement = ws.judge(cells, labels="k*", n_draws=0, dip=False)
    return {
        "load_any": call(adapters.load_any, source=folder / "runs"),
        "runs_from_anndata": call(
            adapters.runs_from_anndata,
            source=cells,
            spaces="X_pca",
            labels="k3",
            pairs={"k3": "X_pca"},
        ),
        "write_anndata": call(adapters.write_anndata, judgement=judgement, target=cells),
        "runs_from_optuna": call(adapters.runs_from_optuna, study=folder / "no.log"),
        "attach_run": call(
            adapters.attach_run, trial=_Trial(), embedding=X, labels=LABELS, folder=folder / "t"
        ),
    }


class _Study:
    study_name = "s"


class _Trial:
    """As much of an Optuna trial as attach_run asks for."""

    number, params, study = 0, {"k": 2}, _Study()

    def set_user_attr(self, name: str, value: Any) -> None:
        """Keep nothing."""
