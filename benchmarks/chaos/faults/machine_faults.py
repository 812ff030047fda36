"""Faults of the machine on which the controller runs: disk and clock."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.chaos.scene import Fault, Inject, Scene

GROUP = "machine"


@contextmanager
def fill_disk(scene: Scene) -> Iterator[None]:
    """Let all writes of the controller fail for a while: raw files, log, lease."""
    yield
    scene.pause(0.0, 5.0)
    scene.hit()
    with scene.world.controllers.full_disk():
        scene.pause(6.0, 14.0)


@contextmanager
def forbid_writing(scene: Scene) -> Iterator[None]:
    """Make the controller's tables read-only for a while."""
    yield
    scene.pause(0.0, 5.0)
    scene.hit()
    with _read_only(scene.world.lake / "ops"):
        scene.pause(6.0, 14.0)


def step_clock(ahead_s: float) -> Inject:
    """Return a fault: the clock of a running controller is set forward, or back when negative, and stays so."""

    @contextmanager
    def inject(scene: Scene) -> Iterator[None]:
        world = scene.world
        world.controllers.end(world.main)
        world.main = world.controllers.start_with_clock()
        world.wait_for_ticks(1)
        scene.after.callback(lambda: _correct_clock(scene))
        is_before = scene.rng.random() < 0.5
        if is_before:
            _set_clock(scene, ahead_s)
        yield
        scene.pause(0.0, 6.0)
        scene.hit()
        if not is_before:
            _set_clock(scene, ahead_s)

    return inject


def _set_clock(scene: Scene, ahead_s: float) -> None:
    scene.world.controllers.set_clock(ahead_s)
    scene.world.ahead_s = ahead_s


def _correct_clock(scene: Scene) -> None:
    """Go on with a controller whose clock is right, after an end of the other one that is in order or not."""
    world = scene.world
    scene.rng.choice([world.controllers.end, world.controllers.kill])(world.main)
    world.ahead_s = 0.0
    world.main = world.controllers.start()
    world.wait_for_ticks(1)


@contextmanager
def _read_only(root: Path) -> Iterator[None]:
    folders = [Path(where) for where, _, _ in os.walk(root)]
    modes = {folder: stat.S_IMODE(folder.stat().st_mode) for folder in folders if folder.exists()}
    for folder in modes:
        folder.chmod(0o555)
    try:
        yield
    finally:
        for folder, mode in modes.items():
            if folder.exists():
                folder.chmod(mode)


# A step may have expired by a clock that is ahead; what is held is held for longer by one that is behind.
_AHEAD = ("confirmed*", "not touched", "refused: expired")
_BEHIND = ("confirmed*", "held*", "refused*")

FAULTS = (
    Fault("disk full for a while", GROUP, fill_disk),
    Fault("tables read-only for a while", GROUP, forbid_writing),
    Fault("clock set forward by 10 minutes", GROUP, step_clock(600.0), _AHEAD),
    Fault("clock set back by 10 minutes", GROUP, step_clock(-600.0), _BEHIND),
    Fault("clock set forward by 2 hours", GROUP, step_clock(7200.0), _AHEAD),
)
