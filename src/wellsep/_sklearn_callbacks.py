"""scikit-learn's callbacks where it has them (1.9 and later), else tasks that nobody watches."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["CallbackSupportMixin", "with_callbacks"]

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # scikit-learn 1.7 and 1.8

    class _Task:
        """A task of a fit, with the methods of scikit-learn's ``CallbackContext`` used here."""

        def subcontext(self, *names: Any, **options: Any) -> _Task:
            return _Task()

        def call_on_fit_task_begin(self, **facts: Any) -> _Task:
            return self

        def call_on_fit_task_end(self, **facts: Any) -> bool:
            """Return whether a callback asks the fit to stop."""
            return False

        @contextmanager
        def propagate_callback_context(self, estimator: Any) -> Iterator[None]:
            yield

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Fits report to nobody: this scikit-learn has no callbacks."""

        def _init_callback_context(self, **options: Any) -> _Task:
            return _Task()

    def with_callbacks(fit: Callable[..., Any]) -> Callable[..., Any]:
        """Return ``fit`` as it is."""
        return fit
