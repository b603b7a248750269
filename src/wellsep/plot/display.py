"""What all displays share: axes in and out, the palette, labels of an estimator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from wellsep._checks.arrays import to_numpy
from wellsep._checks.labels import fitted_labels
from wellsep._text.sentences import DIVERGING, SURFACES, colour_of, mark_of
from wellsep.evaluate import AceResult, Judgement, Ranking
from wellsep.partitions import encode

MARKERS = {"circle": "o", "square": "s", "triangle": "^", "diamond": "D", "cross": "P"}
MOST_NAMED = 40  # names written next to a heat map
MOST_KEYS = 12  # clusters that a legend names


@dataclass(frozen=True, eq=False)
class Scatter:
    """Some objects of one space in a plane, with the clusters of one partition."""

    space: str
    xy: np.ndarray  # (s, 2)
    axes: str
    objects: np.ndarray  # (s,)
    codes: np.ndarray  # (s,) cluster of each, -1 = noise
    clusters: tuple[str, ...]
    selected: bool = True


class Display:
    """A figure as data, and the axes it was drawn on last (``ax_``, ``axes_``, ``figure_``).

    Parameters
    ----------
    figure : a frozen record, such as ``wellsep.report.figures.ace.Dips``
    """

    plot: ClassVar[Callable[..., Any]]

    def __init__(self, figure: Any) -> None:
        self.figure = figure

    def __repr__(self) -> str:
        return f"{type(self).__name__}({type(self.figure).__name__})"

    def _axes(self, ax: Any, count: int = 1, **size: Any) -> list[Any]:
        """The given axes, or new ones side by side; remembered."""
        if ax is None:
            _, made = pyplot().subplots(1, count, squeeze=False, layout="constrained", **size)
            found = list(made.ravel())
        else:
            found = list(np.asarray(ax, dtype=object).ravel())
        if len(found) < count:
            raise ValueError(f"ax must hold {count} axes, got {len(found)}.")
        self.axes_ = np.array(found, dtype=object)
        self.ax_ = found[0]
        self.figure_ = found[0].figure
        return found


class ResultDisplay(Display):
    """A figure of a result; ``figure_of`` of each kind computes it."""

    figure_of: ClassVar[Callable[..., Any]]

    @classmethod
    def from_result(cls, result: Any, *, ax: Any = None) -> Any:
        """Draw a result of the kind that the class names."""
        return cls(cls.figure_of(result)).plot(ax=ax)


class PartitionDisplay(Display):
    """A figure of one partition of X; ``figure_of`` of each kind computes it."""

    figure_of: ClassVar[Callable[..., Any]]

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, *, ax: Any = None, **options: Any) -> Any:
        """Draw X by the clusters of a fitted clusterer; options as in ``from_predictions``."""
        return cls.from_predictions(X, labels_of(estimator, X), ax=ax, **options)

    @classmethod
    def from_predictions(cls, X: Any, labels: Any, *, ax: Any = None, **options: Any) -> Any:
        """Draw a partition of X; options go to the function that the class names."""
        return cls(cls.figure_of(X, labels, **options)).plot(ax=ax)


def pyplot() -> Any:
    """Import matplotlib.pyplot, or raise an error that says how to install it."""
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise ImportError(
            "plots need matplotlib; install it with pip install matplotlib."
        ) from None
    return plt


def theme() -> str:
    """Which set of colours stands out from the background of the user's style."""
    from matplotlib.colors import to_rgb

    pyplot()
    red, green, blue = to_rgb(ground())
    return "dark" if 0.299 * red + 0.587 * green + 0.114 * blue < 0.5 else "light"


def ground() -> Any:
    """The background of the axes in the user's style."""
    return pyplot().rcParams["axes.facecolor"]


def ink() -> Any:
    """The colour of text and lines in the user's style."""
    return pyplot().rcParams["text.color"]


def quiet(share: float = 0.35) -> Any:
    """The ink, mixed with this share of the background."""
    from matplotlib.colors import to_rgb

    return tuple((1 - share) * np.array(to_rgb(ink())) + share * np.array(to_rgb(ground())))


def accent() -> str:
    """The colour of what matters most."""
    return SURFACES[theme()]["accent"]


def tint(code: Any) -> str:
    """Colour of a cluster by its number, for the background of the user's style."""
    return colour_of(int(code), theme())


def key(ax: Any, scatter: Scatter) -> None:
    """A legend of the clusters that occur, where they are few."""
    here = [int(code) for code in np.unique(scatter.codes)]
    if not 1 < len(here) <= MOST_KEYS:
        return
    marks = [ax.scatter([], [], s=18, lw=0, **style(code)) for code in here]
    names = ["noise" if code < 0 else as_written(scatter.clusters[code]) for code in here]
    ax.legend(marks, names, title="cluster", fontsize="x-small", title_fontsize="x-small")


