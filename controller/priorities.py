"""Which job of a cluster comes first where slots are short: the one with the higher priority."""

from __future__ import annotations

from dataclasses import dataclass, field

from models.control.case import Action, Case
from models.control.checks import desired_parallelism

_SHORT = frozenset({"no_free_slots", "exceeds_budget"})


@dataclass(slots=True)
class Claims:
    """Slots that jobs want and cannot have now: jobs of a lower priority do not take what becomes free for them.

    Attributes:
        claimed: priority -> slots.
    """

    claimed: dict[int, int] = field(default_factory=dict)

    def above(self, priority: int) -> int:
        """Return how many slots jobs of a higher priority wait for."""
        return sum(slots for other, slots in self.claimed.items() if other > priority)

    def note(self, priority: int, case: Case, action: Action) -> None:
        """Take note of a decision."""
        wanted = desired_parallelism(case) if action.reason in _SHORT else None
        if wanted is None:
            return
        missing = case.observed.slots_of(wanted.parallelism) - case.observed.slots
        self.claimed[priority] = self.claimed.get(priority, 0) + max(missing, 0)
