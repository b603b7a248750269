"""The parts of a fit, reported to scikit-learn's callbacks, which may ask it to stop."""

from __future__ import annotations

from typing import Any

import numpy as np

from wellsep.cluster.lloyd import publish
from wellsep.cluster.points import Points


class NoTasks:
    """Nobody watches the fit."""

    stopped = False

    def begin(self, name: str) -> None:
        pass

    def end(self, points: Points, centers: np.ndarray) -> None:
        pass


class Tasks(NoTasks):
    """One fit of an estimator whose fitted state is ``cluster_centers_``."""

    def __init__(self, estimator: Any, X: Any, weights: Any, n_parts: int | None):
        self.estimator = estimator
        self.known = {"X": X, "metadata": {"sample_weight": weights}}
        self.context = estimator._init_callback_context(max_subtasks=n_parts)
        self.context.call_on_fit_task_begin(estimator=estimator, **self.known)
        self.part: Any = None

    def begin(self, name: str) -> None:
        self.part = self.context.subcontext(task_name=name)
        self.part.call_on_fit_task_begin(estimator=self.estimator, **self.known)

    def end(self, points: Points, centers: np.ndarray) -> None:
        self.stopped |= self.part.call_on_fit_task_end(
            estimator=self.estimator,
            reconstruction_attributes=lambda: {"cluster_centers_": publish(points, centers)},
            **self.known,
        )

    def close(self) -> None:
        self.context.call_on_fit_task_end(
            estimator=self.estimator, reconstruction_attributes={}, **self.known
        )
