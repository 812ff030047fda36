"""Whether records were lost: restarts from checkpoints, and at the end records due, emitted and counted."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from benchmarks.chaos.checkpoint_watch import CheckpointTrail
from benchmarks.chaos.jobs import Jobs
from benchmarks.chaos.world import World
from benchmarks.waiting import NotReachedError, wait_until
from include.flink.endpoints import available, vertex_metric_names_path, vertex_metrics_path
from include.flink.faults import FlinkError
from lab.local_flink.load import AGGREGATE, SOURCE, LoadOptions, due_after

_METRICS_AGE_S, _CLOCK_S = 5.0, 1.0
_ON_THE_WAY_S = 2.0  # of a job that keeps up: between source and state, and between the metrics of the two
_IN_A_ROW, _ADDS_UP_S, _CHECKPOINT_S = 3, 120.0, 60.0


def find_losses(world: World) -> list[str]:
    """Return what points to lost records, one sentence each."""
    with ThreadPoolExecutor() as pool:  # each waits
        waiting = [pool.submit(list, looked(world)) for looked in (_no_checkpoints, _wrong_counts, _no_snapshots)]
        result = [sentence for one in waiting for sentence in one.result()]
    emit_every = {job_id: options.emit_every for job_id, options in world.jobs.all_ids.items()}
    return [
        *find_wrong_restores(world.checkpoints.trails),
        *world.snapshots.find_differences(emit_every),
        *result,
    ]


def find_wrong_restores(trails: Mapping[str, CheckpointTrail]) -> Iterator[str]:
    """Yield restarts that went back to another checkpoint than the newest, or to none."""
    for job_id, trail in trails.items():
        for restore in trail.restores:
            if restore.restored < restore.known:
                yield f"{job_id} restored checkpoint {restore.restored} although {restore.known} was completed"
        yield from _bare_starts(job_id, trail)


def _bare_starts(job_id: str, trail: CheckpointTrail) -> Iterator[str]:
    if trail.first_completed_ms is None:
        return
    later = [at_ms for at_ms in trail.starts_ms[1:] if at_ms > trail.first_completed_ms]
    if later and not trail.restores:
        yield f"{job_id} was started again {len(later)} times and never restored a checkpoint"


def _no_checkpoints(world: World) -> Iterator[str]:
    """Yield jobs that complete no further checkpoint."""
    for job, job_id in world.jobs.ids.items():
        trail = world.checkpoints.trails[job_id]
        try:
            _wait_for_checkpoint(trail, _CHECKPOINT_S + 2 * world.conditions.checkpoint_every_s)
        except NotReachedError:
            yield f"{job}: no checkpoint is completed any more"


def _wait_for_checkpoint(trail: CheckpointTrail, within_s: float) -> None:
    before = trail.completed
    wait_until(lambda: trail.completed > before, within_s, "a checkpoint")


@dataclass(frozen=True, slots=True)
class Counts:
    """Records of a job since it was submitted: state that survives restarts, but for what waits at the source."""

    emitted: float
    pending: float
    counted: float


def _no_snapshots(world: World) -> Iterator[str]:
    """Yield jobs of whose checkpoints no counts can be read any more."""
    within_s = _CHECKPOINT_S + 3 * world.conditions.checkpoint_every_s
    before = {job_id: max(world.snapshots.seen.get(job_id, {0: None})) for job_id in world.jobs.ids.values()}
    for job, job_id in world.jobs.ids.items():

        def is_read(job_id: str = job_id) -> bool:
            return max(world.snapshots.seen.get(job_id, {0: None})) > before[job_id]

        try:
            wait_until(is_read, within_s, "counts of a checkpoint")
        except NotReachedError:
            yield f"{job}: the counts of no checkpoint could be read within {within_s:.0f} s"


def _wrong_counts(world: World) -> Iterator[str]:
    """Yield jobs whose records do not add up; a job has to do so in several polls in a row."""
    jobs = world.jobs
    for job in jobs.ids:
        observed: list[Counts | None] = []
        in_a_row = 0

        def adds_up(job: str = job, observed: list[Counts | None] = observed) -> bool:
            nonlocal in_a_row
            observed[:] = [read_counts(jobs, job)]
            in_a_row = in_a_row + 1 if observed[0] is not None and _adds_up(jobs, job, observed[0]) else 0
            return in_a_row == _IN_A_ROW

        try:
            # a job that is behind has buffers full of records, until its rise came with a checkpoint
            within_s = _ADDS_UP_S + 3 * world.conditions.checkpoint_every_s
            wait_until(adds_up, within_s, "the records add up", every_s=1.0)
        except NotReachedError:
            due = due_after(_age_s(jobs, job), _options(jobs, job))
            yield f"{job}: records do not add up: {observed[0]}, {due:.0f} are due"


def _adds_up(jobs: Jobs, job: str, counts: Counts) -> bool:
    """Whether what was emitted and what waits is due by the trace, and what was emitted is in the state behind it."""
    options, age_s = _options(jobs, job), _age_s(jobs, job)
    owed, on_the_way = counts.emitted + counts.pending, counts.emitted - counts.counted
    is_due = due_after(age_s - _METRICS_AGE_S, options) <= owed <= due_after(age_s + _CLOCK_S, options)
    return is_due and abs(on_the_way) <= _ON_THE_WAY_S * options.high_per_s


def read_counts(jobs: Jobs, job: str) -> Counts | None:
    """Return the counts of a job; None while a restart hides some."""
    try:
        ids = {name: vertex for vertex, name in jobs.names(job).items()}
        source = _sums(jobs, job, ids[SOURCE], ("emittedInAll", "pendingRecords"))
        counted = _sums(jobs, job, ids[AGGREGATE], ("countedInAll",))
        return Counts(source["emittedInAll"], source["pendingRecords"], counted["countedInAll"])
    except (FlinkError, KeyError):
        return None


def _sums(jobs: Jobs, job: str, vertex: str, names: tuple[str, ...]) -> dict[str, float]:
    """Return the sums over subtasks of an operator's metrics."""
    get, job_id = jobs.client.transport.get_json, jobs.ids[job]
    listed = available(names, [one["id"] for one in get(vertex_metric_names_path(job_id, vertex))])
    reply = get(vertex_metrics_path(job_id, vertex, listed)) if listed else []
    return {one["id"].rpartition(".")[2]: float(one["sum"]) for one in reply}


def _options(jobs: Jobs, job: str) -> LoadOptions:
    return jobs.all_ids[jobs.ids[job]]


def _age_s(jobs: Jobs, job: str) -> float:
    return time.time() - float(jobs.client.job(jobs.ids[job])["start-time"]) / 1000
