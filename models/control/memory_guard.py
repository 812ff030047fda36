"""The rule about memory: slots are given back only where what is left can hold the job's state."""

from __future__ import annotations

from models.control.case import Action, Case, refuse
from models.control.readiness import Checkpoints, Guards, Readiness
from models.control.reasons import Reason, Refusal
from models.control.state import Intention

_MIB = 2**20


def check_memory(case: Case, desired: Intention) -> Action | None:
    """Refuse a fall that leaves too little memory, or where nobody knows how much is left."""
    observed, ready = case.observed, case.observed.readiness
    slots = observed.slots_of(desired.parallelism)
    if ready is None or not ready.restarts or slots >= observed.slots:
        return None
    refusal = _find_pressure(ready, case.limits.guards) or _find_state(ready.checkpoints, slots, case.limits.guards)
    return None if refusal is None else refuse(refusal)


def _find_pressure(ready: Readiness, guards: Guards) -> Refusal | None:
    """Return why the TaskManagers' memory forbids a fall; shares of 1 ask nothing of it."""
    memory, heap_max, gc_max = ready.memory, guards.heap_share_max, guards.gc_share_max
    if heap_max >= 1 and gc_max >= 1:
        return None
    if memory is None or (memory.gc_share is None and ready.tells_gc and gc_max < 1):
        why = ready.unknown or "no time of garbage collection"
        return Refusal(Reason.MEMORY_UNKNOWN, f"nobody knows the TaskManagers' memory: {why}")
    if memory.heap_share > heap_max:
        detail = f"{memory.heap_share:.0%} of a TaskManager's heap is in use, more than {heap_max:.0%}"
        return Refusal(Reason.HEAP_FULL, detail)
    if memory.gc_share is not None and memory.gc_share > gc_max:
        detail = f"a TaskManager spends {memory.gc_share:.0%} of its time in garbage collection"
        return Refusal(Reason.GC_PRESSURE, f"{detail}, more than {gc_max:.0%}")
    return None


def _find_state(checkpoints: Checkpoints | None, slots: int, guards: Guards) -> Refusal | None:
    """Return why the state that a slot would hold after a fall forbids it."""
    if checkpoints is None or checkpoints.state_bytes is None:
        return Refusal(Reason.MEMORY_UNKNOWN, "nobody knows the size of the job's state")
    most, of_slot = guards.state_per_slot_max_bytes, checkpoints.state_bytes / slots
    if of_slot > most:
        detail = f"a slot would hold {of_slot / _MIB:.0f} MiB of state, more than {most / _MIB:.0f} MiB"
        return Refusal(Reason.STATE_TOO_LARGE, detail)
    return None
