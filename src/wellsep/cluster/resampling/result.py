"""Stability: how often each cluster is found again when objects are drawn anew, and in words."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from wellsep._checks.labels import NOISE
from wellsep._files.records import Result
from wellsep._text.sentences import count, listing, printable
from wellsep.cluster.k_choice.prediction_strength import FOUND_AGAIN

DISSOLVED, RECOVERED = 0.5, 0.75  # Hennig 2007: at most, more than
# Hennig 2008: from which mean Jaccard on a cluster is called so.
STEPS = (0.6, 0.75, 0.85)
WORDS = ("not to be trusted", "doubtful", "stable", "highly stable")
ADVICE = (
    "Do not trust this cluster",
    "There is a pattern, but which objects belong to it is doubtful",
    "It is stable",
    "It is highly stable",
)
_MOST_TOLD = 10  # clusters that get a sentence


@dataclass(frozen=True, eq=False)
class Stability(Result, row_names="cluster"):
    """What `stability` found; K clusters, B random samples of the n objects.

    Attributes
    ----------
    clusters : ndarray of shape (K,)
        Label of each cluster.
    labels : ndarray of shape (n,)
        The clustering that was judged; -1 is noise.
    values : ndarray of shape (K, B)
        Jaccard similarity of each cluster to the most similar cluster of each sample; 0 where none
        of its objects was drawn, NaN where the sample could not be judged.
    n_found : ndarray of shape (B,)
        Clusters found in each sample; 0 where the fit failed.
    noise_again : ndarray of shape (B,)
        Share of the drawn noise objects that are noise again; NaN where none was drawn.
    scheme : {"bootstrap", "subsample"}
        How objects were drawn: with or without replacement.
    n_drawn : int
        Draws of objects per bootstrap (repeats are dropped) or objects per subsample.
    clusterer : str
        What was fitted to each sample.
    stand_in : {"", "nearest-mean", "nearest-neighbours"}
        What stood in for a clusterer where there was none.
    prediction_strengths : ndarray of shape (S,)
        Prediction strength of each split into halves; empty where it was not computed.
    failures : mapping of int to str
        Samples whose fit failed, with the error.
    notes : tuple of str
        What was left out and why.
    """

    clusters: np.ndarray
    labels: np.ndarray
    values: np.ndarray
    n_found: np.ndarray
    noise_again: np.ndarray
    scheme: str
    n_drawn: int
    clusterer: str
    stand_in: str = ""
    prediction_strengths: np.ndarray = field(default_factory=lambda: np.empty(0))
    failures: Mapping[int, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def sizes(self) -> np.ndarray:
        """(K,) objects of each cluster."""
        labels, counts = np.unique(self.labels, return_counts=True)
        return counts[np.isin(labels, self.clusters)]  # both are sorted

    @property
    def n_draws(self) -> np.ndarray:
        """(K,) samples in which each cluster was judged."""
        return (~np.isnan(self.values)).sum(axis=1)

    @property
    def jaccard(self) -> np.ndarray:
        """(K,) mean Jaccard similarity of each cluster over the samples: its stability."""
        with warnings.catch_warnings(action="ignore"):  # of clusters that were never judged
            return np.nanmean(self.values, axis=1)

    @property
    def half_width(self) -> np.ndarray:
        """(K,) half the width of the 95 % interval of `jaccard`, from the number of samples."""
        with warnings.catch_warnings(action="ignore"):
            variance = np.nanvar(self.values, axis=1, ddof=1)
        return 1.96 * np.sqrt(variance / np.maximum(self.n_draws, 1))

    @property
    def dissolved(self) -> np.ndarray:
        """(K,) samples in which a cluster dissolves: its Jaccard similarity is at most .5."""
        return (self.values <= DISSOLVED).sum(axis=1)

    @property
    def recovered(self) -> np.ndarray:
        """(K,) samples in which a cluster is recovered: its Jaccard similarity is above .75."""
        return (self.values > RECOVERED).sum(axis=1)

    @property
    def words(self) -> tuple[str, ...]:
        """What to call each cluster, or the two words that its interval lies between."""
        words = []
        for low, high in self._steps():
            if low is None or high is None:
                words.append("not judged")
            elif low == high:
                words.append(WORDS[low])
            else:
                words.append(f"between {WORDS[low]} and {WORDS[high]}")
        return tuple(words)

    @property
    def prediction_strength(self) -> float:
        """Mean prediction strength over the splits; NaN where it was not computed."""
        strengths = self.prediction_strengths
        return float(strengths.mean()) if len(strengths) else float("nan")

    def _steps(self) -> list[tuple[int | None, int | None]]:
        """Per cluster the lowest and the highest word that its interval touches."""
        half = np.nan_to_num(self.half_width)
        ends = np.stack([self.jaccard - half, self.jaccard + half])
        words = np.searchsorted(STEPS, ends, side="right")
        return [
            (None, None) if np.isnan(mean) else (int(low), int(high))
            for mean, low, high in zip(self.jaccard, *words, strict=True)
        ]

    def columns(self) -> dict[str, list[Any]]:
        """Return the table as named columns, a row per cluster."""
        mean, half = self.jaccard, np.nan_to_num(self.half_width)
        return {
            "cluster": self.clusters.tolist(),
            "size": self.sizes.tolist(),
            "jaccard": mean.tolist(),
            "low": np.maximum(mean - half, 0).tolist(),
            "high": np.minimum(mean + half, 1).tolist(),
            "dissolved": self.dissolved.tolist(),
            "recovered": self.recovered.tolist(),
            "draws": self.n_draws.tolist(),
            "verdict": list(self.words),
        }

    def sentences(self) -> Iterator[str]:
        """Say which clusters are found again, and what that means."""
        yield self._headline()
        order = np.argsort(self.jaccard, kind="stable")
        yield from (self._sentence(int(j)) for j in order[:_MOST_TOLD])
        if len(order) > _MOST_TOLD:
            rest = count(len(order) - _MOST_TOLD, "cluster")
            yield f"{rest} more are more stable than these."
        yield from self._on_draws()

    def to_dict(self) -> dict[str, Any]:
        """Return the clusters and the samples, as ``--json`` prints them."""
        again = self.noise_again[~np.isnan(self.noise_again)]
        return {
            "clusters": self.to_rows(),
            "scheme": self.scheme,
            "n_drawn": self.n_drawn,
            "clusterer": self.clusterer or None,
            "stand_in": self.stand_in or None,
            "prediction_strength": self.prediction_strength,
            "prediction_strengths": self.prediction_strengths,
            "noise_again": float(again.mean()) if len(again) else None,
            "n_found": self.n_found,
            "failures": [{"draw": i, "error": why} for i, why in self.failures.items()],
            "explanation": list(self.sentences()),
        }

    def _headline(self) -> str:
        over = f"over {count(self.values.shape[1] - len(self.failures), self.scheme)}"
        over += ", judged by a classifier (no clusterer was given)" if self.stand_in else ""
        if len(self.clusters) == 1:
            return (
                "There is one cluster only. Being found again says nothing about it "
                f"({over} it is compared with the clusters of each)."
            )
        good = [j for j, (low, _) in enumerate(self._steps()) if low is not None and low >= 2]
        bad = [self._name(j) for j in range(len(self.clusters)) if j not in good]
        if not bad:
            return f"All {len(good)} clusters are stable {over}."
        verb = "is" if len(good) == 1 else "are"
        return (
            f"{len(good)} of {len(self.clusters)} clusters {verb} stable {over}; "
            f"not surely stable: {listing(bad)}."
        )

    def _sentence(self, j: int) -> str:
        judged, size = int(self.n_draws[j]), count(int(self.sizes[j]), "object")
        if not judged:
            return f"Cluster {self._name(j)} ({size}) could be judged in no {self.scheme}."
        low, high = self._steps()[j]
        advice = ADVICE[low] if low is not None else ""
        if low != high:
            advice = f"It is {self.words[j]}; more samples (n_draws) would decide"
        elif self.stand_in:
            advice = f"By the classifier it is {self.words[j]}"
        half = self.half_width[j]
        spread = "" if np.isnan(half) else f" ± {half:.2f}"
        return (
            f"Cluster {self._name(j)} ({size}) dissolves in {self.dissolved[j]} of "
            f"{count(judged, self.scheme)} and is recovered in {self.recovered[j]}; mean Jaccard "
            f"{self.jaccard[j]:.2f}{spread}. {advice}."
        )

    def _on_draws(self) -> list[str]:
        texts = []
        if not np.isnan(self.noise_again).all():
            again = np.nanmean(self.noise_again)
            n = count(int((self.labels == NOISE).sum()), "noise object")
            texts.append(f"Of {n} {again:.0%} are noise again, on average.")
        judged = self.n_found[self.n_found > 0]
        if not self.stand_in and len(judged) and (judged != len(self.clusters)).any():
            texts.append(
                f"The {self.scheme}s have {judged.min()} to {judged.max()} clusters, the "
                f"clustering has {len(self.clusters)}."
            )
        if len(self.prediction_strengths):
            strength, halves = self.prediction_strength, len(self.prediction_strengths)
            verb = "finds" if strength > FOUND_AGAIN else "does not find"
            texts.append(
                f"Prediction strength is {strength:.2f} over {count(halves, 'split')}: one half of "
                f"the objects {verb} the clusters of the other (more than {FOUND_AGAIN} is needed)."
            )
        if self.failures:
            first = min(self.failures)
            texts.append(
                f"{len(self.failures)} of {self.values.shape[1]} fits failed and are left out; the "
                f"first: {printable(self.failures[first], 200)}"
            )
        texts += self.notes
        if self.stand_in:
            texts.append(
                f"No clusterer was given, so a classifier by {self.stand_in.replace('-', ' ')} "
                "learnt the labels of each sample and was judged on the other objects. This shows "
                "whether the labels can be predicted, not whether your method would find the "
                "clusters again."
            )
        texts.append(
            "Stable does not mean true: stability belongs to the clusterer as much as to the data."
        )
        return texts

    def _name(self, j: int) -> str:
        return printable(str(self.clusters[j]), 40)
