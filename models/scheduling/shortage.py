"""Operators that cannot grow although they are short: whether that is believed, and what would help."""

from __future__ import annotations

from dataclasses import dataclass

from include.domain.graph import Operator
from include.domain.singletons import SINGLETON_HELP
from models.scheduling.figures import format_count


@dataclass(frozen=True, slots=True)
class CapacityMismatch:
    """An operator that processes more than its capacity model allows.

    Attributes:
        operator: its name.
        processed_per_s: what it processed in the last windows.
        capacity_per_s: what the model says that it could at most, with its interval.
    """

    operator: str
    processed_per_s: float
    capacity_per_s: float


def explain_limit(operator: Operator, limit: int) -> str:
    """Return what keeps an operator from growing beyond ``limit``, and what would help."""
    if operator.max_parallelism == 1:
        return SINGLETON_HELP
    if operator.partitions is not None and operator.partitions <= limit:
        return f"it reads {operator.partitions} partitions: more partitions would help"
    if operator.max_parallelism <= limit:
        return f"it has {operator.max_parallelism} key groups: a higher pipeline.max-parallelism would help"
    return f"a job may have {format_count(limit, 'slot')}: a higher slots_max would help"
