"""Whether records were lost: restarts from checkpoints, and what the sources owe by the clock at the end."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator

from benchmarks.chaos.checkpoint_watch import CheckpointTrail
from benchmarks.chaos.jobs import Jobs
from benchmarks.chaos.waiting import NotReachedError, wait_until
from benchmarks.chaos.world import World
from cli.local_flink.load import LoadOptions, daily_trace
from include.flink.endpoints import vertex_metric_names_path, vertex_metrics_path

_METRICS_AGE_S, _CLOCK_S = 5.0, 1.0
_IN_A_ROW, _OWES_S, _CHECKPOINT_S = 3, 120.0, 60.0


def find_losses(world: World) -> list[str]:
    """Return what points to lost records, one sentence each."""
    return [*_wrong_restores(world), *_no_checkpoints(world), *_wrong_debts(world.jobs)]


def due_after(elapsed_s: float, options: LoadOptions) -> float:
    """Return the records due by a trace: trapezoids between its points, cycle after cycle."""
    points = daily_trace(options.low_per_s, options.high_per_s)
    steps = [
        ((right - left) / options.compression, (here + there) / 2)
        for (left, here), (right, there) in itertools.pairwise(points)
    ]
    due = 0.0
    while elapsed_s > 0:
        for seconds, rate in steps:
            due += rate * min(seconds, max(0.0, elapsed_s))
            elapsed_s -= seconds
    return due


def _wrong_restores(world: World) -> Iterator[str]:
    """Yield restarts that went back to another checkpoint than the newest, or to none."""
    for job_id, trail in world.checkpoints.trails.items():
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
            _wait_for_checkpoint(trail)
        except NotReachedError:
            yield f"{job}: no checkpoint is completed any more"


def _wait_for_checkpoint(trail: CheckpointTrail) -> None:
    before = trail.completed
    wait_until(lambda: trail.completed > before, _CHECKPOINT_S, "a checkpoint")


def _wrong_debts(jobs: Jobs) -> Iterator[str]:
    for job in jobs.ids:
        count = 0

        def is_due(job: str = job) -> bool:
            nonlocal count
            count = count + 1 if _owes_what_is_due(jobs, job) else 0
            return count == _IN_A_ROW

        try:
            wait_until(is_due, _OWES_S, "the debt", every_s=1.0)
        except NotReachedError:
            yield f"{job}: what its source has emitted and what waits is not what its trace says is due"


def _owes_what_is_due(jobs: Jobs, job: str) -> bool:
    """Whether emitted + backlog is what the trace says is due, within the age of the metrics."""
    job_id = jobs.ids[job]
    found = jobs.client.job(job_id)
    (source,) = [vertex["id"] for vertex in found["vertices"] if vertex["name"].startswith("Source")]
    listed = jobs.client.transport.get_json(vertex_metric_names_path(job_id, source))
    pending = [one["id"] for one in listed if one["id"].endswith(".pendingRecords")]
    reply = jobs.client.transport.get_json(vertex_metrics_path(job_id, source, ["numRecordsOut", *pending]))
    sums = {one["id"]: float(one["sum"]) for one in reply}
    elapsed_s = time.time() - found["start-time"] / 1000
    if not pending or set(sums) != {"numRecordsOut", *pending}:
        return False
    options, owed = jobs.all_ids[job_id], sum(sums.values())
    return due_after(elapsed_s - _METRICS_AGE_S, options) <= owed <= due_after(elapsed_s + _CLOCK_S, options)
