"""Many contenders with one job under one load: the queueing model of ``models/simulation``, a window at a time.

Where :func:`models.simulation.step.advance` serves any fleet step by step, here all contenders (J rows) share the job
and its load.  A row that runs through a window without a backlog and with enough capacity emits what arrives, so its
window needs no steps; only the other rows are stepped through.  ``tests/unit/test_replay_engine.py`` holds both to the
same figures.

| symbol | meaning |
| --- | --- |
| J, O, S | contenders, operators, sources |
| K | steps of a window |
| A(t) | records that arrived at a source by t, the same for every contender |
| N(t) | records of it that are processed: A - backlog |
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from models.evaluation.conditions import Cadence, Disturbances, RandomDraws
from models.evaluation.sharing import NOTHING_FREE, shared_out
from models.evaluation.workload import Workload
from models.job_models import EventKind
from models.simulation.fleet import pack
from models.simulation.samples import wait_s
from models.simulation.spec import BoolArray, FloatArray, IntArray
from models.simulation.state import NEVER

# A backlog below this share of a second's arrivals is what rounding leaves.
_NOTHING_S = 1e-6
_FULL = 1.0 - NOTHING_FREE


@dataclass(frozen=True, slots=True)
class Event:
    """One downtime of one contender; seconds since the start of the run."""

    kind: EventKind
    at_s: float
    downtime_s: float
    checkpoint_age_s: float


@dataclass(frozen=True, slots=True)
class Metrics:
    """What a window of every contender showed and was; (J, O) unless said otherwise, NaN where nothing is measured.

    Attributes:
        parallelism: during the window.
        in_per_s: observed rates of whole operators, a source's is its output.
        true_in_per_s: rates over busy time with the measurement noise.
        busy, backpressured, idle: shares of the window.
        backlog: records that wait at sources at its end.
        latency_ms: age of what waits at a source at its end, fetching included.
        disturbed: (J,) it overlaps a downtime or the time to settle after one.
        late_s: (J,) seconds during which the oldest unprocessed record was older than the target.
        lag_record_s: (J,) integral of the backlog over the window.
    """

    parallelism: IntArray
    in_per_s: FloatArray
    true_in_per_s: FloatArray
    busy: FloatArray
    backpressured: FloatArray
    idle: FloatArray
    backlog: FloatArray
    latency_ms: FloatArray
    disturbed: BoolArray
    late_s: FloatArray
    lag_record_s: FloatArray


@dataclass(slots=True)
class _Path:
    """What the steps of a window were for some rows.

    Attributes:
        up: (n, K) share of each step in which the row ran.
        want, emit: (n, K, S) records/s.
        backlog: (n, K + 1, S) at the ends of steps, the beginning first.
    """

    up: FloatArray
    want: FloatArray
    emit: FloatArray
    backlog: FloatArray


@dataclass(slots=True)
class _Rows:
    """State of J contenders.

    Attributes:
        parallelism: (J, O).
        backlog: (J, S).
        down_from, down_until: (J,) last downtime, seconds since the start.
        restored: (J, S) N at the last restart, from where a failure before the next checkpoint replays.
        recent: (J, K + 1, S) N at the ends of the last window's steps.
    """

    parallelism: IntArray
    backlog: FloatArray
    down_from: FloatArray
    down_until: FloatArray
    restored: FloatArray
    recent: FloatArray


@dataclass(frozen=True, slots=True)
class Setting:
    """What a run is made of, besides its contenders.

    Attributes:
        workload: job and load.
        cadence, around: see ``conditions``.
        draws: of each seed.
        lag_target_s: beyond it a job is late.
    """

    workload: Workload
    cadence: Cadence
    around: Disturbances
    draws: Sequence[RandomDraws]
    lag_target_s: float

    @property
    def windows(self) -> int:
        """Whole windows of the load."""
        return len(self.workload.rates_per_s) // self.cadence.steps


class Engine:
    """Runs J contenders window by window.

    Args:
        setting: of the run.
        seed_of_row: (J,) index into the setting's luck.
        first: (O,) parallelism with which all of them begin.

    Attributes:
        events: downtimes of each row so far.
        rows: state of the rows.
        window: the next one to run.
    """

    def __init__(self, setting: Setting, seed_of_row: IntArray, first: IntArray) -> None:
        self.setting, self.seed_of_row = setting, seed_of_row
        workload, cadence = setting.workload, setting.cadence
        self._fleet = pack([workload.spec])
        self._sources = np.flatnonzero(self._fleet.is_source[0])
        self._gain = self._fleet.gain[0][:, self._sources]  # (O, S)
        self._below = self._gain > 0.0
        jobs, sources = len(self.seed_of_row), len(self._sources)
        width = len(workload.spec.operators)
        self.events: list[list[Event]] = [[] for _ in range(jobs)]
        self.rows = _Rows(
            parallelism=np.tile(np.asarray(first, np.int64), (jobs, 1)),
            backlog=np.zeros((jobs, sources)),
            down_from=np.full(jobs, NEVER),
            down_until=np.full(jobs, NEVER),
            restored=np.zeros((jobs, sources)),
            recent=np.zeros((jobs, cadence.steps + 1, sources)),
        )
        steps = self.setting.windows * cadence.steps
        arrived = np.cumsum(workload.rates_per_s[:steps] * cadence.step_s, axis=0)
        self._arrived = np.concatenate([np.zeros((1, sources)), arrived])  # A at the ends of steps
        self._arrived_at = np.ascontiguousarray(self._arrived.T)  # a row per source: np.interp copies anything else
        self._step_ends = cadence.step_s * np.arange(steps + 1.0)
        self._loads = workload.rates_per_s[:steps] @ self._gain.T  # (steps, O)
        windows = self._loads.reshape(-1, cadence.steps, width)
        self._mean_loads, self._top_loads = windows.mean(axis=1), windows.max(axis=1)
        self._failures = [draws.failures_by_window(cadence.window_s) for draws in self.setting.draws]
        self._capacity_factors = np.stack([draws.capacity for draws in self.setting.draws])  # (seeds, W, O)
        self._measured = np.stack([draws.measured for draws in self.setting.draws])
        self.window = 0

    @property
    def now_s(self) -> float:
        """Seconds since the start."""
        return float(self.window * self.setting.cadence.window_s)

    @property
    def up(self) -> BoolArray:
        """(J,) whether each contender's job runs."""
        return np.asarray(self.rows.down_until <= self.now_s)

    def restarting(self, row: int) -> bool:
        """Whether a contender's job failed, is noticed to have failed, and does not run yet."""
        events, now_s = self.events[row], self.now_s
        noticed_s = float(self.rows.down_from[row]) + self.setting.around.failure_noticed_s
        return bool(events) and events[-1].kind == "restart" and noticed_s <= now_s < self.rows.down_until[row]

    def rescale(self, row: int, target: IntArray) -> None:
        """Stop a running job with a savepoint and bring it back with another parallelism, (O,).

        A job that is down comes back with it: no stop of its own, but no sooner than a rescale that begins now.
        """
        rows, at = self.rows, self.now_s
        downtime_s = float(self.setting.draws[int(self.seed_of_row[row])].rescale_downtime_s[self.window])
        rows.parallelism[row] = target
        if rows.down_until[row] > at:
            until, event = max(float(rows.down_until[row]), at + downtime_s), self.events[row][-1]
            rows.down_until[row], self.events[row][-1] = until, replace(event, downtime_s=until - event.at_s)
            return
        rows.down_from[row], rows.down_until[row] = at, at + downtime_s
        rows.restored[row] = self._arrived[self.window * self.setting.cadence.steps] - rows.backlog[row]
        self.events[row].append(Event("rescale", at, downtime_s, 0.0))

    def advance(self) -> Metrics:
        """Run all contenders through the next window."""
        setting, rows, window = self.setting, self.rows, self.window
        cadence, at = setting.cadence, self.now_s
        capacity = self._capacity(window)
        first, last = window * cadence.steps, (window + 1) * cadence.steps
        moving = (rows.down_until > at) | (rows.backlog > 0.0).any(axis=1)
        moving |= (self._top_loads[window] > capacity).any(axis=1) | self._fails(window)
        index = np.flatnonzero(moving)
        load = np.broadcast_to(self._mean_loads[window], capacity.shape)
        busy = load / capacity
        backpressured, up = np.zeros(busy.shape), np.ones((len(busy), 1))
        late, lag = np.zeros(len(busy)), np.zeros(len(busy))
        recent = np.broadcast_to(self._arrived[first : last + 1], rows.recent.shape).copy()
        if len(index):
            path = self._steps(index, capacity[index], window, recent)
            load, busy = load.copy(), busy.copy()
            load[index], busy[index], backpressured[index], up[index, 0] = self._flows(path, capacity[index])
            late[index], lag[index] = self._lateness(path, first)
        rows.recent = recent
        self.window += 1
        return self._metrics(load, busy, backpressured, up, capacity=capacity, late_s=late, lag=lag)

    def _capacity(self, window: int) -> FloatArray:
        """Return (J, O) what operators process in a window."""
        curves, parallelism = self._fleet.curves[0], self.rows.parallelism
        capacity: FloatArray = (
            curves[np.arange(len(curves)), parallelism] * self._capacity_factors[self.seed_of_row, window]
        )
        return capacity

    def _fails(self, window: int) -> BoolArray:
        return np.array([window in of_seed for of_seed in self._failures], bool)[self.seed_of_row]

    def _steps(self, index: IntArray, capacity: FloatArray, window: int, recent: FloatArray) -> _Path:
        """Step some rows through a window; ``recent`` (J, K + 1, S) gets their N."""
        cadence, rows = self.setting.cadence, self.rows
        first, step_s, K = window * cadence.steps, float(cadence.step_s), cadence.steps
        rates = self.setting.workload.rates_per_s[first : first + K]
        n, sources = len(index), len(self._sources)
        path = _Path(
            np.ones((n, K)), np.zeros((n, K, sources)), np.zeros((n, K, sources)), np.zeros((n, K + 1, sources))
        )
        path.backlog[:, 0] = rows.backlog[index]
        self._stand_still(path.up, index, window)
        failing = self._failing(index, window)
        with np.errstate(divide="ignore"):
            alone = (capacity / self._gain[:, 0]).min(axis=1) if sources == 1 else np.zeros(n)
        for k in range(K):
            for place, failure in failing.get(k, ()):
                self._fail(path, place, int(index[place]), failure, k)
            backlog = path.backlog[:, k]
            want = backlog / step_s + rates[k]
            if sources == 1:
                emit = np.minimum(want, (alone * path.up[:, k])[:, None])
            else:
                emit = self._allocate(want, capacity * path.up[:, k, None])
            path.want[:, k], path.emit[:, k] = want, emit
            left = backlog + (rates[k] - emit) * step_s
            path.backlog[:, k + 1] = np.where(left > _NOTHING_S * rates[k], left, 0.0)
        rows.backlog[index] = path.backlog[:, K]
        recent[index] = self._arrived[first : first + K + 1] - path.backlog
        return path

    def _allocate(self, want: FloatArray, capacity: FloatArray) -> FloatArray:
        """Return (n, S) what several sources emit; rows without any shortage are not shared out."""
        short = (want @ self._gain.T > capacity).any(axis=1)
        if not short.any():
            return want
        emit = want.copy()
        emit[short] = shared_out(self._gain, self._below, want[short], capacity[short], self._fleet.rounds)
        return emit

    def _stand_still(self, up: FloatArray, index: IntArray, window: int) -> None:
        """Take the rows' last downtime out of the shares (n, K) in which they run."""
        cadence, rows = self.setting.cadence, self.rows
        starts = cadence.step_s * (window * cadence.steps + np.arange(cadence.steps))
        since, until = rows.down_from[index, None], rows.down_until[index, None]
        down_s = np.minimum(until, starts + cadence.step_s) - np.maximum(since, starts)
        up -= np.clip(down_s, 0.0, cadence.step_s) / cadence.step_s

    def _failing(self, index: IntArray, window: int) -> dict[int, list[tuple[int, int]]]:
        """Return step -> (place among the rows, failure of its seed) of the window's failures."""
        cadence = self.setting.cadence
        found: dict[int, list[tuple[int, int]]] = {}
        for place, row in enumerate(index.tolist()):
            seed = int(self.seed_of_row[row])
            for failure in self._failures[seed].get(window, np.zeros(0, np.int64)).tolist():
                at = float(self.setting.draws[seed].failure_at_s[failure])
                step = int(at // cadence.step_s) - window * cadence.steps
                found.setdefault(step, []).append((place, failure))
        return found

    def _fail(self, path: _Path, place: int, row: int, failure: int, step: int) -> None:
        """Kill one job within a step: it stands still and replays from its last completed checkpoint.

        A job that is down already does not fail again.
        """
        setting, rows = self.setting, self.rows
        draws, around, cadence = setting.draws[int(self.seed_of_row[row])], setting.around, setting.cadence
        at = float(draws.failure_at_s[failure])
        if at < rows.down_until[row]:
            return
        began = self.window * cadence.steps
        position, age_s = rows.restored[row], at - max(float(rows.down_until[row]), 0.0)
        completed = (age_s - around.checkpoint_duration_s) // around.checkpoint_interval_s
        if completed >= 1:
            age_s -= completed * around.checkpoint_interval_s
            times = self._step_ends[max(began - cadence.steps, 0) : began + step + 1]
            current = self._arrived[began : began + step + 1] - path.backlog[place, : step + 1]
            seen = np.concatenate([rows.recent[row, :-1] if began else rows.recent[row, :0], current])
            position = np.array([np.interp(at - age_s, times, seen[:, source]) for source in range(seen.shape[1])])
        processed = self._arrived[began + step] - path.backlog[place, step]
        path.backlog[place, step] += np.maximum(processed - position, 0.0)
        rows.restored[row] = np.minimum(position, processed)
        downtime_s = float(draws.failure_downtime_s[failure])
        # What was done in this step before the failure is lost, so the step counts as stood still from its beginning.
        rows.down_from[row], rows.down_until[row] = self._step_ends[began + step], at + downtime_s
        self._stand_still(path.up[place : place + 1], np.array([row]), self.window)
        np.maximum(path.up[place], 0.0, out=path.up[place])
        rows.down_from[row] = at
        self.events[row].append(Event("restart", at, downtime_s, age_s))

    def _flows(self, path: _Path, capacity: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Return (n, O) mean rates, busy and backpressured shares, and (n,) the share in which each row ran."""
        load = path.emit @ self._gain.T  # (n, K, O)
        busy = load / capacity[:, None]
        up = path.up[:, :, None]
        held = path.want - path.emit > NOTHING_FREE * path.want  # (n, K, S)
        full = (load >= _FULL * capacity[:, None] * up) & (load > 0.0)
        holding = full & (held[:, :, None, :] & self._below).any(axis=3)
        waits = (holding[:, :, None, :] & self._fleet.above[0]).any(axis=3)
        backpressured = np.where(waits, np.maximum(up - busy, 0.0), 0.0)
        return load.mean(axis=1), busy.mean(axis=1), backpressured.mean(axis=1), path.up.mean(axis=1)

    def _lateness(self, path: _Path, first: int) -> tuple[FloatArray, FloatArray]:
        """Return (n,) seconds late and (n,) the integral of the backlog.

        A step is late when the oldest unprocessed record is older than the target at its end: records are processed
        in order, so it is the one that arrived when A was what N is now.
        """
        cadence = self.setting.cadence
        K, step_s = cadence.steps, float(cadence.step_s)
        waiting = path.backlog[:, 1:]  # (n, K, S)
        oldest = np.zeros(waiting.shape[:2])
        for source in range(waiting.shape[2]):
            some = waiting[:, :, source] > 0.0
            place = np.nonzero(some)[1]
            arrived = self._arrived_at[source, : first + K + 1]
            processed = arrived[first + 1 + place] - waiting[:, :, source][some]
            age = self._step_ends[first + 1 + place] - np.interp(processed, arrived, self._step_ends[: first + K + 1])
            oldest[some] = np.maximum(oldest[some], age)
        late_s = step_s * (oldest > self.setting.lag_target_s).sum(axis=1)
        means = 0.5 * (path.backlog[:, 1:] + path.backlog[:, :-1])
        return np.asarray(late_s, float), step_s * means.sum(axis=(1, 2))

    def _metrics(
        self,
        load: FloatArray,
        busy: FloatArray,
        backpressured: FloatArray,
        up: FloatArray,
        *,
        capacity: FloatArray,
        late_s: FloatArray,
        lag: FloatArray,
    ) -> Metrics:
        rows, window = self.rows, self.window - 1
        cadence = self.setting.cadence
        began_s, ended_s = window * cadence.window_s, (window + 1) * cadence.window_s
        noise = self._measured[self.seed_of_row, window]
        waiting = np.full(load.shape, np.nan)
        waiting[:, self._sources] = rows.backlog
        arrived = np.where(self._fleet.is_source[0], self._mean_loads[window], np.nan)
        with np.errstate(divide="ignore", invalid="ignore"):
            age_s = np.where(arrived > 0.0, waiting / arrived, 0.0) + wait_s(self._fleet, busy)[:, None]
            measured = np.where(busy > 0.0, capacity, np.nan) * noise
        settled = rows.down_until + self.setting.around.settle_s
        return Metrics(
            parallelism=rows.parallelism.copy(),
            in_per_s=np.asarray(load),
            true_in_per_s=measured,
            busy=busy,
            backpressured=backpressured,
            idle=np.maximum(up - busy - backpressured, 0.0),
            backlog=waiting,
            latency_ms=np.where(self._fleet.is_source[0], 1000.0 * age_s, np.nan),
            disturbed=np.asarray((rows.down_from < ended_s) & (settled > began_s)),
            late_s=late_s,
            lag_record_s=lag,
        )
