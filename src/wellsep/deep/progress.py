"""Training progress as scikit-learn's callbacks see it."""

from __future__ import annotations

from typing import Any

from wellsep.deep.training import Progress


class Reported(Progress):
    """Stages and epochs as tasks of scikit-learn's callbacks."""

    def __init__(self, estimator: Any, context: Any) -> None:
        self.estimator = estimator
        self.root = context.call_on_fit_task_begin(estimator=estimator)

    def stage(self, name: str, epochs: int) -> None:
        task = self.root.subcontext(task_name=name, max_subtasks=epochs)
        self.task = task.call_on_fit_task_begin(estimator=self.estimator)

    def epoch(self) -> bool:
        leaf = self.task.subcontext(task_name="epoch")
        leaf.call_on_fit_task_begin(estimator=self.estimator)
        return leaf.call_on_fit_task_end(
            estimator=self.estimator,
            metadata=lambda: dict(self.estimator._trainer.history[-1]),
            reconstruction_attributes=self.estimator._as_if_stopped,
        )

    def end(self) -> None:
        self.task.call_on_fit_task_end(estimator=self.estimator)
