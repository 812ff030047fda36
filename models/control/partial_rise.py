"""The part of a rise that fits: what a cluster has free is asked for, rather than nothing."""

from __future__ import annotations

import math
from dataclasses import replace
from heapq import heapify, heappop, heappush

from models.control.bounds import keep_as_asked
from models.control.case import Case
from models.control.state import OF_A_PERSON, Intention, ObservedJob, Parallelism


def fit_rise(wanted: Intention, case: Case) -> Intention:
    """Return what is wanted cut to the slots that can be had: the largest part that fits, where it sustains more.

    What a person demands is not cut, nor a rise of which no part fits or helps: the rule that refuses it says why.
    """
    observed = case.observed
    room = count_room(case)
    added = observed.slots_of(wanted.parallelism) - observed.slots
    if wanted.origin in OF_A_PERSON or added <= room:
        return wanted
    now = {**(observed.requested or {}), **observed.running}
    grown = grow_within(now, wanted.parallelism, observed, observed.slots + int(room))
    part = keep_as_asked(grown, observed, case.limits)
    if _least_share(part, wanted.parallelism) <= _least_share(now, wanted.parallelism):
        return wanted
    gained = observed.slots_of(part) - observed.slots
    return replace(wanted, parallelism=part, reason=f"{wanted.reason}; {gained} of the {added} slots are to be had now")


def fit_back(target: Parallelism, case: Case) -> dict[str, int]:
    """Return the parallelism to go back to, cut to the slots that can be had: others may have taken what it gave up."""
    observed = case.observed
    is_counted = math.isinf(case.limits.cluster_slots_max) or observed.cluster_slots_used is not None
    room = max(_room(case), 0) if is_counted else 0
    if observed.slots_of(target) - observed.slots <= room:
        return dict(target)
    now = {**(observed.requested or {}), **observed.running}
    least = {vertex: min(now.get(vertex, count), count) for vertex, count in target.items()}
    return keep_as_asked(grow_within(least, target, observed, observed.slots + int(room)), observed, case.limits)


def count_room(case: Case) -> float:
    """Return how many slots more the job could get now: free ones, of the cluster's budget, of its own limit."""
    return max(min(case.limits.slots_max - case.observed.slots, _room(case) - case.observed.slots_shown_free), 0)


def _room(case: Case) -> float:
    """Return how many slots the cluster shows as free and its budget leaves, where that is known; unknown is none."""
    observed, budget = case.observed, case.limits.cluster_slots_max
    room = math.inf if observed.is_elastic else observed.free_slots or 0
    if not math.isinf(budget) and observed.cluster_slots_used is not None:
        room = min(room, int(budget) - observed.cluster_slots_used)
    return room


def _least_share(running: Parallelism, wanted: Parallelism) -> float:
    """Return how much is let through, as a share of what is wanted: by the vertex that lacks most."""
    return min((running.get(vertex, 1) / count for vertex, count in wanted.items()), default=1.0)


def grow_within(now: Parallelism, wanted: Parallelism, observed: ObservedJob, slots: int) -> dict[str, int]:
    """Return ``now`` grown towards ``wanted`` within a number of slots, the vertex that lacks most first; none falls.

    A vertex that ``now`` lacks counts as one subtask; those of ``wanted`` are returned.
    """
    part = {vertex: now.get(vertex, 1) for vertex in wanted}
    group_of = {vertex: observed.slot_sharing_group.get(vertex, "default") for vertex in part}
    largest: dict[str, int] = {}
    for vertex, count in part.items():
        largest[group_of[vertex]] = max(largest.get(group_of[vertex], 0), count)
    taken = sum(largest.values())
    lacking = [(-wanted[vertex] / count, vertex) for vertex, count in part.items() if count < wanted[vertex]]
    heapify(lacking)
    while lacking:
        vertex = heappop(lacking)[1]
        group, count = group_of[vertex], part[vertex] + 1
        added = max(count - largest[group], 0)
        if taken + added > slots:
            continue
        part[vertex], taken, largest[group] = count, taken + added, max(count, largest[group])
        if count < wanted[vertex]:
            heappush(lacking, (-wanted[vertex] / count, vertex))
    return part
