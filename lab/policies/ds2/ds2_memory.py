"""What DS2's scaling manager remembers between policy intervals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lab.policies.delayed_fall import Recent


@dataclass(frozen=True, slots=True)
class PendingAction:
    """A reconfiguration whose effect is not judged yet.

    Attributes:
        before: operator -> instances before it.
        after: operator -> instances that it requested.
        achieved_share: achieved / target rate before it; None when there was no target.
    """

    before: Mapping[str, int]
    after: Mapping[str, int]
    achieved_share: float | None


@dataclass(frozen=True, slots=True)
class ManagerState:
    """Memory of one job.

    Attributes:
        last_call_s: end of the last policy interval used; None before the first.
        intervals: since the last reconfiguration.
        decisions: those of the intervals after warm-up, oldest first, no more than the activation needs.
        action: the last reconfiguration, until judged.
        rejected: configurations that were rolled back for the present target rate.
        fruitless: consecutive reconfigurations that improved almost nothing.
        target_per_s: sum of the sources' target rates for which ``rejected`` and ``fruitless`` hold.
        reconfigurations: made so far, roll-backs included.
        recommended: within the delay of scale-downs.
    """

    last_call_s: float | None = None
    intervals: int = 0
    decisions: tuple[Mapping[str, int], ...] = ()
    action: PendingAction | None = None
    rejected: tuple[Mapping[str, int], ...] = ()
    fruitless: int = 0
    target_per_s: float | None = None
    reconfigurations: int = 0
    recommended: Recent = ()
