"""The demo command: rank runs on the digits data, compare with the true labels at the end."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from sklearn.cluster import KMeans
from sklearn.decomposition import NMF, PCA
from sklearn.manifold import TSNE, Isomap, SpectralEmbedding
from sklearn.random_projection import GaussianRandomProjection
from threadpoolctl import threadpool_limits

import wellsep as ws
from wellsep.cli import options
from wellsep.cli.deliver import check_target, print_json
from wellsep.cli.printing import print_columns, print_line, progress_bar
from wellsep.cli.wording import print_sentences

CLUSTERS = (6, 10, 14)
N_SHOWN = 7  # clusterings
INDICES = ["silhouette", "calinski_harabasz", "cfq"]


def demo(
    folder: Annotated[
        Path, typer.Argument(help="Folder to write the runs and the page to.")
    ] = Path("wellsep-demo"),
    as_json: options.Json = False,
) -> None:
    """Cluster handwritten digits in seven embeddings, rank the runs, write a page.

    \b
    Examples:
      wellsep demo
      wellsep demo /tmp/demo
    """
    digits = ws.load_dataset("digits", flatten=True)
    check_target("folder", folder, None)
    runs = make_runs(digits.X, folder / "runs")
    images = 16 - digits.X.reshape(-1, 8, 8)  # dark on white
    for name, array in (("pixels", digits.X), ("digits", digits.y), ("images", images)):
        np.save(folder / f"{name}.npy", array)
    judgement = ws.judge(runs, INDICES, X=digits.X, layout="auto")
    known = ws.agreement(judgement.ranking, runs, digits.y)
    page = folder / "report.html"
    command = command_by_hand(folder)
    about = {"image": images}
    ws.render_report(judgement, page, runs=runs, truth=digits.y, objects=about, command=command)
    if as_json:
        beside = {"agreement_with_truth": known.columns(), "page": str(page)}
        print_json(judgement.to_dict() | beside)
        return
    print_line(
        f"{len(digits.X):,} handwritten digits, {len(runs.spaces)} embeddings, K = "
        f"{', '.join(map(str, CLUSTERS))}: {len(runs.partitions)} clusterings. No label used."
    )
    print_sentences(list(judgement.verdict.sentences())[:3], "demo")
    _print_first(judgement)
    ari, names = known.external["ari"], list(known.partitions)
    first, best = names.index(judgement.ranking.best), int(ari.argmax())
    print_line(
        f"With the true digits (ARI): the first has {ari[first]:.2f}; the best of {len(names)} is "
        f"{names[best]} with {ari[best]:.2f}; the median is {np.median(ari):.2f}."
    )
    print_line(f"Page   {page}")
    print_line("Next   open the page, answer its questions, export the labels")
    print_line(f"Why    wellsep rank {shlex.quote(str(folder / 'runs'))}")
    print_line(f"Again  {command}")


def _print_first(judgement: Any) -> None:
    """Print the seven best clusterings with two digits, and what follows them."""
    ranking, sure = judgement.ranking, judgement.confidence
    order = ranking.order[:N_SHOWN]
    table = {
        "#": [int(ranking.rank[i]) for i in order],
        "clustering": [ranking.names[i] for i in order],
        "K": [int(ranking.n_clusters[i]) for i in order],
        "score": [f"{ranking.score[i]:.2f}" for i in order],
        "rank": ["{}–{}".format(*sure.interval[i]) for i in order],
        "first in": [f"{sure.first_in[i]:.0%}" for i in order],
    }
    print_columns(table)
    rest = ranking.score[ranking.order[N_SHOWN:]]
    print_line(f"{len(rest)} more, {rest.max():.2f} to {rest.min():.2f}.")


def command_by_hand(folder: Path) -> str:
    """The command that makes the same page from the files of the demo.

    >>> command_by_hand(Path("d")).split()[:3]
    ['wellsep', 'rank', 'd/runs']
    """
    words = ["wellsep", "rank", str(folder / "runs")]
    for name in INDICES:
        words += ["--index", name]
    words += ["--report", str(folder / "report.html"), "--truth", str(folder / "digits.npy")]
    words += ["--input", str(folder / "pixels.npy")]
    return shlex.join([*words, "--objects", str(folder / "images.npy")])


def make_runs(X: Any, folder: Path) -> Any:
    """Write every embedding once and a run per K that names it, and load them back.

    One thread makes them: with two, neighbours at equal distances come in another order.
    """
    done, total = 0, 7 * len(CLUSTERS)
    with progress_bar() as told, threadpool_limits(limits=1):
        for name, Z in _spaces(X):
            ws.save_run(folder, Z, name=name, overwrite=True)
            for k in CLUSTERS:
                labels = KMeans(k, n_init=2, random_state=0).fit_predict(Z)
                ws.save_run(
                    folder,
                    None,
                    labels,
                    name=f"{name}, K={k}",
                    space=name,
                    params={"space": name, "K": k},
                    overwrite=True,
                )
                done += 1
                told(done, total, "Clustering the digits")
    return ws.load_runs(folder)


def _spaces(X: Any) -> Iterator[tuple[str, Any]]:
    """Yield embeddings a practitioner might try; the last two are poor on purpose."""
    yield "t-SNE 2", TSNE(2, max_iter=500, random_state=0).fit_transform(X)
    yield "PCA 20", PCA(20, random_state=0).fit_transform(X)
    yield "NMF 10", NMF(10, init="nndsvda", max_iter=400, tol=1e-3, random_state=0).fit_transform(X)
    yield "Isomap 5", Isomap(n_neighbors=10, n_components=5).fit_transform(X)
    embedding = SpectralEmbedding(8, n_neighbors=10, random_state=0).fit_transform(X)
    yield "spectral 8", embedding * np.sqrt(len(X))
    yield "random projection 5", GaussianRandomProjection(5, random_state=0).fit_transform(X)
    shuffled = np.random.default_rng(0).permuted(X, axis=0)
    yield "shuffled pixels", PCA(10, random_state=0).fit_transform(shuffled)
