"""The dynamic programme of the bound: backwards over windows, slots, and the age of the oldest record.

    V_w(k, a, c) = min( slots(k) + late + V_w+1(k, a', c'),
                        rescale + min_k' slots(k') + late' + V_w'(k', a'', c'') ),    V_W = 0

c is the age of the checkpoint that the next failure will find, which follows from when the job last began to run.  A
rise that lacks slots is decided whole windows before it takes effect, and nothing else until then.  What is left of a
wait takes no time, since a rescale takes effect with a window; slots are paid as long as they are waited for.  Where a
fall waits for a checkpoint, the job keeps its capacity for the window and pays less already.
V_w' is of the first window that begins with the job running again.  A job that is down after a failure has values of
its own.  Ages are rounded down to a grid; V grows with both, so it is a lower bound.

| symbol | meaning |
| --- | --- |
| W, P | windows, most slots |
| A, C | grids of ages and of checkpoint ages |
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from lab.replay.bound.known_run import KnownRun
from lab.replay.bound.window_run import StopState, WindowEnd, run_window
from lab.replay.conditions import Prices
from models.arrays import Floats, Ints

FINE, COARSE = 240, 30
"""Ages of the grid up to the lag target: of the bound, and where values are joined."""
DENSE = 600
"""At most so many ages of the bound's grid from there to the oldest record that its own policy meets."""
CHECKPOINTS = 6
"""Ages of checkpoints on the grid."""


def build_ages_s(lag_target_s: float, steps: int, dense_until_s: float = 0.0) -> Floats:
    """Return the (A,) ages of the grid: so many up to the lag target, then further and further apart.

    Args:
        lag_target_s: of the run.
        steps: how many up to it.
        dense_until_s: up to which the grid is a twelfth of the lag target fine, or a DENSE-th of this age.
    """
    target_s = max(lag_target_s, 1.0)
    upper = [np.arange(1, 2.5, 1 / 12), np.arange(2.5, 7, 0.25), np.arange(7, 20, 1.0), np.arange(20, 60, 5.0)]
    last = [60.0, 90.0, 120.0, 240.0, 480.0, 1440.0]
    ages_s = target_s * np.concatenate([np.arange(steps) / steps, *upper, last])
    dense_s = np.arange(target_s, dense_until_s, max(target_s / 12, dense_until_s / DENSE))
    return np.union1d(ages_s, dense_s)


@dataclass(frozen=True, slots=True)
class WindowDecision:
    """What is best at the beginning of a window, with the job up, or down after one failure.

    Attributes:
        rescales: whether to rescale: bits of a (C, P, A) array, of a job that is down (1, P, A).
        target: (P, A) place of the number of slots to rescale to, or (1, A) where it is the same from every number.
    """

    rescales: bytes
    target: Ints


Choices = Mapping[int | None, WindowDecision]
"""Place of the failure that still lasts, None of a job that is up -> what is best."""


@dataclass(frozen=True, slots=True)
class LeastCosts:
    """Least cost from the beginning of a window on.

    Attributes:
        up: (C, P, A) of a job that runs.
        down: place of the failure that still lasts -> (P, A).
    """

    up: Floats
    down: Mapping[int, Floats] = field(default_factory=dict)

    @property
    def least(self) -> float:
        """Of any state."""
        return float(min([self.up.min(), *(values.min() for values in self.down.values())]))


@dataclass(frozen=True, slots=True)
class BoundSolution:
    """Result of the programme.

    Attributes:
        first: values at the beginning of the run.
        least: window -> the least value of any state at its beginning.
        choices: of every window; none of a bound.
    """

    first: LeastCosts
    least: Mapping[int, float]
    choices: Sequence[Choices]


