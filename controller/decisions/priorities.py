"""Which job of a cluster comes first: the one with the higher priority, of those alike the latest."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from models.control.case import Action, Case
from models.control.checks import find_desired
from models.control.reasons import Reason
from models.control.state import reserve_slots

_SHORT = frozenset({Reason.NO_FREE_SLOTS, Reason.EXCEEDS_BUDGET})


@dataclass(slots=True)
class SlotClaims:
    """Slots that jobs want and cannot have now: jobs of a lower priority do not take what becomes free for them."""

    claimed: dict[int, int] = field(default_factory=dict)

    def reserve(self, priority: int, case: Case) -> Case:
        """Return the case of a job that finds less, where it wants more and jobs of a higher priority wait."""
        waited_for = sum(slots for other, slots in self.claimed.items() if other > priority)
        desired = find_desired(case) if waited_for else None
        if desired is None or case.observed.slots_of(desired.parallelism) <= case.observed.slots:
            return case
        return replace(case, observed=reserve_slots(case.observed, waited_for))

    def note(self, priority: int, case: Case, action: Action) -> None:
        """Take note of a decision."""
        desired = find_desired(case) if action.reason in _SHORT else None
        if desired is None:
            return
        missing = case.observed.slots_of(desired.parallelism) - case.observed.slots
        self.claimed[priority] = self.claimed.get(priority, 0) + max(missing, 0)
