"""What befalls the settings and the lake while the controller runs."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from benchmarks.chaos.jobs import PLANNED
from benchmarks.chaos.run_settings import CLUSTER, PARALLELISM_MAX
from benchmarks.chaos.scene import Fault, Inject, Scene
from benchmarks.chaos.world import World
from include.control.holds import Hold, HoldStore
from include.control.small_objects import object_name
from include.tables import PLANS
from lab.local_flink.load import ENRICH

GROUP = "settings"
NOBODY = "prdo/nobody"


def while_it_lasts(enter: Callable[[World], AbstractContextManager[None]], why: str) -> Inject:
    """Return a fault of the whole cluster, from before a step is planned until some ticks later: nothing is sent."""

    @contextmanager
    def inject(scene: Scene) -> Iterator[None]:
        world = scene.world
        with enter(world), world.silence(None, why=why):
            time.sleep(2.0)  # so much counts as on its way
            yield
            scene.hit()
            scene.pause(8.0, 14.0)

    return inject


@contextmanager
def _holding_nobody(world: World) -> Iterator[None]:
    holds = HoldStore(str(world.lake))
    holds.write(Hold(NOBODY, "the fault harness", by="a person", since_s=time.time()))
    try:
        yield
    finally:
        holds.release(object_name(NOBODY))


@contextmanager
def lift_hold_for_a_moment(scene: Scene) -> Iterator[None]:
    """Save a settings file without a job's hold, and the right one at once: what loosens has to stand for a while."""
    world, settings = scene.world, scene.world.settings
    with settings.holding(scene.job), world.silence(scene.job, why="a hold is lifted by mistake"):
        time.sleep(2.0)
        yield
        scene.hit()
        for _ in range(3):
            scene.pause(3.0, 6.0)
            with settings.lifting(scene.job):
                time.sleep(0.8)
    scene.world.wait_for_ticks(2)


@contextmanager
def tighten_meanwhile(scene: Scene) -> Iterator[None]:
    """Allow the job fewer slots when its rise is recorded, for a while."""
    scene.parallelism = PARALLELISM_MAX if scene.world.jobs.requested(scene.job)[ENRICH] < PARALLELISM_MAX else 1
    yield
    scene.wait_until_recorded()
    scene.hit()
    with scene.world.settings.bounded(max(1, PARALLELISM_MAX - 1)):
        scene.pause(6.0, 12.0)


@contextmanager
def share_budget(scene: Scene) -> Iterator[None]:
    """Plan rises of two jobs at once under a budget that one of them fills."""
    world, jobs = scene.world, scene.world.jobs
    other = next(job for job in PLANNED if job != scene.job)
    asked = {job: jobs.requested(job)[ENRICH] for job in jobs.ids}
    scene.parallelism = min(PARALLELISM_MAX, asked[scene.job] + 1) if asked[scene.job] < PARALLELISM_MAX else 1
    budget = sum(asked.values()) + 1
    with world.settings.budgeted(budget):
        time.sleep(2.0)
        world.plan(other, min(PARALLELISM_MAX, asked[other] + 1))
        yield
        scene.hit()
        until_s = time.time() + 15.0 + world.conditions.wait_s
        while time.time() < until_s:
            bounds = [max(jobs.requested(job).values(), default=0) for job in jobs.ids]
            if sum(bounds) > max(budget, sum(asked.values())):
                scene.accuse("the jobs of a cluster are asked for no more than its budget", f"{bounds} of {budget}")
                break
            time.sleep(0.3)


@contextmanager
def remove_leases(scene: Scene) -> Iterator[None]:
    """Remove the folder of the leases, and kill the controller: what it promised has to stand."""
    world = scene.world
    yield
    scene.pause(0.0, 7.0)
    scene.hit()
    shutil.rmtree(world.lake / "ops" / "leases", ignore_errors=True)
    if scene.rng.random() < 0.5:
        world.controllers.kill(world.main)
        world.main = world.controllers.start()


@contextmanager
def damage_plans(scene: Scene) -> Iterator[None]:
    """Leave a file of the plans that cannot be read for a while: what is in flight has to be followed."""
    yield
    scene.pause(0.0, 3.0)
    files = sorted((scene.world.lake / PLANS.relative_path).rglob("*.parquet"), key=_written_s)
    sound = files[-1].read_bytes()
    scene.hit()
    files[-1].write_bytes(sound[: len(sound) // 2])
    try:
        scene.pause(6.0, 12.0)
    finally:
        files[-1].write_bytes(sound)


def _written_s(path: Path) -> float:
    return path.stat().st_mtime


FAULTS = (
    Fault(
        "cluster's section left out of the settings",
        GROUP,
        while_it_lasts(lambda world: world.settings.unnamed(), "the cluster is not named"),
        ("confirmed*", "held*"),
    ),
    Fault(
        "settings file deleted for a while",
        GROUP,
        while_it_lasts(lambda world: world.settings.deleted(), "the settings file is gone"),
        ("confirmed*", "held*"),
    ),
    Fault("a hold lifted for a moment", GROUP, lift_hold_for_a_moment, ("confirmed*", "held*")),
    Fault("fewer slots allowed when a request is recorded", GROUP, tighten_meanwhile, ("confirmed*", "refused*")),
    Fault("two rises under a budget for one", GROUP, share_budget, ("confirmed*", "refused: *budget*")),
    Fault(
        f"a hold on {NOBODY}, which {CLUSTER} does not have",
        "lake",
        while_it_lasts(_holding_nobody, "a hold names what nobody knows"),
        ("confirmed*", "held*"),
    ),
    Fault("folder of the leases removed", "lake", remove_leases, ("confirmed*", "held*")),
    Fault("a file of the plans cut short for a while", "lake", damage_plans, ("confirmed*", "not touched")),
)
