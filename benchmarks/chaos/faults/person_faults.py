"""What people do meanwhile."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

from benchmarks.chaos.run_settings import CLUSTER, PARALLELISM_MAX
from benchmarks.chaos.scene import HELD, Fault, Inject, Scene
from benchmarks.chaos.wire_troubles import drop
from benchmarks.waiting import wait_until
from include.control.holds import Hold, HoldStore
from include.control.small_objects import object_name
from lab.local_flink.load import COUNTED_SINK, ENRICH

GROUP = "person"
_GIVEN_UP_S = 90.0


def change_job(kind: str) -> Inject:
    """Return a fault: a person asks Flink for more, less or the same, or of one vertex, at any moment."""

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
            wanted = {name: min(now[name] + 1, PARALLELISM_MAX) for name in (ENRICH, COUNTED_SINK)}
        elif kind == "one vertex":
            wanted = {COUNTED_SINK: now[COUNTED_SINK] % PARALLELISM_MAX + 1}
        else:
            wanted = {name: max(now[name] - 1, 1) for name in (ENRICH, COUNTED_SINK)}
        jobs.change(scene.job, wanted)

    return inject


@contextmanager
def revert_request(scene: Scene) -> Iterator[None]:
    """Take back at Flink what the controller has just asked for: the old value is the person's now."""
    jobs = scene.world.jobs
    before = jobs.requested(scene.job)
    yield
    scene.wait_for_put()
    scene.pause(0.3, 1.5)
    scene.hit()
    jobs.change(scene.job, before)


@contextmanager
def ask_for_what_was_lost(scene: Scene) -> Iterator[None]:
    """Set by hand what the controller asked for and gave up: it stays, whoever had wanted it.

    The request is given up because it had no reply and never arrived; one that Flink has accepted and that is not in
    force was taken back by somebody.
    """
    world, jobs = scene.world, scene.world.jobs
    with world.proxy.troubling_put(scene.job_id, drop):
        yield
        within_s = _GIVEN_UP_S + world.conditions.wait_s
        wait_until(lambda: _is_given_up(scene) or not scene.is_open(), within_s, "a request is given up", every_s=0.05)
        with world.proxy.troubling_put(scene.job_id, drop):  # what is sent again meanwhile
            scene.hit()
            jobs.change(scene.job, scene.target)
            scene.pause(2.0, 4.0)


def _is_given_up(scene: Scene) -> bool:
    return any(row.reason == "not_received" for row in scene.world.log.of_job(scene.job, scene.began_s))


@contextmanager
def set_lower_bound(scene: Scene) -> Iterator[None]:
    """Set a lower bound by hand: it stays as it was set."""
    jobs = scene.world.jobs
    yield
    scene.pause(0.0, 4.0)
    scene.hit()
    lower = min(jobs.requested(scene.job).values())
    jobs.change_lower(scene.job, lower)
    set_ = jobs.lower_bounds(scene.job)

    def look_and_reset() -> None:
        if jobs.lower_bounds(scene.job) != set_:
            scene.accuse("a person's lower bound is not overwritten", f"{set_} is {jobs.lower_bounds(scene.job)}")
        jobs.change_lower(scene.job, 1)

    scene.after.callback(look_and_reset)


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
    """Hold the job as `tidewise hold` does, and release it."""
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
    # A job that is at its end already is not changed by it.
    Fault("a person's rise", GROUP, change_job("rise"), ("held*", "confirmed*")),
    Fault("a person's fall", GROUP, change_job("fall"), ("held*", "confirmed*")),
    Fault("a person's change of one vertex", GROUP, change_job("one vertex"), HELD),
    Fault("a person asks for what is in force", GROUP, change_job("same")),
    Fault("a person takes a request in flight back", GROUP, revert_request, HELD),
    Fault("a person asks for what was given up", GROUP, ask_for_what_was_lost, ("held*", "confirmed*")),
    Fault("a person's lower bound", GROUP, set_lower_bound, ("held*", "confirmed*")),
    Fault("hold and release", GROUP, hold),
    Fault("hold in the settings and release", GROUP, hold_in_settings),
    Fault("mode off and auto again", GROUP, switch_off),
    Fault("settings file invalid for a while", GROUP, break_settings),
)
