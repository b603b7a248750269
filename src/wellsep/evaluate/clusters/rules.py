"""Short rules that tell a cluster from the rest, scored on objects they were not made from."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from sklearn.tree import DecisionTreeClassifier

DEPTH = 2
FOLDS = 5
LEAST_SHARE = 0.02  # of the objects, in a leaf
MOST_OBJECTS = 20_000  # that trees are grown from
MOST_FEATURES = 50  # that a tree looks at: those that differ most among the objects it is made from
DIGITS = 4


class Condition(NamedTuple):
    """A feature above a threshold, or not."""

    feature: int
    above: bool
    threshold: float


class Rule(NamedTuple):
    """Conditions that must all hold; the cross-validated precision and recall of such rules."""

    conditions: tuple[Condition, ...]
    precision: float
    recall: float

    def in_words(self, names: tuple[str, ...], shares: np.ndarray) -> str:
        """The rule as text: ``proline > 755 and hue <= 0.97``; of shares ``red`` or ``not red``."""
        parts = []
        for feature, above, threshold in self.conditions:
            if shares[feature]:
                parts.append(names[feature] if above else f"not {names[feature]}")
            else:
                parts.append(f"{names[feature]} {'>' if above else '<='} {threshold:.{DIGITS}g}")
        return " and ".join(parts)


NO_RULE = Rule((), np.nan, np.nan)


def find_rule(values: np.ndarray, inside: np.ndarray) -> Rule:
    """The rule of one group; none where it or the rest has fewer than two objects.

    The rule is made from all objects. Precision and recall are those of five rules: each is made
    from four fifths of the objects and judges the fifth that is left out.
    """
    if min(inside.sum(), (~inside).sum()) < 2 or not values.shape[1]:
        return NO_RULE
    rng = np.random.default_rng(0)
    fold = np.empty(len(inside), dtype=np.intp)
    for part in (np.flatnonzero(inside), np.flatnonzero(~inside)):  # both are spread evenly
        fold[rng.permutation(part)] = np.arange(len(part)) % FOLDS
    found = hit = wanted = 0
    for one in range(FOLDS):
        held = fold == one
        wanted += int(inside[held].sum())
        if inside[~held].any():
            chosen = holds(values[held], _grow(values[~held], inside[~held], rng))
            found += int(chosen.sum())
            hit += int((chosen & inside[held]).sum())
    conditions = _grow(values, inside, rng)
    return Rule(conditions, hit / found if found else np.nan, hit / wanted)


def holds(values: np.ndarray, conditions: tuple[Condition, ...]) -> np.ndarray:
    """(n,) bool: which objects meet all conditions; no condition is met by all."""
    chosen = np.ones(len(values), dtype=bool)
    for feature, above, threshold in conditions:
        column = values[:, feature]
        chosen &= column > threshold if above else column <= threshold
    return chosen


def _grow(
    values: np.ndarray, inside: np.ndarray, rng: np.random.Generator
) -> tuple[Condition, ...]:
    """The way to the leaf with the best F1, thresholds rounded as they are shown."""
    if len(values) > MOST_OBJECTS:
        share = MOST_OBJECTS / len(values)
        keep = rng.random(len(values)) < np.where(inside, max(share, 500 / inside.sum()), share)
        values, inside = values[keep], inside[keep]
    features = _most_different(values, inside)
    n, size = len(inside), int(inside.sum())
    # Departs from 2 % of all objects where a cluster is small: its leaf could then not be pure.
    least = max(2, min(int(np.ceil(LEAST_SHARE * n)), size // 4))
    model = DecisionTreeClassifier(
        max_depth=DEPTH, min_samples_leaf=least, class_weight="balanced", random_state=0
    )
    tree: Any = model.fit(values[:, features], inside).tree_
    best: tuple[float, tuple[Condition, ...]] = (-1.0, ())
    for conditions in _leaves(tree, features):
        rounded = _merged(conditions)
        chosen = holds(values, rounded)
        hit = int((chosen & inside).sum())
        score = 2 * hit / (int(chosen.sum()) + size)
        if score > best[0] + 1e-12:
            best = score, rounded
    return best[1]


def _most_different(values: np.ndarray, inside: np.ndarray) -> np.ndarray:
    if values.shape[1] <= MOST_FEATURES:
        return np.arange(values.shape[1])
    gap = np.abs(values[inside].mean(axis=0) - values[~inside].mean(axis=0))
    spread = np.sqrt((values[inside].var(axis=0) + values[~inside].var(axis=0)) / 2)
    with np.errstate(divide="ignore", invalid="ignore"):
        effect = np.where(gap > 0, gap / spread, 0.0)
    return np.sort(np.argsort(-effect, kind="stable")[:MOST_FEATURES])


def _leaves(tree: Any, features: np.ndarray) -> Any:
    """The conditions on the way to each leaf."""
    waiting: list[tuple[int, tuple[Condition, ...]]] = [(0, ())]
    while waiting:
        node, conditions = waiting.pop()
        if tree.children_left[node] < 0:
            yield conditions
            continue
        feature, threshold = int(features[tree.feature[node]]), float(tree.threshold[node])
        for child, above in ((tree.children_right, True), (tree.children_left, False)):
            more = (*conditions, Condition(feature, above, threshold))
            waiting.append((int(child[node]), more))


def _merged(conditions: tuple[Condition, ...]) -> tuple[Condition, ...]:
    """Of several conditions on one side of a feature the tightest, rounded to four digits."""
    tightest: dict[tuple[int, bool], float] = {}
    for feature, above, threshold in conditions:
        before = tightest.get((feature, above), threshold)
        tightest[feature, above] = (max if above else min)(before, threshold)
    return tuple(
        Condition(feature, above, float(f"{threshold:.{DIGITS}g}"))
        for (feature, above), threshold in tightest.items()
    )
