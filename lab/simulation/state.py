"""What changes while a fleet runs, and what a restart does to it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from lab.simulation.fleet import Fleet
from models.arrays import Bools, Floats, Ints

NEVER = -1.0e18
RETAINED_CHECKPOINTS = 10  # as many as Flink keeps


class RestartKind(StrEnum):
    """Why a job stopped and came back."""

    RESCALE = "rescale"
    FAILURE = "restart"


@dataclass(frozen=True, slots=True)
class Restart:
    """One restart of one job; times in seconds of simulation.

    Attributes:
        job: index in the fleet.
        checkpoint_age_s: age of the records that are processed again, 0 for a rescale without a barrier delay.
        before, after: (O,) parallelism.
    """

    job: int
    kind: RestartKind
    down_from_s: float
    down_until_s: float
    checkpoint_age_s: float
    state_bytes: float
    before: Ints
    after: Ints


@dataclass(slots=True)
class FleetState:
    """Arrays that :func:`lab.simulation.step.advance` updates in place.

    Conservation: ``emitted - replayed + backlog == due_records`` for every source at every time.

    Attributes:
        time_s: now.
        parallelism: (J, O), 0 for padding.
        due_records, emitted, replayed, backlog: (J, O) records of sources as they take them in, whatever leaves their
            chains; the first three are totals since the start.
        buffered: (J, O) records of the backlog that sources took in and that wait in buffers.
        held, fired: (J, O) records that an operator which emits in bursts took in: gathered for the next burst, and
            fired but not emitted yet.
        records_in, records_out: (J, O) Flink's counters of a vertex since the job last started.
        records_taken: (J, O) records that it took in since then, whatever counts them.
        busy_s, backpressured_s, idle_s: (J, O) seconds that a mean subtask spent so since the job last started.
        transit_s: (J,) how old what waits in buffers is when it is processed: so long does a barrier wait.
        down_from, down_until: (J,) last downtime, :data:`NEVER` before the first.
        trigger_next: (J,) when the next checkpoint is triggered.
        pending_trigger, pending_done: (J,) the checkpoint under way; pending_position: (J, O) net emitted by then, of
            an operator that emits in bursts what it has gathered.
        done_position: (J, O) the same at the trigger of the last completed one.
        checkpoints: (J, 10, 3) the last completed ones, newest first: trigger, duration, bytes.
        completed: (J,) number of completed checkpoints.
        restarts, failures: (J,) numbers of restarts of any kind and of failures.
        state_bytes: (J,).
    """

    time_s: float
    parallelism: Ints
    due_records: Floats
    emitted: Floats
    replayed: Floats
    backlog: Floats
    buffered: Floats
    held: Floats
    fired: Floats
    records_in: Floats
    records_out: Floats
    records_taken: Floats
    busy_s: Floats
    backpressured_s: Floats
    idle_s: Floats
    transit_s: Floats
    down_from: Floats
    down_until: Floats
    trigger_next: Floats
    pending_trigger: Floats
    pending_done: Floats
    pending_position: Floats
    done_position: Floats
    checkpoints: Floats
    completed: Ints
    restarts: Ints
    failures: Ints
    state_bytes: Floats

    @classmethod
    def running(cls, fleet: Fleet, parallelism: Ints, rate_per_s: Floats) -> FleetState:
        """Return a fleet that has run for long at the given parallelism (J, O) and source rates (J, O)."""
        jobs, width = fleet.shape
        grid = {name: np.zeros((jobs, width)) for name in _GRIDS}
        row = {name: np.zeros(jobs) for name in _ROWS}
        state = cls(
            time_s=0.0,
            parallelism=np.where(fleet.present, np.clip(parallelism, 1, fleet.p_max), 0).astype(np.int64),
            checkpoints=np.zeros((jobs, RETAINED_CHECKPOINTS, 3)),
            completed=np.zeros(jobs, dtype=np.int64),
            restarts=np.zeros(jobs, dtype=np.int64),
            failures=np.zeros(jobs, dtype=np.int64),
            **grid,
            **row,
        )
        state.down_from[:], state.down_until[:], state.pending_done[:] = NEVER, NEVER, np.inf
        state.trigger_next[:] = fleet.interval_s
        state.state_bytes[:] = rate_per_s.sum(axis=1) * fleet.bytes_per_record * fleet.retention_s
        state.checkpoints[..., 0] = -fleet.interval_s[:, None] * np.arange(RETAINED_CHECKPOINTS)
        state.checkpoints[..., 1] = compute_checkpoint_duration(fleet, state)[:, None]
        state.checkpoints[..., 2] = state.state_bytes[:, None]
        return state

    def complete_checkpoint(self, jobs: Ints, trigger_s: Floats, duration_s: Floats) -> None:
        """Put a checkpoint of each of some jobs before those that are kept."""
        self.checkpoints[jobs, 1:] = self.checkpoints[jobs, :-1]
        self.checkpoints[jobs, 0] = np.stack([trigger_s, duration_s, self.state_bytes[jobs]], axis=-1)
        self.completed[jobs] += 1

    def is_up(self, at_s: float) -> Bools:
        """Return (J,): whether each job runs at a time not before its last downtime began."""
        return (at_s < self.down_from) | (at_s >= self.down_until)


# They restart at zero with the job.
COUNTERS = ("records_in", "records_out", "records_taken", "busy_s", "backpressured_s", "idle_s")
_GRIDS = (
    "due_records",
    "emitted",
    "replayed",
    "backlog",
    "buffered",
    "held",
    "fired",
    *COUNTERS,
    "pending_position",
    "done_position",
)
_ROWS = (
    "transit_s",
    "down_from",
    "down_until",
    "trigger_next",
    "pending_trigger",
    "pending_done",
    "state_bytes",
)


def compute_downtime(fleet: Fleet, job: int, state_bytes: float, kind: RestartKind, noise: float) -> float:
    """Return D of one restart: base + state / restore rate (+ detection for a failure), times (1 + noise)."""
    spec = fleet.specs[job]
    planned = spec.restart_base_s + state_bytes / spec.restore_bytes_per_s
    return max(1.0, (planned + (spec.detection_s if kind is RestartKind.FAILURE else 0.0)) * (1.0 + noise))


def begin_restart(
    fleet: Fleet, state: FleetState, job: int, kind: RestartKind, *, at_s: float, target: Ints, noise: float
) -> Restart:
    """Stop one job and schedule its return with parallelism ``target`` (O,).

    A failure rewinds the sources, and what windows have gathered, to the last completed checkpoint; a rescale waits for
    a checkpoint of its own (Flink's rescale-on-checkpoint), so that nothing is replayed but what was emitted while its
    barrier was under way: of a job with a barrier delay what was emitted since the last checkpoint was triggered.
    Counters restart at zero in both cases.
    """
    before, age_s = state.parallelism[job].copy(), 0.0
    if kind is RestartKind.FAILURE or fleet.barrier_delay_s[job] > 0:
        in_bursts = fleet.in_bursts[job]
        taken = state.emitted[job] - state.replayed[job]
        rewind = np.where(in_bursts, 0.0, np.maximum(taken - state.done_position[job], 0.0))
        state.held[job], state.fired[job] = np.where(in_bursts, state.done_position[job], 0.0), 0.0
        state.replayed[job] += rewind
        state.backlog[job] += rewind
        state.failures[job] += kind is RestartKind.FAILURE
        age_s = at_s - float(state.checkpoints[job, 0, 0])
    else:
        gathered = state.held[job] + state.fired[job]
        taken = state.emitted[job] - state.replayed[job]
        state.done_position[job] = np.where(fleet.in_bursts[job], gathered, taken)
        taken_s = compute_checkpoint_duration(fleet, state)[[job]]
        state.complete_checkpoint(np.array([job]), at_s - taken_s, taken_s)
    duration = compute_downtime(fleet, job, float(state.state_bytes[job]), kind, noise)
    state.parallelism[job] = np.where(fleet.present[job], np.clip(target, 1, fleet.p_max[job]), 0)
    state.down_from[job], state.down_until[job] = at_s, at_s + duration
    state.trigger_next[job], state.pending_done[job] = at_s + duration + fleet.interval_s[job], np.inf
    state.buffered[job], state.transit_s[job] = 0.0, 0.0  # what was in buffers is read again
    for counter in COUNTERS:
        getattr(state, counter)[job] = 0.0
    state.restarts[job] += 1
    return Restart(
        job,
        kind,
        at_s,
        at_s + duration,
        age_s,
        float(state.state_bytes[job]),
        before,
        state.parallelism[job].copy(),
    )


def compute_checkpoint_duration(fleet: Fleet, state: FleetState) -> Floats:
    """Return (J,) how long a checkpoint takes now: at most half the interval to be written, and the barrier's wait."""
    written_s = np.minimum(0.4 + state.state_bytes / fleet.checkpoint_rate, 0.5 * fleet.interval_s)
    return written_s + fleet.barrier_delay_s + state.transit_s
