"""One job's samples read as Flink would tell them: states, times in the calendar, totals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from include.flink.endpoints import JOB_METRICS
from lab.simulation.fleet import Fleet
from lab.simulation.rest.events import (
    CheckpointEvent,
    TaskManagerLoss,
    build_checkpoints_reply,
    build_job_metrics_reply,
)
from lab.simulation.rest.job_reply import JobDetails
from lab.simulation.samples import SampledMetrics
from lab.simulation.state import NEVER, Restart, RestartKind

CANCELLING_SHARE = 0.3  # of a downtime: tasks stop first, then the job waits for new ones
CREATED_BEFORE_RUNNING_MS = 420
FIRST_START_MS = 4200


@dataclass(frozen=True, slots=True)
class TimeOrigin:
    """Where the simulation's time lies in the calendar.

    Attributes:
        cluster: its name.
        epoch_ms: epoch milliseconds of simulation time 0.
        submitted_ms: per job, when it was first submitted.
    """

    cluster: str
    epoch_ms: int
    submitted_ms: tuple[int, ...]

    def ms(self, at_s: float) -> int:
        """Return epoch milliseconds of a time in the simulation."""
        return self.epoch_ms + round(at_s * 1000)


class JobTimeline:
    """One job of some samples; ``restarts`` are those of the whole fleet."""

    def __init__(
        self, fleet: Fleet, samples: SampledMetrics, restarts: Sequence[Restart], origin: TimeOrigin, job: int
    ) -> None:
        self._spec, self._samples, self._origin, self._job = fleet.specs[job], samples, origin, job
        self._failures = [one for one in restarts if one.job == job and one.kind is RestartKind.FAILURE]
        self._at: list[float] = samples.at_s.tolist()
        self._down_from: list[float] = samples.down_from[:, job].tolist()
        self._down_until: list[float] = samples.down_until[:, job].tolist()
        width = len(self._spec.operators)
        self._parallelism: list[list[int]] = samples.parallelism[:, job, :width].tolist()

    def state(self, poll: int) -> str:
        """Return Flink's job state."""
        at, start, end = self._at[poll], self._down_from[poll], self._down_until[poll]
        if not start <= at < end:
            return "RUNNING"
        return "RESTARTING" if at < start + CANCELLING_SHARE * (end - start) else "CREATED"

    def running_for_s(self, poll: int) -> float:
        """Return seconds since the job last came back."""
        return self._at[poll] - self._down_until[poll]

    def details(self, poll: int, at_ms: int) -> JobDetails:
        """Return what ``/jobs/:jid`` tells.

        Flink's adaptive scheduler writes new times for CREATED and RUNNING at every restart.  Deviation: it leaves
        RESTARTING at 0 for a restart of a few seconds; polls could then not tell how long
        the job was down, so the time is given here as Flink's default scheduler does.
        """
        submitted, from_s = self._origin.submitted_ms[self._job], self._down_from[poll]
        running_ms = self._running_ms(poll)
        return JobDetails(
            now_ms=at_ms,
            duration_ms=at_ms - submitted,
            running_for_ms=at_ms - running_ms,
            state=self.state(poll),
            submitted_ms=submitted,
            created_ms=running_ms - CREATED_BEFORE_RUNNING_MS,
            running_ms=running_ms,
            restarting_ms=self._origin.ms(from_s) if from_s > NEVER else 0,
            parallelism=self._parallelism[poll],
        )

    def _running_ms(self, poll: int) -> int:
        """Return when the job last became RUNNING; while it is down, when it first did."""
        until = self._down_until[poll]
        if until > NEVER and self.state(poll) == "RUNNING":
            return self._origin.ms(until)
        return self._origin.submitted_ms[self._job] + FIRST_START_MS

    def _checkpoints(self, poll: int) -> list[CheckpointEvent]:
        """Return the last completed checkpoints, newest first, numbered since the job was submitted."""
        origin, job, interval_s = self._origin, self._job, self._spec.checkpoint_interval_s
        before = (origin.epoch_ms - origin.submitted_ms[job]) // round(1000 * interval_s)
        newest = int(before + self._samples.completed[poll, job])
        return [
            CheckpointEvent(newest - age, origin.ms(trigger), max(1, round(1000 * duration)), int(size))
            for age, (trigger, duration, size) in enumerate(self._samples.checkpoints[poll, job].tolist())
            if newest > age
        ]

    def checkpoints(self, poll: int, job_id: str) -> dict[str, object]:
        """Return the reply of ``/jobs/:jid/checkpoints``."""
        retained, until = self._checkpoints(poll), self._down_until[poll]
        restored = None
        if until > NEVER and self.state(poll) == "RUNNING":
            since_s = float(self._samples.checkpoints[poll, self._job, 0, 0]) - until
            done = max(0, round(since_s / self._spec.checkpoint_interval_s))
            restored = (retained[0].number - done, self._origin.ms(until))
        return build_checkpoints_reply(job_id, retained, restored, sum(self._parallelism[poll]))

    def job_metrics(self, poll: int, at_ms: int) -> list[dict[str, str]]:
        """Return the reply of ``/jobs/:jid/metrics`` for ``JOB_METRICS``; times in a state are 0 outside of it."""
        samples, job = self._samples, self._job
        last, running = self._checkpoints(poll)[0], self.state(poll) == "RUNNING"
        up_ms = at_ms - self._running_ms(poll) if running else 0
        restarts, failures = int(samples.restarts[poll, job]), int(samples.failures[poll, job])
        known = {
            "numRestarts": restarts,
            "numRescales": restarts - failures,
            "uptime": up_ms,
            "runningTime": up_ms,
            "lastCheckpointDuration": last.duration_ms,
            "lastCheckpointSize": last.state_bytes,
            "lastCheckpointRestoreTimestamp": self._origin.ms(self._down_until[poll]) if restarts and running else -1,
            "numberOfCompletedCheckpoints": last.number,
        }
        return build_job_metrics_reply({name: known.get(name, 0) for name in JOB_METRICS})

    def failed_between(self, before: int, poll: int) -> bool:
        """Whether a failure happened between two polls; not known, and so no, before the first of these samples."""
        failures = self._samples.failures[:, self._job]
        return bool(before >= 0 and failures[poll] > failures[before])

    def failures(self, poll: int) -> list[TaskManagerLoss]:
        """Return the failures up to a poll, in order of time; which task noticed it follows from its time."""
        result = []
        for restart in self._failures:
            if restart.down_from_s <= self._at[poll]:
                draw = int(restart.down_from_s)
                index = draw % len(self._spec.operators)
                p = int(restart.before[index])
                host = f"10.0.{self._job % 250}.{draw % 200 + 10}:6121"
                at_ms = self._origin.ms(restart.down_from_s)
                result.append(TaskManagerLoss(at_ms, self._spec.operators[index].name, draw % p + 1, p, host))
        return result
