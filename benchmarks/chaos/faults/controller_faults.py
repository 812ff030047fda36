"""Faults of the controller's own processes."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager

from benchmarks.chaos.scene import Fault, Scene
from benchmarks.waiting import wait_until

GROUP = "controller"
_TAKEN_OVER_S = 120.0


@contextmanager
def kill_at_any_moment(scene: Scene) -> Iterator[None]:
    """Kill the controller, and start it again at once."""
    yield
    scene.pause(0.0, 7.0)
    scene.hit()
    _replace(scene)


@contextmanager
def kill_after_recording(scene: Scene) -> Iterator[None]:
    """Kill the controller between its writing down that it sends and its sending."""
    with scene.world.proxy.delaying(0.4):  # it looks at the job once more before it sends
        yield
        scene.wait_until_recorded()
        scene.hit()
        _replace(scene)


@contextmanager
def kill_after_sending(scene: Scene) -> Iterator[None]:
    """Kill the controller when its request has just left."""
    yield
    scene.wait_for_put()
    scene.hit()
    _replace(scene)


@contextmanager
def stop_and_continue(scene: Scene) -> Iterator[None]:
    """Stop the controller for longer than its lease; another takes over; then the first one wakes up."""
    world, old = scene.world, scene.world.main
    yield
    scene.pause(0.0, 7.0)
    scene.hit()
    os.kill(old.pid, signal.SIGSTOP)
    try:
        world.main = world.controllers.start()
        wait_until(lambda: world.lease_owner == world.main.pid, _TAKEN_OVER_S, "another controller has the lease")
    finally:
        os.kill(old.pid, signal.SIGCONT)


@contextmanager
def run_two(scene: Scene) -> Iterator[None]:
    """Run two controllers at once; either is ended later, one way or the other."""
    world = scene.world
    first, second = world.main, world.controllers.start()
    yield
    scene.hit()

    def end_one() -> None:
        ended, retained = scene.rng.choice([(first, second), (second, first)])
        way = scene.rng.choice([world.controllers.end, world.controllers.kill])
        way(ended)
        world.main = retained
        world.wait_for_ticks()

    scene.after.callback(end_one)


@contextmanager
def kill_supervisor(scene: Scene) -> Iterator[None]:
    """Kill what starts the controller, as Airflow's scheduler might be; its next run starts another beside it."""
    world = scene.world
    world.controllers.end(world.main)
    pid_file = world.out / "supervised.pid"
    pid_file.unlink(missing_ok=True)
    supervisor = world.controllers.start("benchmarks.chaos.supervisor", str(pid_file))
    wait_until(lambda: pid_file.exists() and pid_file.read_text().isdigit(), 30, "the supervisor has a controller")
    world.controllers.adopt(int(pid_file.read_text()))
    world.main = supervisor
    world.wait_for_ticks(1)
    yield
    scene.pause(0.0, 6.0)
    scene.hit()
    world.controllers.kill(supervisor)
    world.main = world.controllers.start()


def _replace(scene: Scene) -> None:
    world = scene.world
    world.controllers.kill(world.main)
    world.main = world.controllers.start()


FAULTS = (
    Fault("controller killed at a random moment", GROUP, kill_at_any_moment),
    Fault("controller killed after it recorded a request", GROUP, kill_after_recording),
    Fault("controller killed when its request had left", GROUP, kill_after_sending),
    Fault("controller stopped for longer than its lease", GROUP, stop_and_continue),
    Fault("two controllers at once", GROUP, run_two),
    Fault("supervisor of the controller killed", GROUP, kill_supervisor),
)