class BoundProgramme:
    """The programme of one run.

    Args:
        known: the run.
        prices: of slots, lateness and rescales.
        joins_ages: whether values between two ages of the grid are joined linearly: no bound, but choices that do not
            count on what rounding down gives.
        ages_s: (A,) ascending from 0; a grid for the lag target unless given.
        checkpoints: C.
    """

    def __init__(
        self,
        known: KnownRun,
        prices: Prices,
        *,
        joins_ages: bool,
        ages_s: Floats | None = None,
        checkpoints: int = CHECKPOINTS,
    ) -> None:
        self.known, self.prices, self.joins_ages = known, prices, joins_ages
        steps = COARSE if joins_ages else FINE
        self.ages_s = build_ages_s(known.lag_target_s, steps) if ages_s is None else ages_s
        least_s, interval_s = known.disturbances.checkpoint_duration_s, known.disturbances.checkpoint_interval_s
        self.checkpoint_ages_s = least_s + interval_s * np.arange(checkpoints) / checkpoints
        self.slots_max = known.capacity_per_s.shape[1]
        self.window_s = known.steps * known.step_s
        count = known.disturbances.count_paid
        share = np.array([count(slots) for slots in range(1, self.slots_max + 1)]) / self.slots_max
        self.slot_cost = (prices.slots * self.window_s / 60.0 * share)[:, None]  # (P, 1) of a window
        waits = known.disturbances.slots_wait_s / self.window_s
        self.wait_windows = int(waits)
        self.again_s = known.disturbances.checkpoint_duration_s * known.disturbances.waits_for_checkpoint
        self.wait_cost = np.maximum(self.slot_cost - self.slot_cost.T, 0.0)[..., None] * waits  # (P to, P from, 1)
        self._values: dict[int, LeastCosts] = {}
        self._end = known.windows

    def solve(self, windows: int | None = None, least_at: Sequence[int] = ()) -> BoundSolution:
        """Solve the first windows of the run.

        Args:
            windows: how many; all unless given.
            least_at: windows at whose beginning the least value of any state is wanted.
        """
        self._end = self.known.windows if windows is None else windows
        stops_s = np.concatenate([self.known.rescale_downtime_s, self.known.failure_downtime_s])
        reach = int(stops_s.max() // self.window_s) + 2 + self.wait_windows  # a rescale leads no further
        self._values, choices, least = {}, [], {}
        for window in reversed(range(self._end)):
            values, choice = self._solve_window(window)
            self._values[window] = values
            self._values.pop(window + reach, None)
            if self.joins_ages:
                choices.append(choice)
            if window in least_at:
                least[window] = values.least
        return BoundSolution(self._values[0], least, choices[::-1])

    def lacks_slots(self, place: int, target: int) -> bool:
        """Whether a rise to another place waits for slots."""
        return bool(self.wait_cost[target, place, 0] > 0)

    def stop_with_slots(self, window: int, stop: StopState) -> StopState:
        """Return the downtime of a rise whose slots come with a window, after another one that may last on."""
        until_s = self.known.begin_s(window) + float(self.known.rescale_downtime_s[window])
        if stop.until_s <= self.known.begin_s(window):
            return StopState(self.known.begin_s(window), until_s)
        return StopState(stop.from_s, max(stop.until_s, until_s))

    def find_checkpoint(self, until_s: float, window: int) -> int:
        """Return the place of the checkpoint's age that the next failure finds, from a window on."""
        known, ahead = self.known, int(np.searchsorted(self.known.failure_at_s, self.known.begin_s(window)))
        if ahead == len(known.failure_at_s):
            return 0
        age_s = known.find_checkpoint_age_s(until_s, float(known.failure_at_s[ahead]))
        return max(int(np.searchsorted(self.checkpoint_ages_s, age_s, side="right")) - 1, 0)

    def stop_for_rescale(self, window: int, failure: int | None) -> StopState | None:
        """Return the downtime of a rescale with a window's beginning; None where it is not possible.

        Args:
            window: its number.
            failure: place of the failure that still lasts, None for a job that runs.
        """
        known, now_s = self.known, self.known.begin_s(window)
        until_s = now_s + float(known.rescale_downtime_s[window])
        if not known.may_rescale[window]:
            return None
        if failure is None:
            return StopState(now_s, until_s)
        at_s = float(known.failure_at_s[failure])
        back_s = at_s + float(known.failure_downtime_s[failure])
        is_noticed = at_s + known.disturbances.failure_noticed_s <= now_s
        return StopState(at_s, max(until_s, back_s)) if is_noticed else None

    def _solve_window(self, window: int) -> tuple[LeastCosts, Choices]:
        known, now_s = self.known, self.known.begin_s(window)
        up, choice = self._choose(self._stay_up(window), window, None)
        values: dict[int, Floats] = {}
        choices: dict[int | None, WindowDecision] = {None: choice}
        for failure, (at_s, downtime_s) in enumerate(zip(known.failure_at_s, known.failure_downtime_s, strict=True)):
            if at_s < now_s < at_s + downtime_s:
                stay = self._run(window, StopState(float(at_s), float(at_s + downtime_s), failure))
                best, choices[failure] = self._choose(stay[None], window, failure)
                values[failure] = best[0]
        return LeastCosts(up, values), choices

    def _stay_up(self, window: int) -> Floats:
        """Return (C, P, A) the cost of a job that runs and keeps its slots."""
        failures = self.known.find_failures(window)
        if not failures:
            shape = (len(self.checkpoint_ages_s), self.slots_max, len(self.ages_s))
            return np.broadcast_to(self._run(window, StopState()), shape)
        # Just after a restart not even the least age of a checkpoint has passed.
        into_s = float(self.known.failure_at_s[failures[0]]) - self.known.begin_s(window)
        ages_s = [min(float(self.checkpoint_ages_s[0]), into_s), *self.checkpoint_ages_s[1:].tolist()]
        return np.stack([self._run(window, StopState(checkpoint_s=age_s)) for age_s in ages_s])

    def _choose(self, stay: Floats, window: int, failure: int | None) -> tuple[Floats, WindowDecision]:
        """Return the lower cost of staying, (..., P, A), and of the best rescale, and which it is."""
        stop = self.stop_for_rescale(window, failure)
        if stop is None:
            return stay, WindowDecision(bytes(-(-stay.size // 8)), np.zeros((1, stay.shape[-1]), np.uint16))
        change = self.prices.rescale + self._run(window, stop, self.again_s * (failure is None))[:, None]
        if not self.known.disturbances.is_at_once:
            change = change + self.wait_cost
        if self.known.disturbances.waits_for_checkpoint and not self.joins_ages:
            falls = np.tri(self.slots_max, k=-1, dtype=bool).T[..., None]
            change = np.where(falls, self.prices.rescale + self._fall(window, stop), change)
        if self.wait_windows:
            change = np.where(self.wait_cost > 0, self.prices.rescale + self._wait_for_slots(window, failure), change)
        best = change.min(axis=0)
        target = change.argmin(axis=0).astype(np.uint16)
        return np.minimum(stay, best), WindowDecision(np.packbits(best < stay).tobytes(), target)

    def _run(self, window: int, stop: StopState, again_s: float = 0.0) -> Floats:
        """Return the cost from a window on of all slots and ages of the grid; the slots change at its end at best.

        Args:
            window: its number.
            stop: the last downtime.
            again_s: age of the checkpoint from which it begins: what was processed since then is processed again.
        """
        end = run_window(self.known, window, slice(None), self.ages_s[None] + again_s, stop)
        return self._add_cost(window, end)

    def _wait_for_slots(self, window: int, failure: int | None) -> Floats:
        """Return (P to, P from, A) the cost of waiting for slots from a window on, paying for them, and of the stop."""
        known, last = self.known, window + self.wait_windows
        if last >= self._end:  # they come too late
            return np.full((self.slots_max, *self.wait_cost.shape[1:]), np.inf)
        cost, age_s = np.zeros((self.slots_max, len(self.ages_s))), self.ages_s[None]
        stop = StopState(checkpoint_s=0.0)  # no failure finds an older one
        if failure is not None:
            at_s = float(known.failure_at_s[failure])
            stop = StopState(at_s, at_s + float(known.failure_downtime_s[failure]), failure)
        for one in range(window, last):
            end = run_window(known, one, slice(None), age_s, stop)
            cost, age_s = cost + self.slot_cost + self.prices.late * end.late_s / 60.0, end.age_s
            stop = end.stop
        is_up = stop.until_s <= known.begin_s(last)
        going = self._run(last, self.stop_with_slots(last, stop), self.again_s * is_up)
        below = np.searchsorted(self.ages_s, age_s, side="right") - 1
        if not self.joins_ages:
            return np.asarray(going[:, below] + cost + self.wait_cost)
        below = np.minimum(below, len(self.ages_s) - 2)
        share = np.clip((age_s - self.ages_s[below]) / (self.ages_s[below + 1] - self.ages_s[below]), 0.0, 1.0)
        return np.asarray(going[:, below] * (1 - share) + going[:, below + 1] * share + cost + self.wait_cost)

    def _fall(self, window: int, stop: StopState) -> Floats:
        """Return (P to, P from, A) the cost where a job pays for other slots than it has in the window."""
        end = run_window(self.known, window, slice(None), self.ages_s[None] + self.again_s, stop)
        flat = WindowEnd(end.late_s.reshape(1, -1), end.age_s.reshape(1, -1), end.stop)
        return self._add_cost(window, flat).reshape(self.slots_max, self.slots_max, -1)

    def _add_cost(self, window: int, end: WindowEnd) -> Floats:
        """Return the cost of a window and of what follows, (P, A), or (C, P, A) where the checkpoint is open."""
        following = window + 1
        own: Floats = self.slot_cost + self.prices.late * end.late_s / 60.0
        if following == self._end:
            return own
        values, stop = self._values[following], end.stop
        if stop.until_s > self.known.begin_s(following):
            if stop.failure is not None:
                return own + self._look_up(values.down[stop.failure], end.age_s)
            further = run_window(self.known, following, slice(None), end.age_s, stop)
            return own + self._add_cost(following, further)
        if np.isfinite(stop.until_s):
            return own + self._look_up(values.up[self.find_checkpoint(stop.until_s, following)], end.age_s)
        return own + self._look_up(values.up, end.age_s)

    def _look_up(self, values: Floats, age_s: Floats) -> Floats:
        """Return (..., P, A) values on the grid of ages at (P, A) others."""
        below = np.searchsorted(self.ages_s, age_s, side="right") - 1
        slots = np.arange(self.slots_max)[:, None]
        if not self.joins_ages:
            return values[..., slots, below]
        below = np.minimum(below, len(self.ages_s) - 2)
        step_s = self.ages_s[below + 1] - self.ages_s[below]
        share = np.clip((age_s - self.ages_s[below]) / step_s, 0.0, 1.0)
        lower = values[..., slots, below]
        return np.asarray(lower + share * (values[..., slots, below + 1] - lower))
