"""What befalls the job and its controller: drawn by a seed, each kind so often a day and each at least once."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass

from include.utc import DAY_S

PER_DAY: Mapping[str, float] = {
    "upgrade": 0.7,
    "node lost": 0.7,
    "no slots": 0.3,
    "person": 0.7,
    "controller killed": 1.0,
}
BEGINS_S, ENDS_S = 3600.0, 7200.0  # after the beginning and before the end nothing happens
TROUBLES: Mapping[str, float] = {
    "409": 0.05,
    "500": 0.05,
    "dropped": 0.05,
    "reply lost": 0.06,
    "delayed": 0.04,
}
"""What a request meets, and how often: it is refused, fails, does not arrive, arrives with its reply lost, or late."""
KILLS = ("while it waits", "at a question", "before a request arrives", "after a request has arrived")


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happens at a time, epoch seconds."""

    at_s: float
    kind: str


def draw_events(draws: random.Random, start_s: float, days: float) -> list[Event]:
    """Return the events of a run in the order of time."""
    first_s, last_s = start_s + BEGINS_S, start_s + days * DAY_S - ENDS_S
    counts = {kind: max(1, round(days * rate)) for kind, rate in PER_DAY.items()}
    events = [Event(draws.uniform(first_s, last_s), kind) for kind, count in counts.items() for _ in range(count)]
    return sorted(events, key=lambda one: one.at_s)


def draw_trouble(draws: random.Random) -> str:
    """Return what a request meets; empty for nothing."""
    value = draws.random()
    for trouble, share in TROUBLES.items():
        value -= share
        if value < 0:
            return trouble
    return ""
