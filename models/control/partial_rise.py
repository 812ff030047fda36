"""The part of a rise that fits: what a cluster has free is asked for, rather than nothing."""

from __future__ import annotations

import math
from dataclasses import replace

from models.control.bounds import keep_as_asked
from models.control.case import Case
from models.control.state import Intention, ObservedJob, Origin, Parallelism


def fit_rise(wanted: Intention, case: Case) -> Intention:
    """Return what the reactive controller wants cut to the slots that can be had: the largest part that fits.

    A plan's step and a person's pin are not cut, nor a rise of which no part fits: the rule that refuses it says why.
    """
    observed = case.observed
    room = count_room(case)
    added = observed.slots_of(wanted.parallelism) - observed.slots
    if wanted.origin is not Origin.REACTIVE or added <= room or room < 1:
        return wanted
    now = {**(observed.requested or {}), **observed.running}
    grown = grow_within(now, wanted.parallelism, observed, observed.slots + int(room))
    part = keep_as_asked(grown, observed, case.limits)
    if all(part[vertex] <= now.get(vertex, 0) for vertex in part):
        return wanted
    gained = observed.slots_of(part) - observed.slots
    return replace(wanted, parallelism=part, reason=f"{wanted.reason}; {gained} of the {added} slots are to be had now")


def count_room(case: Case) -> float:
    """Return how many slots more the job could get now: free ones, of the cluster's budget, of its own limit."""
    observed, limits = case.observed, case.limits
    room = limits.slots_max - observed.slots
    if not observed.is_elastic and observed.free_slots is not None:
        room = min(room, observed.free_slots)
    if not math.isinf(limits.cluster_slots_max) and observed.cluster_slots_used is not None:
        room = min(room, int(limits.cluster_slots_max) - observed.cluster_slots_used)
    return max(room, 0)


def grow_within(now: Parallelism, wanted: Parallelism, observed: ObservedJob, slots: int) -> dict[str, int]:
    """Return ``now`` grown towards ``wanted`` within a number of slots, the vertex that lacks most first; none falls.

    Args:
        now: parallelism in force; a vertex that it lacks counts as one subtask.
        wanted: of the same vertices, and all that are returned.
        observed: for the slots that a parallelism takes.
        slots: most that it may take.
    """
    part = {vertex: now.get(vertex, 1) for vertex in wanted}
    open_ = {vertex for vertex in part if part[vertex] < wanted[vertex]}
    while open_:
        vertex = max(sorted(open_), key=lambda one: wanted[one] / part[one])
        part[vertex] += 1
        if observed.slots_of(part) > slots:
            part[vertex] -= 1
            open_.discard(vertex)
        elif part[vertex] >= wanted[vertex]:
            open_.discard(vertex)
    return part
