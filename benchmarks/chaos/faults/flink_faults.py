"""Faults of Flink's processes and jobs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress

from benchmarks.chaos.run_settings import PARALLELISM_MAX
from benchmarks.chaos.scene import Fault, Scene
from benchmarks.chaos.world import TASK_MANAGERS
from benchmarks.waiting import NotReachedError, wait_until
from lab.local_flink.load import ENRICH

GROUP = "Flink"
_WITHOUT_SLOTS_S, _MISSED_S = 45.0, 60.0
_NO_ROOM = ("refused: no_free_slots", "refused: not_filled", "refused: blocked_target")


@contextmanager
def kill_task_manager(scene: Scene) -> Iterator[None]:
    """Kill one TaskManager of two at any moment, and start it again."""
    cluster, number = scene.world.cluster, scene.rng.randrange(TASK_MANAGERS)
    yield
    scene.pause(0.0, 8.0)
    scene.hit()
    cluster.kill_taskmanager(number)
    scene.pause(0.0, 6.0)
    cluster.start_taskmanager(number)


@contextmanager
def kill_job_manager(scene: Scene) -> Iterator[None]:
    """Kill the JobManager at any moment and start it again; a person submits its jobs anew."""
    world = scene.world
    asked = {job: world.jobs.requested(job).get(ENRICH, 1) for job in world.jobs.ids}
    yield
    scene.pause(0.0, 8.0)
    scene.hit()
    world.cluster.kill_jobmanager()
    scene.pause(0.0, 3.0)
    world.cluster.start_jobmanager()
    world.jobs.submit_all(asked if scene.rng.random() < 0.5 else None)


@contextmanager
def take_slots_before(scene: Scene) -> Iterator[None]:
    """Take the slots of one TaskManager away before a rise is due; they come back later."""
    cluster, number = scene.world.cluster, scene.rng.randrange(TASK_MANAGERS)
    _want_rise(scene)
    cluster.kill_taskmanager(number)
    remaining = scene.world.conditions.slots * (TASK_MANAGERS - 1)
    wait_until(lambda: cluster.client.overview()["slots-total"] == remaining, _MISSED_S, "the TaskManager is missed")
    yield
    scene.hit()
    _give_back(scene, number)


@contextmanager
def take_slots_meanwhile(scene: Scene) -> Iterator[None]:
    """Take the slots of one TaskManager away while a request is in flight; they come back later."""
    cluster, number = scene.world.cluster, scene.rng.randrange(TASK_MANAGERS)
    _want_rise(scene)
    yield
    scene.wait_until_recorded()
    scene.hit()
    cluster.kill_taskmanager(number)
    _give_back(scene, number)


def _want_rise(scene: Scene) -> None:
    if scene.world.jobs.requested(scene.job).get(ENRICH, PARALLELISM_MAX) < PARALLELISM_MAX:
        scene.parallelism = PARALLELISM_MAX


def _give_back(scene: Scene, number: int) -> None:
    """Start the TaskManager again when the controller has come to an end without it, or after a while."""
    with suppress(NotReachedError):
        within_s = _WITHOUT_SLOTS_S + scene.world.conditions.wait_s
        result = wait_until(scene.outcome, within_s, "an end without the slots")
        scene.notes.append(f"without them {result}")
    scene.world.cluster.start_taskmanager(number)


@contextmanager
def deploy_anew(scene: Scene) -> Iterator[None]:
    """Cancel the job at any moment and submit it again, with a parallelism of its own."""
    jobs, parallelism = scene.world.jobs, scene.rng.randint(1, PARALLELISM_MAX)
    yield
    scene.pause(0.0, 8.0)
    scene.hit()
    jobs.cancel(scene.job)
    jobs.submit(scene.job, parallelism)


FAULTS = (
    Fault("TaskManager killed and started again", GROUP, kill_task_manager, ("confirmed*", "rolled back", *_NO_ROOM)),
    Fault("JobManager killed, jobs submitted again", GROUP, kill_job_manager, ("confirmed*", "held*", "refused*")),
    Fault("slots taken away before a step", GROUP, take_slots_before, ("confirmed*", "rolled back", *_NO_ROOM)),
    Fault(
        *("slots taken away while a request is in flight", GROUP, take_slots_meanwhile),
        expected=("confirmed*", "rolled back", "held*", *_NO_ROOM),
    ),
    Fault("job cancelled and deployed anew", GROUP, deploy_anew, ("confirmed*", "held*", "refused*")),
)
