"""The search of ``CFMeans``: trials that move one or two centres, kept if the cost falls.

A trial takes a centre that is hardly missed and puts it on a far point, or into a cluster that
two centres would share with gain. Lloyd steps of the few centres that then stand off their means
decide whether it pays. Where trials fail in a row, Lloyd's loop and transfers of single points end
the round. The next one begins from a kick of the best centres, with few clusters from new starts.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from wellsep.cluster.estimator import UNWATCHED, NoProgress
from wellsep.compute.kmeans.lloyd import start_centers
from wellsep.compute.kmeans.prepared_points import Points, prepare
from wellsep.compute.kmeans.search_state import CentreState, open_state

WORTH = 1e-6  # relative gain that counts as one
TRIAL_STEPS = 12  # Lloyd steps that a trial may take at most
PACE = 3.0  # a trial goes on while so many steps like the last one would make it pay
STILL = 1e-5  # summed gain, as a share of the cost, below which a trial's centres stand still
KICKS_FROM = 16  # clusters from which a round ends with a kick, not a fresh start
IDLE_ROUNDS = 3  # without a lower cost, after which a search without a budget ends
FORGETTING = 0.85  # of the yield of an operator, with each use of it
_TIE = 1e-10  # relative difference that does not order two centres
SKETCH_FROM = 96  # features from which a search on leading directions comes first
FEWEST, MOST = 24, 64  # of these directions
SHARE = 0.6  # of the budget that goes to it
SKETCH_ROWS = 1500  # that the directions are found on


@dataclass
class Budget:
    """What a search may spend: trials, seconds of processor time, rounds that bring nothing."""

    max_moves: float = np.inf
    max_seconds: float = np.inf
    idle_rounds: float = np.inf
    begun: float = field(default_factory=time.process_time)
    moves: int = 0

    @property
    def seconds(self) -> float:
        return time.process_time() - self.begun

    @property
    def spent(self) -> bool:
        return self.moves >= self.max_moves or self.late

    @property
    def late(self) -> bool:
        """Whether no more time is left."""
        return self.max_seconds < np.inf and self.seconds >= self.max_seconds


@dataclass
class History:
    """Cost against work; one list for all searches of a fit."""

    rows: list[tuple[float, float, float]] = field(default_factory=list)
    earlier: float = 0.0  # work of searches that have ended
    lowest: float = np.inf

    def add(self, work: float, seconds: float, cost: float) -> None:
        self.lowest = min(self.lowest, cost)
        self.rows.append((self.earlier + work, seconds, self.lowest))

    def columns(self) -> dict[str, np.ndarray]:
        return columns_of(("work", "seconds", "inertia"), self.rows)


def columns_of(
    names: tuple[str, ...], rows: list[tuple[float, float, float]]
) -> dict[str, np.ndarray]:
    table = np.array(rows, dtype=np.float64).reshape(len(rows), len(names))
    return dict(zip(names, table.T, strict=True))


class Found(NamedTuple):
    """Where the search ended; centres in the frame of the points."""

    centers: np.ndarray
    labels: np.ndarray
    cost: float  # Σ w‖x − μ‖², on unit rows for cosine
    n_moves: int  # trials that were kept
    work: float  # distances computed


class CentreSearch:
    """Looks for lower costs from given centres until the budget is spent.

    Studies leave parts of it out by a subclass: ``operator`` chooses between both kinds of trial,
    ``open_state`` makes a state; ``patience`` failures in a row end a round, ``kicks`` begin
    the next.
    """

    open_state = staticmethod(open_state)

    def __init__(
        self,
        points: Points,
        start: np.ndarray,
        restart: Callable[[], np.ndarray],
        budget: Budget,
        random_state: np.random.RandomState,
        progress: NoProgress = UNWATCHED,
        history: History | None = None,
        transfers: bool = True,
    ):
        self.points, self.restart, self.budget = points, restart, budget
        self.random_state, self.transfers = random_state, transfers
        self.progress, self.history = progress, History() if history is None else history
        self.shown: tuple[Points, np.ndarray] | None = None  # to callbacks, in place of the best
        self.k = len(start)
        self.patience = max(8, self.k // 2)
        self.kicks = self.k >= KICKS_FROM
        self.best = self.open_state(points, start)
        self.work = self.best.work
        self.kept = 0
        self.yields = {"split": 1.0, "point": 1.0}
        self.note(self.best)

    def run(self) -> Found:
        idle, state = 0, self.best.copy()
        while True:
            self.round(state)
            self.finish(state)
            self.note(state)
            if state.cost < self.best.cost * (1.0 - 1e-9):
                self.best, idle = state, 0
            else:
                idle += 1
            # Nothing is left to gain where every point lies on a centre.
            over = self.budget.spent or self.progress.stopped or not self.best.cost > 0.0
            if over or idle >= self.budget.idle_rounds:
                break
            state = self.next_state()
        best = self.best
        best.recount()
        return Found(best.centers, best.first, best.cost, self.kept, self.work)

    def next_state(self) -> CentreState:
        if self.kicks:
            state = self.kicked()
            state.descend(floor=1e-4, max_iter=20)
        else:
            state = self.open_state(self.points, self.restart())
            state.descend(floor=1e-3, max_iter=20)
        self.count_work(state)
        return state

    def round(self, state: CentreState) -> None:
        """Trials from one state until too many in a row fail."""
        if self.k < 2:
            return
        trial = state.copy()
        trial.work = 0.0
        proposals = _Proposals(state, self.random_state)
        failures = 0
        while failures < self.patience and not self.budget.spent and state.cost > 0.0:
            self.progress.begin("move")
            failures = 0 if self.trial(state, trial, proposals) else failures + 1
            lowest = self.best if self.best.cost < state.cost else state
            self.progress.end(*(self.shown or (self.points, lowest.centers)))
            if self.progress.stopped:
                break

    def trial(self, state: CentreState, trial: CentreState, proposals: _Proposals) -> bool:
        """Make one trial in ``trial``, a copy of ``state``; both take it if it pays."""
        self.budget.moves += 1
        before = self.work + state.work
        state.work = 0.0
        operator = self.operator()
        proposal = proposals.split() if operator == "split" else None
        if proposal is None:  # no cluster is left whose split has not failed
            operator, proposal = "point", proposals.point()
        codes, places, pair = proposal
        trial.touched[:] = False
        trial.move(codes, places)
        target = state.cost * (1.0 - WORTH)
        trial.descend(floor=STILL, max_iter=TRIAL_STEPS, target=target, pace=PACE)
        pays = trial.cost < target
        won = (state.cost - trial.cost) / state.cost if pays else 0.0
        self.count_work(state)
        self.count_work(trial)
        if pays:
            state.take(trial)
            proposals.changed(trial.touched)
            self.kept += 1
            if self.kept % 50 == 0:
                state.recount()
                trial.take(state)
            self.note(state)
        else:
            trial.take(state)
            if pair is not None:
                proposals.refused.append(pair)
            self.note(self.best)
        passes = max(self.work - before, 1.0) / (self.points.n * self.k)
        earlier = self.yields[operator]
        self.yields[operator] = FORGETTING * earlier + (1.0 - FORGETTING) * won / passes + 1e-12
        return pays

    def operator(self) -> str:
        """Choose the kind of the next trial by what both have brought."""
        split, point = self.yields["split"], self.yields["point"]
        share = split / (split + point)
        return "split" if self.random_state.uniform() < min(max(share, 0.1), 0.9) else "point"

    def kicked(self) -> CentreState:
        """The best state after several centres left where they are hardly missed.

        Each goes into one of the clusters that cost most; chance spreads the choice.
        """
        state, draw = self.best.copy(), self.random_state
        state.work = 0.0
        loss, cost = state.losses()
        size = int(min(draw.randint(2, max(3, min(self.k // 4, 12) + 1)), self.k - 1))
        leaving = np.argsort(loss * draw.exponential(size=self.k), kind="stable")[:size]
        staying = np.setdiff1d(np.arange(self.k), leaving)
        dear = np.argsort(-cost[staying] * draw.exponential(size=len(staying)), kind="stable")
        codes, places = [], []
        for goes, parted in zip(leaving, staying[dear[:size]], strict=False):
            split = state.split(int(parted), draw.uniform(), 1)
            if split.gain > 0.0:
                codes += [goes, parted]
                places += [split.one, split.other]
        if codes:
            state.move(np.array(codes), np.array(places))
        return state

    def finish(self, state: CentreState) -> None:
        """Lloyd's loop, then transfers until none pays."""
        self._settle(state, 300)
        for _ in range(20 if self.transfers else 0):
            before = state.cost
            if self.budget.late or not state.transfers():
                break
            self._settle(state, 50)
            if state.cost >= before * (1.0 - 1e-9):
                break
        self.count_work(state)

    def _settle(self, state: CentreState, max_iter: int) -> None:
        for _ in range(0, max_iter, 10):  # the clock is looked at every ten steps
            before = state.cost
            state.descend(floor=1e-7, max_iter=10)
            if self.budget.late or not state.cost < before:
                break

    def count_work(self, state: CentreState) -> None:
        self.work += state.work
        state.work = 0.0

    def note(self, state: CentreState) -> None:
        self.history.add(self.work, self.budget.seconds, state.cost)


