"""What people do meanwhile."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

from benchmarks.chaos.run_settings import CLUSTER, PARALLELISM_MAX
from benchmarks.chaos.scene import Fault, Inject, Scene
from cli.local_flink.load import ENRICH, SINK
from include.control.holds import Hold, HoldStore
from include.control.small_objects import object_name

GROUP = "person"


def change_job(kind: str) -> Inject:
    """Return a fault: a person asks Flink for more, less or the same, at any moment."""

    @contextmanager
    def inject(scene: Scene) -> Iterator[None]:
        yield
        scene.pause(0.0, 8.0)
        scene.hit()
        jobs = scene.world.jobs
        now = jobs.requested(scene.job)
        if kind == "same":
            wanted = {ENRICH: now[ENRICH]}
        elif kind == "rise":
            wanted = {ENRICH: min(now[ENRICH] + 1, PARALLELISM_MAX), SINK: min(now[SINK] + 1, PARALLELISM_MAX)}
        else:
            wanted = {ENRICH: max(now[ENRICH] - 1, 1), SINK: max(now[SINK] - 1, 1)}
        jobs.change(scene.job, wanted)

    return inject


@contextmanager
def _forbid(scene: Scene, meanwhile: AbstractContextManager[None], job: str | None) -> Iterator[None]:
    """Forbid changes at any moment and allow them a while later; nothing may be sent meanwhile (None: for no job)."""
    yield
    scene.pause(0.0, 5.0)
    scene.hit()
    with meanwhile, scene.world.silence(job):
        scene.world.wait_for_ticks(4)
        scene.pause(0.0, 4.0)


@contextmanager
def _hold_job(scene: Scene) -> Iterator[None]:
    scope, holds = f"{CLUSTER}/{scene.job}", HoldStore(str(scene.world.lake))
    holds.write(Hold(scope, "the fault harness", by="a person", since_s=time.time()))
    try:
        yield
    finally:
        holds.release(object_name(scope))


def hold(scene: Scene) -> AbstractContextManager[None]:
    """Hold the job as `make hold` does, and release it."""
    return _forbid(scene, _hold_job(scene), scene.job)


def hold_in_settings(scene: Scene) -> AbstractContextManager[None]:
    """Hold the job in the settings, and release it."""
    return _forbid(scene, scene.world.settings.holding(scene.job), scene.job)


def switch_off(scene: Scene) -> AbstractContextManager[None]:
    """Set the mode to off, and back."""
    return _forbid(scene, scene.world.settings.switched_off(), None)


@contextmanager
def break_settings(scene: Scene) -> Iterator[None]:
    """Leave a settings file that cannot be used for a while."""
    world = scene.world
    with world.settings.broken(), world.silence(None):
        yield
        scene.hit()
        time.sleep(scene.rng.uniform(6.0, 12.0))


FAULTS = (
    Fault("a person's rise", GROUP, change_job("rise")),
    Fault("a person's fall", GROUP, change_job("fall")),
    Fault("a person asks for what is in force", GROUP, change_job("same")),
    Fault("hold and release", GROUP, hold),
    Fault("hold in the settings and release", GROUP, hold_in_settings),
    Fault("mode off and auto again", GROUP, switch_off),
    Fault("settings file invalid for a while", GROUP, break_settings),
)
