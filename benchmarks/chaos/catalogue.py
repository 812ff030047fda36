"""All kinds of faults, and which of them a seed gives in which order."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

from benchmarks.chaos.faults import (
    checkpoint_faults,
    controller_faults,
    flink_faults,
    machine_faults,
    person_faults,
    settings_faults,
    wire_faults,
)
from benchmarks.chaos.scene import Fault

NO_SLOTS = "refused: no_free_slots"

CATALOGUE: tuple[Fault, ...] = (
    *controller_faults.FAULTS,
    *flink_faults.FAULTS,
    *wire_faults.FAULTS,
    *person_faults.FAULTS,
    *checkpoint_faults.FAULTS,
    *settings_faults.FAULTS,
    *machine_faults.FAULTS,
)


def draw_faults(count: int, rng: random.Random) -> list[Fault]:
    """Return faults in the order in which they are injected: each kind once before any comes a second time."""
    drawn: list[Fault] = []
    while len(drawn) < count:
        drawn += rng.sample(CATALOGUE, len(CATALOGUE))
    return drawn[:count]


def find_faults(names: list[str]) -> list[Fault]:
    """Return faults by name.

    Raises:
        KeyError: one that is not known.
    """
    known = {fault.name: fault for fault in CATALOGUE}
    return [known[name] for name in names]


def share_slots(faults: Sequence[Fault]) -> list[Fault]:
    """Return faults that may also meet a step for which another job has just been given the last free slot."""
    return [replace(fault, expected=tuple(dict.fromkeys((*fault.expected, NO_SLOTS)))) for fault in faults]
