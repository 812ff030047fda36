"""Many rows with one job under one load: the queueing model of ``lab/simulation``, a window at a time.

Where :func:`lab.simulation.step.advance` serves any fleet step by step, here all rows share the job and its load.  A
row that runs through a window without a backlog and with enough capacity emits what arrives, so its window needs no
steps; only the other rows are stepped through.  ``tests/unit/test_replay_engine.py`` holds both to the same figures.

| symbol | meaning |
| --- | --- |
| J, O, S | rows (a candidate policy with a seed each), operators, sources |
| n, K | rows that are stepped through, steps of a window |
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from lab.replay.arrivals import Arrivals
from lab.replay.conditions import DecisionSchedule, Disturbances
from lab.replay.failures import Downtime, DrawnFailure, FailureModel
from lab.replay.random_draws import RandomDraws
from lab.replay.rises import ParallelismRequest
from lab.replay.row_states import PendingRescale, RowStates, StepPath
from lab.replay.window_metrics import WindowFlows, WindowMetrics
from lab.replay.workload import Workload
from lab.simulation.fleet import pack
from lab.simulation.queueing import QueueingNetwork, fetch_wait_s
from lab.simulation.spec import SpecError
from models.arrays import Bools, Floats, Ints

# A backlog below this share of a second's arrivals is what rounding leaves.
_NOTHING_S = 1e-6


@dataclass(frozen=True, slots=True)
class EngineSetting:
    """What a run is made of, besides its candidate policies.

    Attributes:
        workload: job and load.
        cadence, disturbances: see ``conditions``.
        draws: of each seed.
        lag_target_s: beyond it a job is late.
    """

    workload: Workload
    cadence: DecisionSchedule
    disturbances: Disturbances
    draws: Sequence[RandomDraws]
    lag_target_s: float

    @property
    def windows(self) -> int:
        """Whole windows of the load."""
        return len(self.workload.rates_per_s) // self.cadence.steps


class Engine:
    """Runs J rows window by window.

    Args:
        setting: of the run.
        seed_of_row: (J,) index into the setting's draws.
        first: (O,) parallelism with which all of them begin.

    Attributes:
        downtimes: of each row so far.
        asked: what each row was asked for so far.
        rows: state of the rows.
        window: the next one to run.
    """

    def __init__(self, setting: EngineSetting, seed_of_row: Ints, first: Ints) -> None:
        self.setting, self.seed_of_row, self.window = setting, seed_of_row, 0
        fleet = pack([setting.workload.spec])
        if fleet.in_bursts.any():
            bursting = [one.name for one in setting.workload.spec.operators if one.burst_s]
            raise SpecError(f"a replay steps over whole windows and has no bursts; take burst_s of {bursting} away")
        self._waits_in_poll = fleet.waits_in_poll[0]
        self._is_source, self._curves, self._fetch_delay_s = fleet.is_source[0], fleet.curves[0], fleet.fetch_delay_s
        self._sources = np.flatnonzero(self._is_source)
        self._network = QueueingNetwork.from_gain(fleet.network.gain[0][:, self._sources], fleet.network.above[0])
        self._arrivals = Arrivals(setting.workload, self._network, setting.cadence)
        self._failures = FailureModel(setting.draws, seed_of_row, self._arrivals, setting.cadence, setting.disturbances)
        self._capacity_factors = np.stack([draws.capacity for draws in setting.draws])  # (seeds, W, O)
        self._measured_factors = np.stack([draws.measured for draws in setting.draws])
        self.downtimes: list[list[Downtime]] = [[] for _ in seed_of_row]
        self.asked: list[list[ParallelismRequest]] = [[] for _ in seed_of_row]
        self._left: dict[int, tuple[int, float]] = {}  # row -> slots that it left in the window, and when
        steps = -(-round(setting.disturbances.oldest_checkpoint_s) // setting.cadence.step_s)
        self.rows = RowStates.running(first, len(seed_of_row), len(self._sources), max(steps, setting.cadence.steps))

    @property
    def now_s(self) -> float:
        """Seconds since the start."""
        return float(self.window * self.setting.cadence.window_s)

    @property
    def is_up(self) -> Bools:
        """(J,) whether each row's job runs."""
        return np.asarray(self.rows.down_until <= self.now_s)

    def is_restarting(self, row: int) -> bool:
        """Whether a row's job failed, is noticed to have failed, and does not run yet."""
        downtimes, now_s = self.downtimes[row], self.now_s
        noticed_s = float(self.rows.down_from[row]) + self.setting.disturbances.failure_noticed_s
        return bool(downtimes) and downtimes[-1].kind == "restart" and noticed_s <= now_s < self.rows.down_until[row]

    def is_waiting(self, row: int) -> bool:
        """Whether a row's last rescale is asked for and not carried out yet."""
        return row in self.rows.requests

    def rescale(self, row: int, target: Ints) -> None:
        """Ask for another parallelism, (O,): a running job stops when what the rescale waits for is there.

        A job that is down comes back with it: no stop of its own, but no sooner than a rescale that begins now.
        """
        rows, disturbances = self.rows, self.setting.disturbances
        self.asked[row].append(ParallelismRequest(self.now_s, rows.parallelism[row].copy(), np.array(target, np.int64)))
        running = int(rows.parallelism[row].max())
        ready_s = disturbances.find_ready_s(self.now_s, int(target.max()), running)
        if ready_s == self.now_s and rows.down_until[row] > self.now_s:
            self._come_back_with(row, target, self.now_s)
        elif ready_s == self.now_s and not disturbances.waits_for_checkpoint:
            rows.parallelism[row] = target
            downtime_s = self._draw_downtime_s(row)
            rows.down_from[row], rows.down_until[row] = self.now_s, self.now_s + downtime_s
            rows.restored[row] = self._arrivals.total[self.window * self.setting.cadence.steps] - rows.backlog[row]
            self.downtimes[row].append(Downtime("rescale", self.now_s, downtime_s, math.nan))
        else:
            rows.requests[row] = PendingRescale(np.array(target, np.int64), ready_s)

    def _draw_downtime_s(self, row: int) -> float:
        """Return the downtime of a rescale that begins in this window."""
        return float(self.setting.draws[int(self.seed_of_row[row])].rescale_downtime_s[self.window])

    def _come_back_with(self, row: int, target: Ints, at_s: float) -> None:
        """Let a job that is down come back with another parallelism that it has from a time on."""
        rows = self.rows
        rows.parallelism[row] = target
        until_s, last = max(float(rows.down_until[row]), at_s + self._draw_downtime_s(row)), self.downtimes[row][-1]
        rows.down_until[row], self.downtimes[row][-1] = until_s, replace(last, downtime_s=until_s - last.at_s)

    def _find_stops(self) -> dict[int, float]:
        """Return row -> when it stops for a rescale, of rows that do so in this window as it looks now."""
        end_s = self.now_s + self.setting.cadence.window_s
        stops_s = {row: self._find_stop_s(row) for row in self.rows.requests}
        return {row: at_s for row, at_s in stops_s.items() if at_s < end_s}

    def _find_stop_s(self, row: int) -> float:
        rows, ready_s = self.rows, self.rows.requests[row].ready_s
        if ready_s < rows.down_until[row]:  # it has failed meanwhile, and comes back with what is there
            return max(ready_s, float(rows.down_from[row]))
        return self.setting.disturbances.find_stop_s(ready_s, max(float(rows.down_until[row]), 0.0))

    def _stop_for_rescale(self, path: StepPath, place: int, row: int, step: int) -> bool:
        """Carry out a rescale whose time comes within a step of the window; return whether it did."""
        at_s, end_s = self._find_stop_s(row), self.now_s + (step + 1) * self.setting.cadence.step_s
        if at_s >= end_s:
            return False
        target, rows = self.rows.requests.pop(row).target, self.rows
        before = int(rows.parallelism[row].max())
        if at_s < rows.down_until[row]:
            self._come_back_with(row, target, at_s)
            step_begins_s = self._arrivals.step_ends_s[[self.window * path.up.shape[1] + step]]
            down = self._failures.compute_down_share(self.window, step_begins_s, rows.down_until[[row]])
            path.up[place] = np.minimum(path.up[place], 1.0 - down[0])
        else:
            self._fail(DrawnFailure(at_s, self._draw_downtime_s(row), "rescale"), path, place, row, step)
            rows.parallelism[row] = target
        self._left[row] = before, at_s
        return True

    def _fail(self, failure: DrawnFailure, path: StepPath, place: int, row: int, step: int) -> None:
        downtime = self._failures.fail(failure, self.rows, row, path, place, window=self.window, step=step)
        if downtime is not None:
            self.downtimes[row].append(downtime)

    def advance(self) -> WindowMetrics:
        """Run all rows through the next window."""
        rows, steps = self.rows, self.setting.cadence.steps
        first = self.window * steps
        self._left = {}
        capacity = self._compute_capacity()
        flows = WindowFlows.without_backlog(self._arrivals.mean_load_per_s[self.window], capacity)
        processed = np.tile(self._arrivals.total[first : first + steps + 1], (len(capacity), 1, 1))
        index = np.flatnonzero(self._need_steps(capacity))
        if len(index):
            path = self._run_steps(index, capacity[index])
            capacity[index] = path.capacity[:, -1]
            flows.set_from_steps(index, path, self._network, self.setting.cadence.steps_per_poll)
            self._set_lateness(flows, index, path.backlog)
            processed[index] -= path.backlog
        rows.recent = np.concatenate([rows.recent[:, steps:-1], processed], axis=1)
        self.window += 1
        return self._observe(flows, capacity)

    def _compute_capacity(self) -> Floats:
        """Return (J, O) what operators process in the window."""
        curves = self._curves[np.arange(len(self._curves)), self.rows.parallelism]
        return np.asarray(curves * self._capacity_factors[self.seed_of_row, self.window])

    def _need_steps(self, capacity: Floats) -> Bools:
        """Return (J,) which rows do not simply emit what arrives in the window."""
        rows = self.rows
        restless = ~self.is_up | (rows.backlog > 0.0).any(axis=1) | self._failures.find_rows(self.window)
        restless[list(self._find_stops())] = True
        return np.asarray(restless | (self._arrivals.top_load_per_s[self.window] > capacity).any(axis=1))

    def _run_steps(self, index: Ints, capacity: Floats) -> StepPath:
        """Step some rows through the window; ``capacity`` is theirs, (n, O)."""
        cadence, rows = self.setting.cadence, self.rows
        first, step_s = self.window * cadence.steps, float(cadence.step_s)
        path = StepPath.allocate_arrays(rows.backlog[index], capacity, cadence.steps)
        waiting = {place: row for place, row in enumerate(index.tolist()) if row in rows.requests}
        path.up -= self._failures.compute_down_share(self.window, rows.down_from[index], rows.down_until[index])
        failing = self._failures.find_steps(self.window, index)
        allocate = self._network.allocator(capacity)
        for k, rate in enumerate(self._arrivals.rates_per_s[first : first + cadence.steps]):
            for place, failure in failing.get(k, ()):
                self._fail(failure, path, place, int(index[place]), k)
            stopped = [place for place, row in waiting.items() if self._stop_for_rescale(path, place, row, k)]
            if stopped:
                for place in stopped:
                    del waiting[place]
                path.capacity[stopped, k:] = self._compute_capacity()[index[stopped], None]
                allocate = self._network.allocator(path.capacity[:, k])
            backlog = path.backlog[:, k]
            wanted = backlog / step_s + rate
            emitted = allocate(wanted, path.up[:, k, None])
            path.wanted[:, k], path.emitted[:, k] = wanted, emitted
            remaining = backlog + (rate - emitted) * step_s
            path.backlog[:, k + 1] = np.where(remaining > _NOTHING_S * rate, remaining, 0.0)
        rows.backlog[index] = path.backlog[:, -1]
        return path

    def _compute_paid(self) -> Floats:
        """Return (J,) the slots that are paid in the last window: whole TaskManagers, also those on their way."""
        count, window_s = self.setting.disturbances.count_paid, self.setting.cadence.window_s
        paid = np.array([count(int(slots)) for slots in self.rows.parallelism.max(axis=1)], float)
        for row, (slots, until_s) in self._left.items():
            paid[row] += max(count(slots) - paid[row], 0.0) * (until_s - self.now_s + window_s) / window_s
        for row, request in self.rows.requests.items():
            paid[row] = max(paid[row], count(int(request.target.max())))
        return paid

    def _set_lateness(self, flows: WindowFlows, index: Ints, backlog: Floats) -> None:
        """Set for how long some rows are late and how much they lag; ``backlog`` as in :class:`StepPath`."""
        cadence = self.setting.cadence
        oldest_s = self._arrivals.find_oldest_age_s(backlog[:, 1:], self.window * cadence.steps)
        flows.late_s[index] = cadence.step_s * (oldest_s > self.setting.lag_target_s).sum(axis=1)
        means = 0.5 * (backlog[:, 1:] + backlog[:, :-1])
        flows.lag_record_s[index] = cadence.step_s * means.sum(axis=(1, 2))

    def _observe(self, flows: WindowFlows, capacity: Floats) -> WindowMetrics:
        """Return what the window that has just ended shows of all rows."""
        rows, window, cadence = self.rows, self.window - 1, self.setting.cadence
        noise = self._measured_factors[self.seed_of_row, window]
        waiting = np.full(capacity.shape, np.nan)
        waiting[:, self._sources] = rows.backlog
        arrived = np.where(self._is_source, self._arrivals.mean_load_per_s[window], np.nan)
        with np.errstate(divide="ignore", invalid="ignore"):
            age_s = np.where(arrived > 0.0, waiting / arrived, 0.0)
            age_s += fetch_wait_s(self._fetch_delay_s, flows.busy)[:, None]
            measured = np.where(flows.busy > 0.0, capacity, np.nan)
        idle, busy = np.maximum(flows.up - flows.busy - flows.backpressured, 0.0), flows.busy
        if self._waits_in_poll.any():
            busy, idle = busy + np.where(self._waits_in_poll, idle, 0.0), np.where(self._waits_in_poll, 0.0, idle)
            measured = np.where(
                self._waits_in_poll & (busy > 0.0), flows.load_per_s / np.maximum(busy, 1e-12), measured
            )
        settled = rows.down_until + self.setting.disturbances.settle_s
        return WindowMetrics(
            parallelism=rows.parallelism.copy(),
            in_per_s=flows.load_per_s,
            true_in_per_s=measured * noise,
            busy=busy,
            backpressured=flows.backpressured,
            idle=idle,
            backlog=waiting,
            latency_ms=np.where(self._is_source, 1000.0 * age_s, np.nan),
            disturbed=np.asarray((rows.down_from < self.now_s) & (settled > window * cadence.window_s)),
            late_s=flows.late_s,
            lag_record_s=flows.lag_record_s,
            paid=self._compute_paid(),
            ran=np.asarray(flows.up[:, 0] >= 1.0),
            arrived_per_s=arrived,
        )