def agreement_map(floor: float = -1.0) -> Any:
    """The colours of rank agreement as a colour map; from a floor above 0 on, one half of them."""
    from matplotlib.colors import LinearSegmentedColormap

    stops = DIVERGING[theme()] if floor < 0 else DIVERGING[theme()][1:]
    return LinearSegmentedColormap.from_list("wellsep", stops)


def style(code: int) -> dict[str, Any]:
    """Colour and marker of a cluster by its number."""
    return {"color": tint(code), "marker": MARKERS[mark_of(int(code))]}


def draw_scatter(ax: Any, scatter: Scatter) -> None:
    """Objects in a plane, each cluster with its colour and marker; the axes have no ticks."""
    size = 6 if len(scatter.xy) > 1000 else 14
    for code in np.unique(scatter.codes):
        here = scatter.codes == code
        ax.scatter(*scatter.xy[here].T, s=size, lw=0, alpha=0.8, **style(int(code)))
    ax.set(xticks=[], yticks=[], xlabel=scatter.axes)
    ax.set_aspect("equal", adjustable="datalim")
    ax.spines[:].set_color(quiet(0.8))


def as_written(name: str) -> str:
    """A name that matplotlib shows as it is; a dollar sign begins no formula."""
    return name.replace("$", r"\$")


def finish(ax: Any, title: str) -> None:
    """Write what is drawn above it, and take the upper and right line from the frame."""
    ax.set_title(title, loc="left", fontsize="medium")
    ax.spines[["top", "right"]].set_visible(False)


def list_rows(ax: Any, names: Sequence[str], **text: Any) -> None:
    """Name rows 0, 1, … from the upper one down."""
    ax.set_yticks(range(len(names)), names, **text)
    ax.tick_params(axis="y", length=0)
    ax.set_ylim(len(names) - 0.4, -0.6)


def write_beside(ax: Any, text: str, xy: Any, offset: Any, **style: Any) -> None:
    """A small text some points away from a place."""
    ax.annotate(text, xy, offset, textcoords="offset points", fontsize="x-small", **style)


def name_rows(ax: Any, names: tuple[str, ...]) -> None:
    """Names next to the rows of a heat map where there is room, and no frame."""
    shown = [as_written(name) for name in names] if len(names) <= MOST_NAMED else []
    ax.set_yticks(range(len(shown)), shown, fontsize="x-small")
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)


def heat_size(names: tuple[str, ...]) -> tuple[float, float]:
    """Width and height in inches of a square heat map whose row names do not overlap."""
    named = names if len(names) <= MOST_NAMED else ()
    side = max(3.8, 0.13 * len(named))
    return side + 1.3 + 0.08 * max(map(len, named), default=0), side + 0.8


def encoded(labels: Any) -> tuple[np.ndarray, tuple[str, ...]]:
    """(n,) numbers of the clusters, -1 = noise, and what they are called."""
    found = encode(to_numpy(labels), noise="exclude")
    return found.codes[0], tuple(str(label) for label in found.classes[0])


def labels_of(estimator: Any, X: Any) -> np.ndarray:
    """Labels a fitted clusterer gives to any X: by ``predict``, or those it was fitted with."""
    if hasattr(estimator, "predict"):
        return to_numpy(estimator.predict(X))
    labels = fitted_labels(estimator)
    if labels is None:
        raise ValueError(
            f"estimator must be fitted, got {type(estimator).__name__} without labels_; "
            "call fit first."
        )
    if len(labels) != len(X):
        raise ValueError(
            f"X must be what the estimator was fitted with ({len(labels)} objects), got {len(X)}."
        )
    return labels


def centers_of(estimator: Any, labels: np.ndarray) -> np.ndarray | None:
    """The estimator's centres of the clusters that occur, or None where it has none."""
    centers = getattr(estimator, "cluster_centers_", None)
    if centers is None or labels.dtype.kind not in "iu":
        return None
    found = np.unique(labels)
    return None if found.min() < 0 or found.max() >= len(centers) else to_numpy(centers)[found]


def answer_of(result: Any) -> AceResult:
    """ACE's answer of whatever result holds it."""
    found = result.by_ace if isinstance(result, Judgement | Ranking) else result
    if found is None:
        raise ValueError("result must come from runs with embeddings, got one of labels alone.")
    if isinstance(found, AceResult):
        return found
    raise TypeError(
        "result must be a Judgement, an AceResult or a Ranking that holds one, "
        f"got {type(result).__name__}."
    )
