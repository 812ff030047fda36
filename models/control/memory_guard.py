"""The rule about memory: slots are given back only where what is left can hold the job's state."""

from __future__ import annotations

from models.control.case import Action, Case, Verb
from models.control.state import Intention

_MIB = 2**20


def check_memory(case: Case, wanted: Intention) -> Action | None:
    """Refuse a fall that leaves too little memory, or where nobody knows how much is left."""
    observed, guards, ready = case.observed, case.limits.guards, case.observed.readiness
    slots = observed.slots_of(wanted.parallelism)
    if ready is None or not ready.restarts or slots >= observed.slots:
        return None
    if guards.heap_share_max < 1 or guards.gc_share_max < 1:
        memory = ready.memory
        if memory is None or (memory.gc_share is None and ready.tells_gc and guards.gc_share_max < 1):
            return Action(Verb.REFUSE, "memory_unknown", f"nobody knows the TaskManagers' memory: {ready.unknown}")
        if memory.heap_share > guards.heap_share_max:
            detail = f"{memory.heap_share:.0%} of a TaskManager's heap is in use, more than {guards.heap_share_max:.0%}"
            return Action(Verb.REFUSE, "heap_full", detail)
        if memory.gc_share is not None and memory.gc_share > guards.gc_share_max:
            detail = f"a TaskManager spends {memory.gc_share:.0%} of its time in garbage collection"
            return Action(Verb.REFUSE, "gc_pressure", f"{detail}, more than {guards.gc_share_max:.0%}")
    state_bytes = None if ready.checkpoints is None else ready.checkpoints.state_bytes
    if state_bytes is None:
        return Action(Verb.REFUSE, "memory_unknown", "nobody knows the size of the job's state")
    if state_bytes / slots > guards.state_per_slot_max_bytes:
        most_mib = guards.state_per_slot_max_bytes / _MIB
        detail = f"{state_bytes / slots / _MIB:.0f} MiB of state a slot would be left, more than {most_mib:.0f} MiB"
        return Action(Verb.REFUSE, "state_too_large", detail)
    return None
