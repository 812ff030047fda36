"""How parallelism is decided today: a reactive CPU rule and timetables, as callables that read only metrics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from include.utc import DAY_S, HOUR_S, WEEK_S
from lab.simulation.capacity import find_needed_parallelism
from lab.simulation.fleet import Fleet
from models.arrays import Bools, Floats, Ints


@dataclass(frozen=True, slots=True)
class FleetSnapshot:
    """What a controller may read.

    Attributes:
        time_s: seconds of simulation; week_s: seconds since Monday 00:00 UTC.
        parallelism: (J, O).
        busy: (J, O) busy share, mean since the last decision.
        lag_s: (J,) backlog in seconds of input, worst source.
        up: (J,) whether the job runs.
        settled_s: (J,) seconds since it last came back.
    """

    time_s: float
    week_s: float
    parallelism: Ints
    busy: Floats
    lag_s: Floats
    up: Bools
    settled_s: Floats


class FleetController(Protocol):
    """Decides parallelism; called at a fixed period with the metrics since its last call."""

    def __call__(self, snapshot: FleetSnapshot) -> Ints:
        """Return the wanted parallelism (J, O); the current one where nothing should change."""
        ...


@dataclass(frozen=True, slots=True)
class CpuRuleOptions:
    """A CPU rule of one job: grow above ``high``, shrink after ``patience`` decisions below ``low``, to ``target``."""

    high: float = 0.80
    low: float = 0.42
    target: float = 0.62
    patience: int = 6
    cooldown_s: float = 1200.0


@dataclass(slots=True)
class CpuRule:
    """The reactive rule for every job of a fleet; remembers how often each operator was below ``low``."""

    options: Sequence[CpuRuleOptions]
    _low_count: Ints | None = field(default=None, init=False)

    def __call__(self, snapshot: FleetSnapshot) -> Ints:
        """Return the wanted parallelism (J, O)."""
        high, low, target, patience, cooldown = (
            np.array([getattr(option, name) for option in self.options])[:, None]
            for name in ("high", "low", "target", "patience", "cooldown_s")
        )
        low_count = np.zeros_like(snapshot.parallelism) if self._low_count is None else self._low_count
        low_count = np.where(snapshot.busy < low, low_count + 1, 0)
        free = (snapshot.up & (snapshot.settled_s >= cooldown[:, 0]))[:, None]
        # Operators above a bottleneck have idle time: a job that lags is never scaled down.
        undisturbed = (snapshot.lag_s < 5.0)[:, None]
        fit = np.ceil(snapshot.parallelism * snapshot.busy / target - 1e-9).astype(np.int64)
        grows = free & ((snapshot.busy > high) & (fit > snapshot.parallelism)).any(axis=1, keepdims=True)
        shrinks = (
            free & undisturbed & ((low_count >= patience) & (fit < snapshot.parallelism)).any(axis=1, keepdims=True)
        )
        # a rescale costs a restart anyway, so every operator that is well off its target moves with it
        off = (np.abs(snapshot.busy - target) > 0.15 * target) & ((fit > snapshot.parallelism) | undisturbed)
        self._low_count = np.where(grows | shrinks, 0, low_count)
        return np.where((grows | shrinks) & off, np.maximum(fit, 1), snapshot.parallelism)


@dataclass(frozen=True, slots=True)
class TimetableEntry:
    """One line of a timetable: from this UTC hour on, configured for ``load_share`` of the peak."""

    hour: int
    load_share: float
    weekend_share: float | None = None


@dataclass(frozen=True, slots=True)
class Timetable:
    """Scheduled changes of one job as its users set them, reviewed once a week by a factor."""

    slots: tuple[TimetableEntry, ...]
    weekly_review: tuple[float, ...] = (1.0, 1.12, 0.94, 1.05)
    utilisation: float = 0.72

    def load_share(self, time_s: float, week_s: float) -> float:
        """Return the share of peak load that the job is configured for."""
        hour, weekend = int(week_s % DAY_S // HOUR_S), week_s >= 5 * DAY_S
        current = self.slots[-1]
        for slot in self.slots:
            if slot.hour <= hour:
                current = slot
        share = current.weekend_share if weekend and current.weekend_share is not None else current.load_share
        return share * self.weekly_review[int(time_s // WEEK_S) % len(self.weekly_review)]


@dataclass(slots=True)
class UserControl:
    """Jobs with a timetable follow it; the others, and a timetable job that lags for long, follow the CPU rule.

    Args:
        fleet: the jobs.
        peak_per_s: (J, O) source rates at peak, what the timetables' shares refer to.
        timetables: one per job, None for the CPU rule.
        rule: the CPU rule over the same jobs.
    """

    fleet: Fleet
    peak_per_s: Floats
    timetables: Sequence[Timetable | None]
    rule: CpuRule
    rescue_lag_s: float = 120.0

    def __call__(self, snapshot: FleetSnapshot) -> Ints:
        """Return the wanted parallelism (J, O)."""
        wanted = self.rule(snapshot)
        for job, timetable in enumerate(self.timetables):
            if timetable is None or (
                snapshot.lag_s[job] > self.rescue_lag_s and (wanted[job] > snapshot.parallelism[job]).any()
            ):
                continue
            lagging = snapshot.lag_s[job] > self.rescue_lag_s
            planned = self._plan(job, timetable.load_share(snapshot.time_s, snapshot.week_s), timetable.utilisation)
            current = snapshot.parallelism[job]
            wanted[job] = np.maximum(planned, current) if lagging else planned
            if not snapshot.up[job] or self._is_rescued(planned, current, snapshot.settled_s[job]):
                wanted[job] = current
        return wanted

    @staticmethod
    def _is_rescued(planned: Ints, current: Ints, settled_s: float) -> bool:
        """Whether the job was enlarged by the rule within the hour; the timetable waits that long."""
        return bool((planned < current).any() and settled_s < HOUR_S)

    def _plan(self, job: int, share: float, utilisation: float) -> Ints:
        load = self.fleet.mean_gain[job] @ self.peak_per_s[job] * share
        need = np.minimum(find_needed_parallelism(self.fleet.curves[job], load, utilisation), self.fleet.p_max[job])
        return np.where(self.fleet.present[job], need, 0)
