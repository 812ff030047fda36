"""Daedalus' knowledge of a job, and how windows enter it."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from lab.policies.daedalus.capacity_regression import CapacityLine
from lab.policies.daedalus.load_forecast import weighted_error
from lab.policies.job_windows import PolicyWindows

_MAX_LOADS = 288


@dataclass(frozen=True, slots=True)
class DaedalusMemory:
    """Memory of a job.

    Attributes:
        read_until_s: end of the last window that was read, epoch seconds; None before the first.
        lines: of the scale-outs that ran, by workers.
        load_per_s: of the latest windows, oldest first; one whose load is not known has that of the one before.
        waiting: records of the backlog at the end of the last window.
        expected: a forecast by differences that is to be judged when its windows have come; empty without one.
        windows_since: that came since it was made.
        error: WAPE of the last forecast that was judged.
        workers: that ran at the last evaluation; None before the first.
        asked_s: when other workers were last asked for.
        changed_s: when those were asked for that came last.
    """

    read_until_s: int | None = None
    lines: tuple[CapacityLine, ...] = ()
    load_per_s: tuple[float, ...] = ()
    waiting: float = 0.0
    expected: tuple[float, ...] = ()
    windows_since: int = 0
    error: float = 0.0
    workers: int | None = None
    asked_s: int | None = None
    changed_s: int | None = None

    def meet(self, workers: int, now_s: int) -> DaedalusMemory:
        """Return the memory of a job that runs on so many workers now: what was asked for may not have come."""
        if self.workers is None or workers == self.workers:
            return replace(self, workers=workers)
        return replace(self, workers=workers, changed_s=now_s if self.asked_s is None else self.asked_s)

    def learn(self, windows: PolicyWindows) -> DaedalusMemory:
        """Return the memory after windows that it has not read yet."""
        if not len(windows):
            return self
        lines, loads = {line.workers: line for line in self.lines}, list(self.load_per_s)
        for at in np.flatnonzero(windows.is_steady):
            workers = int(windows.workers[at])
            line = lines.get(workers, CapacityLine(workers))
            lines[workers] = line.add(float(windows.use[at]), float(windows.taken_per_s[at]))
        for load in windows.arrived_per_s.tolist():
            loads += [load] if np.isfinite(load) else loads[-1:]
        known = replace(
            self,
            read_until_s=int(windows.end_s[-1]),
            lines=tuple(lines[workers] for workers in sorted(lines)),
            load_per_s=tuple(loads[-_MAX_LOADS:]),
            waiting=float(windows.waiting[-1]),
            windows_since=self.windows_since + len(windows),
        )
        return known._judge_forecast()

    def _judge_forecast(self) -> DaedalusMemory:
        """Return the memory with the error of the forecast, where all of its windows have come."""
        steps, first = len(self.expected), len(self.load_per_s) - self.windows_since
        if not steps or not steps <= self.windows_since <= len(self.load_per_s):
            return self
        error = weighted_error(np.array(self.expected), np.array(self.load_per_s[first : first + steps]))
        return replace(self, expected=(), error=error)
