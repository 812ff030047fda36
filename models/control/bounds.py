"""Which parallelism the limits allow, from the one in force."""

from __future__ import annotations

import math
from dataclasses import replace

from models.control.limits import Limits
from models.control.lower_bounds import raise_to_lower
from models.control.state import ObservedJob, Parallelism


def bound_target(wanted: Parallelism, observed: ObservedJob, limits: Limits) -> dict[str, int]:
    """Return the parallelism nearest to ``wanted`` that the limits allow from what is in force now.

    A change that is too large becomes the largest one that is allowed, so that what is wanted is reached in several.
    A job that is outside its slots already is brought back in steps of that size as well.  Where scale-downs are off,
    a rise takes nothing away from any vertex. A vertex that is to be left alone keeps the bound that it has, and none
    comes below its lower bound.

    >>> observed = ObservedJob("j", "RUNNING", running={"map": 4}, requested={"map": 4})
    >>> bound_target({"map": 12}, observed, Limits(step_up_max_slots=4))
    {'map': 8}
    """
    target = _bound_slots(wanted, observed, limits)
    return keep_as_asked(target, observed, limits)


def keep_as_asked(target: Parallelism, observed: ObservedJob, limits: Limits) -> dict[str, int]:
    """Return a target with the bounds of vertices that are to be left alone, and none below its lower bound."""
    asked = observed.requested or {}
    retained = {vertex: asked[vertex] for vertex in limits.left_alone if vertex in asked and vertex in target}
    return raise_to_lower({**target, **retained}, observed)


def _bound_slots(wanted: Parallelism, observed: ObservedJob, limits: Limits) -> dict[str, int]:
    now = {**(observed.requested or {}), **observed.running}
    slots = observed.slots
    up = _largest_step(limits.step_up_max_slots, limits.step_up_max_share, slots)
    down = _largest_step(limits.step_down_max_slots, limits.step_down_max_share, slots)
    least = _least(observed, limits)
    target = {vertex: _bound_vertex(vertex, count, now, observed, limits) for vertex, count in wanted.items()}
    target = keep_as_asked(target, observed, limits)
    if not limits.allows_falls and observed.slots_of(target) >= slots:
        target = {vertex: max(count, now.get(vertex, 1)) for vertex, count in target.items()}
    highest = min(max(limits.slots_max, slots - down), slots + up)
    lowest = min(max(limits.slots_min, slots - down), highest)
    return _raise_to(_cap_at(target, observed, highest, least), observed, lowest, _most(now, observed, limits))


def _bound_vertex(vertex: str, wanted: int, now: Parallelism, observed: ObservedJob, limits: Limits) -> int:
    count = now.get(vertex)
    wanted = max(min(wanted, limits.operator_max.get(vertex, wanted)), limits.operator_min.get(vertex, 1))
    if count is not None:
        up = _largest_step(limits.step_up_max_slots, limits.step_up_max_share, count)
        down = _largest_step(limits.step_down_max_slots, limits.step_down_max_share, count)
        wanted = int(max(min(wanted, count + up), count - down))
    return max(min(wanted, observed.max_parallelism.get(vertex, wanted)), 1)


def _largest_step(most_slots: float, most_share: float, slots: int) -> float:
    """Return the largest change in slots; a share that is not zero allows at least one slot."""
    of_share = most_share if math.isinf(most_share) else max(math.floor(most_share * slots), 1 if most_share > 0 else 0)
    return max(min(most_slots, of_share), 0.0)


def _cap_at(wanted: Parallelism, observed: ObservedJob, highest: float, least: Parallelism) -> dict[str, int]:
    """Return ``wanted`` with one cap for all vertices, the largest under which it takes at most ``highest`` slots.

    ``least`` is of some vertices, below which they are not capped.
    """

    def cap_at(cap: int) -> dict[str, int]:
        return {vertex: min(count, max(cap, least.get(vertex, 1))) for vertex, count in wanted.items()}

    low, cap = 1, max(wanted.values(), default=1)
    highest = max(highest, observed.slots_of(cap_at(1)))  # what is not capped takes that anyway
    while low < cap:  # the slots never fall as the cap rises
        middle = (low + cap + 1) // 2
        if observed.slots_of(cap_at(middle)) <= highest:
            low = middle
        else:
            cap = middle - 1
    return cap_at(low)


def _least(observed: ObservedJob, limits: Limits) -> dict[str, int]:
    """Return what slots that are too many may not take from vertices."""
    asked, lower = observed.requested or {}, observed.lower_bounds or {}
    retained = {vertex: asked[vertex] for vertex in limits.left_alone if vertex in asked}
    return {vertex: max(one.get(vertex, 1) for one in (lower, limits.operator_min, retained)) for vertex in asked}


def _most(now: Parallelism, observed: ObservedJob, limits: Limits) -> dict[str, int]:
    """Return how far vertices may be raised.

    A pinned one no further than its pin, one with a largest parallelism no further than that, or than where it is
    already; one that is to be left alone not at all.
    """
    most = dict(observed.max_parallelism)
    alone = {vertex: now.get(vertex, 1) for vertex in limits.left_alone}
    for bounds in (limits.pin_of(now), limits.operator_max, alone):
        for vertex, largest in bounds.items():
            most[vertex] = min(max(largest, now.get(vertex, 1)), most.get(vertex, largest))
    return most


def _raise_to(wanted: Parallelism, observed: ObservedJob, lowest: float, most: Parallelism) -> dict[str, int]:
    """Return ``wanted`` raised until it takes ``lowest`` slots, or may not be larger.

    The largest vertices of one slot-sharing group grow together, as far as they may or as is needed; then the largest
    that are left. A group takes the slots of its largest vertex, so those that only catch up with it cost none.
    """
    raised = dict(wanted)
    groups: dict[str, list[str]] = {}
    for vertex in raised:
        groups.setdefault(observed.slot_sharing_group.get(vertex, "default"), []).append(vertex)
    while (slots := observed.slots_of(raised)) < lowest:
        growing = [(_growing(vertices, raised, most), vertices) for _, vertices in sorted(groups.items())]
        chosen, group = max(
            growing, key=lambda one: max((raised[vertex] for vertex in one[0]), default=0), default=([], [])
        )
        if not chosen:
            break
        now = raised[chosen[0]]
        needed = max(raised[vertex] for vertex in group) - now + math.ceil(lowest - slots)
        added = int(min(needed, *(most.get(vertex, math.inf) - now for vertex in chosen)))
        for vertex in chosen:
            raised[vertex] = now + added
    return raised


def _growing(vertices: list[str], now: Parallelism, most: Parallelism) -> list[str]:
    """Return the largest vertices of a group that may be larger; where none of them may, the next largest."""
    free = [vertex for vertex in vertices if now[vertex] < most.get(vertex, math.inf)]
    largest = max((now[vertex] for vertex in free), default=0)
    return [vertex for vertex in free if now[vertex] == largest]


def allow_any_step(limits: Limits) -> Limits:
    """Return limits under which a rescale is taken back in one request."""
    return replace(
        limits,
        step_up_max_slots=math.inf,
        step_down_max_slots=math.inf,
        step_up_max_share=math.inf,
        step_down_max_share=math.inf,
    )
