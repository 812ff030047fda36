"""When jobs stop and come back: failures at drawn times, rescales after a decision and a checkpoint."""

from __future__ import annotations

import numpy as np

from lab.simulation.fleet import Fleet
from lab.simulation.randomness import failure_times_s, job_generator
from lab.simulation.state import FleetState, Restart, RestartKind, begin_restart
from lab.simulation.step import work_until
from models.arrays import Bools, Floats, Ints

TURN_S = 240.0


class RestartSchedule:
    """Begins the restarts of a fleet and remembers them.

    Controllers decide about one job after the other, each at its own time.  A rescale begins when its
    checkpoint is complete, within one checkpoint interval; a failure before that drops the request.

    Args:
        fleet: the jobs.
        duration_s: length of the run.
        seed: of the run.
    """

    def __init__(self, fleet: Fleet, duration_s: float, seed: int) -> None:
        self._fleet = fleet
        self._draws = [job_generator(seed, spec.name, "downtime") for spec in fleet.specs]
        self._turn_s = [float(draws.uniform(0.0, TURN_S)) for draws in self._draws]
        pairs = [
            (float(at), job) for job, spec in enumerate(fleet.specs) for at in failure_times_s(spec, duration_s, seed)
        ]
        self._failures = sorted(pairs, reverse=True)
        self._asked: dict[int, tuple[float, Ints]] = {}
        self._restarts: list[Restart] = []

    @property
    def restarts(self) -> tuple[Restart, ...]:
        """What happened so far, in order of time."""
        return tuple(sorted(self._restarts, key=lambda restart: (restart.down_from_s, restart.job)))

    def ask(self, state: FleetState, target: Ints, up: Bools) -> None:
        """Ask for a rescale of every running job whose wanted parallelism (J, O) differs from the current one."""
        wanted = np.where(self._fleet.present, np.clip(target, 1, self._fleet.p_max), 0)
        for job in np.flatnonzero(up & (wanted != state.parallelism).any(axis=1)).tolist():
            if job not in self._asked:
                wait_s = float(self._draws[job].uniform(1.0, self._fleet.interval_s[job]))
                self._asked[job] = (state.time_s + self._turn_s[job] + wait_s, wanted[job])

    def begin(self, state: FleetState, step_s: float, rate_per_s: Floats, noise: Floats) -> None:
        """Begin what falls into the next step; a job that is down does not fail again.

        Args:
            state: a job that stops has worked until then.
            step_s: length of the step.
            rate_per_s: (J, O) of the step, as of :func:`lab.simulation.step.advance`.
            noise: (J, O) the same.
        """
        end = state.time_s + step_s
        due: list[tuple[int, RestartKind, float, Ints]] = []
        while self._failures and self._failures[-1][0] < end:
            at, job = self._failures.pop()
            if state.time_s >= state.down_until[job]:
                self._asked.pop(job, None)
                due.append((job, RestartKind.FAILURE, max(at, state.time_s), state.parallelism[job].copy()))
        for job in [job for job, (at, _) in self._asked.items() if at < end]:
            at, target = self._asked.pop(job)
            due.append((job, RestartKind.RESCALE, max(at, state.time_s), target))
        if due:
            work_until(self._fleet, state, {job: at for job, _, at, _ in due}, rate_per_s, noise)
        for job, kind, at, target in due:
            self._begin(state, job, kind, at, target)

    def _begin(self, state: FleetState, job: int, kind: RestartKind, at_s: float, target: Ints) -> None:
        noise = float(self._draws[job].normal(0.0, self._fleet.specs[job].downtime_noise))
        self._restarts.append(begin_restart(self._fleet, state, job, kind, at_s=at_s, target=target, noise=noise))
