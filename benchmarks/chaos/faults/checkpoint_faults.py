"""Checkpoints, savepoints and the job itself: what Flink waits for, and what a rescale may do to a job."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from benchmarks.chaos.scene import Fault, Scene
from benchmarks.waiting import wait_until
from lab.local_flink.load import ENRICH

GROUP = "checkpoints"
_SNAPSHOT_MS = 12_000  # a savepoint that takes so long is met by a tick
_FAILS_S, _RUNS_S = 20.0, 120.0


@contextmanager
def take_savepoint_before(scene: Scene) -> Iterator[None]:
    """Ask for a savepoint that takes long, and plan a step meanwhile: it waits, and the savepoint is completed."""
    world, jobs = scene.world, scene.world.jobs
    with jobs.behaving(scene.job, snapshot_ms=_SNAPSHOT_MS):
        savepoint = jobs.begin_savepoint(scene.job)
        wait_until(lambda: jobs.shows_savepoint(scene.job), _RUNS_S, "the savepoint has begun", every_s=0.1)
        with world.silence(scene.job, 0.0, "a savepoint is in progress"):
            yield
            scene.hit()
            _wait_for_savepoint(scene, savepoint)


@contextmanager
def take_savepoint_meanwhile(scene: Scene) -> Iterator[None]:
    """Ask for a savepoint when a request has just left: Flink has both."""
    yield
    scene.wait_for_put()
    scene.hit()
    try:
        _wait_for_savepoint(scene, scene.world.jobs.begin_savepoint(scene.job), is_own=False)
    except Exception as error:  # Flink may be between two runs of the job
        scene.notes.append(f"no savepoint: {type(error).__name__}")


def _wait_for_savepoint(scene: Scene, savepoint: str, *, is_own: bool = True) -> None:
    def has_ended() -> bool:
        return scene.world.jobs.savepoint_state(scene.job, savepoint)[0] == "COMPLETED"

    wait_until(has_ended, _RUNS_S, "the savepoint has ended")
    cause = scene.world.jobs.savepoint_state(scene.job, savepoint)[1]
    scene.notes.append(f"savepoint {cause or 'completed'}")
    if cause and is_own:
        scene.accuse("no request destroys a savepoint", cause)


@contextmanager
def switch_checkpoints_off(scene: Scene) -> Iterator[None]:
    """Deploy the job without checkpoints before a step: a rescale would lose its state."""
    world, jobs = scene.world, scene.world.jobs
    parallelism = jobs.requested(scene.job)[ENRICH]
    jobs.cancel(scene.job)
    jobs.submit(scene.job, parallelism, checkpoints=False)
    scene.after.callback(lambda: _deploy_again(scene, parallelism))
    scene.after.enter_context(world.silence(scene.job, 0.0, "checkpoints are off"))
    wait_until(lambda: world.log.of_job(scene.job, scene.began_s), _RUNS_S, "the controller has seen the job")
    yield
    scene.hit()


@contextmanager
def fail_checkpoints(scene: Scene) -> Iterator[None]:
    """Let the job's checkpoints fail for a while, and plan a fall meanwhile: it would replay what they lack."""
    world, jobs = scene.world, scene.world.jobs
    scene.parallelism = max(1, jobs.requested(scene.job)[ENRICH] - 1) if _is_large(scene) else scene.parallelism
    is_fall = _is_large(scene)
    within_s = _RUNS_S + world.conditions.checkpoint_every_s
    wait_until(lambda: jobs.checkpoint_counts(scene.job)["completed"] > 0, within_s, "a checkpoint is completed")
    with jobs.breaking_checkpoints(scene.job):
        failed = jobs.checkpoint_counts(scene.job)["failed"]
        wait_until(lambda: jobs.checkpoint_counts(scene.job)["failed"] > failed, within_s, "a checkpoint has failed")
        since_s = time.time()
        yield
        scene.hit()
        scene.pause(_FAILS_S, _FAILS_S + 4)
        sent = [put for put in world.proxy.puts if put.job_id == scene.job_id and put.received_s > since_s]
        if is_fall and sent:
            scene.accuse("no saving is sent while checkpoints fail", f"{len(sent)} requests")


def _is_large(scene: Scene) -> bool:
    return scene.world.jobs.requested(scene.job)[ENRICH] > 1


@contextmanager
def fail_after_rescale(scene: Scene) -> Iterator[None]:
    """Let the job fail again and again at the step's parallelism: it has to run as before, soon."""
    world, jobs = scene.world, scene.world.jobs
    before = jobs.requested(scene.job)[ENRICH]
    # What failed is not tried again until a person lifts it, who has deployed a job that does not fail.
    scene.after.callback(lambda: _deploy_again(scene, before))
    with jobs.behaving(scene.job, fail_at_parallelism=scene.parallelism):
        yield
        scene.wait_for_put()
        if not scene.is_open():
            return
        scene.hit()
        sent_s = time.time()
        within_s = _RUNS_S + world.conditions.wait_s
        wait_until(lambda: not jobs.running(scene.job), within_s, "the job fails", every_s=0.2)
        failed_s = time.time()
        wait_until(lambda: jobs.running(scene.job).get(ENRICH) == before, within_s, "the job runs as before")
        down_s = time.time() - failed_s
        scene.notes.append(f"failed {failed_s - sent_s:.0f} s after the request, back {down_s:.0f} s later")


def _deploy_again(scene: Scene, parallelism: int) -> None:
    jobs = scene.world.jobs
    jobs.cancel(scene.job)
    jobs.submit(scene.job, parallelism)
    scene.world.wait_for_ticks(2)  # the controller has seen it, and holds it: the next fault waits for the end of that
    scene.world.lift_blocks(scene.job)


FAULTS = (
    Fault("savepoint in progress", GROUP, take_savepoint_before),
    Fault("savepoint asked for while a request is in flight", GROUP, take_savepoint_meanwhile),
    Fault("checkpoints switched off", GROUP, switch_checkpoints_off, ("refused: *checkpoint*",)),
    Fault("checkpoints fail for a while", GROUP, fail_checkpoints, ("confirmed*", "refused: *checkpoint*")),
    Fault("rescale that makes the job fail", GROUP, fail_after_rescale, ("rolled back", "refused: blocked_target")),
)