Proposal = tuple[np.ndarray, np.ndarray, tuple[int, int] | None]


class _Proposals:
    """What to try next on one state; remembers splits and failed pairs until clusters change."""

    def __init__(self, state: CentreState, random_state: np.random.RandomState):
        self.state, self.random_state = state, random_state
        self.splits: dict[int, Any] = {}
        self.refused: list[tuple[int, int]] = []  # cluster to split, centre to leave

    def changed(self, touched: np.ndarray) -> None:
        self.splits = {code: split for code, split in self.splits.items() if not touched[code]}
        self.refused = [pair for pair in self.refused if not touched[list(pair)].any()]

    def point(self) -> Proposal:
        """A point drawn by its share of the cost, and a centre that is hardly missed."""
        state, draw = self.state, self.random_state
        mass = state.near * state.weights
        row, _ = state.points.rows_at_shares(mass, draw.uniform(size=1))
        order = _by_size(state.losses()[0])
        leaving = order[min(int(draw.geometric(0.6)) - 1, state.k - 1)]
        return np.array([leaving]), state.points.take(row), None

    def split(self) -> Proposal | None:
        """The pair of a cluster to split and a centre to leave with the greatest balance."""
        state = self.state
        loss, cost = state.losses()
        size = max(6, state.k // 4)
        dear, spare = _by_size(-cost)[:size], _by_size(loss)[:size]
        gain = np.array([self._split_of(int(code)).gain for code in dear])
        net = gain[:, None] - loss[spare]
        net[gain <= 0.0] = -np.inf
        net[dear[:, None] == spare] = -np.inf
        row_of, column_of = np.full((2, state.k), -1)
        row_of[dear], column_of[spare] = np.arange(len(dear)), np.arange(len(spare))
        parted, leaving = np.array(self.refused, dtype=np.intp).reshape(-1, 2).T
        rows, columns = row_of[parted], column_of[leaving]
        met = (rows >= 0) & (columns >= 0)
        net[rows[met], columns[met]] = -np.inf
        best = float(net.max())
        if best == -np.inf:
            return None
        row, column = np.argwhere(net >= best - _TIE * abs(best))[0]
        pair = int(dear[row]), int(spare[column])
        split = self._split_of(pair[0])
        return np.array([pair[1], pair[0]]), np.stack([split.one, split.other]), pair

    def _split_of(self, code: int) -> Any:
        if code not in self.splits:
            self.splits[code] = self.state.split(code, self.random_state.uniform())
        return self.splits[code]


def _by_size(values: np.ndarray) -> np.ndarray:
    """Order from the least; values that differ by rounding alone keep their places."""
    unit = _TIE * float(np.abs(values).max())
    return np.argsort(values if unit == 0.0 else np.round(values / unit), kind="stable")


# ------------------------------------------------------------------- search on leading directions


def leading_directions(points: Points, size: int, random_state: Any) -> np.ndarray:
    """(d, size) orthonormal, near the directions of greatest variance: two power steps.

    Halko, Martinsson and Tropp (2011), Finding structure with randomness, SIAM Review 53.
    """
    rows = random_state.permutation(points.n)[:SKETCH_ROWS]
    some = points.take(np.sort(rows))
    some -= some.mean(axis=0)
    basis = random_state.standard_normal((some.shape[1], min(size + 8, some.shape[1])))
    for _ in range(2):
        basis, _ = np.linalg.qr(some.T @ (some @ basis))
    images = some @ basis
    _, turn = np.linalg.eigh(images.T @ images)
    return basis @ turn[:, ::-1][:, :size]


def search(
    points: Points,
    start: np.ndarray,
    restart: Callable[[], np.ndarray],
    budget: Budget,
    random_state: np.random.RandomState,
    progress: NoProgress,
    history: History,
) -> Found:
    """Search from given centres, with many features on few leading directions first."""
    k, d = start.shape
    if d < SKETCH_FROM or k == 1:
        return CentreSearch(points, start, restart, budget, random_state, progress, history).run()
    basis = leading_directions(points, int(np.clip(d // 8, FEWEST, MOST)), random_state)
    low = prepare(np.asarray(points.X @ basis.astype(points.X.dtype)), points.pull)
    limits = SHARE * budget.max_moves, SHARE * budget.max_seconds
    share = Budget(*limits, budget.idle_rounds, budget.begun)
    sketch = CentreSearch(
        low,
        low.frame.enter(start @ basis),
        lambda: start_centers(low, k, "k-means++", random_state),
        share,
        random_state,
        progress,
        transfers=False,
    )
    sketch.shown = points, start  # callbacks see the centres that it began from
    sketched = sketch.run()
    budget.moves += share.moves
    # The lower of two goes on: the given centres, and the means of what was found on directions.
    lifted = open_state(points, points.frame.means(*points.label_sums(sketched.labels, k), start))
    lifted.descend(floor=1e-3, max_iter=20)
    given = open_state(points, start)
    start = lifted.centers if lifted.cost < given.cost else given.centers
    work = sketched.work + lifted.work + given.work
    history.earlier += work
    ended = CentreSearch(points, start, restart, budget, random_state, progress, history).run()
    return ended._replace(work=ended.work + work, n_moves=ended.n_moves + sketched.n_moves)
