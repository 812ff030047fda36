"""Intentions that nothing can be made of: what a policy returned is no parallelism, or has no times."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import SupportsIndex

from models.control.reasons import Reason
from models.control.state import Intention, ObservedJob

UNUSABLE = Reason.UNUSABLE_INTENTION
_MOST = 2**31 - 1


def check_usable(desired: Intention, observed: ObservedJob) -> Intention:
    """Return an intention as it is, with whole numbers, or one for what is in force with an objection that says why."""
    counts = {vertex: _whole(count) for vertex, count in desired.parallelism.items()}
    odd = [f"{vertex} = {desired.parallelism[vertex]!r:.40}" for vertex, count in counts.items() if count is None]
    odd += [
        f"{name} = {value!r:.40}"
        for name, value in (("valid_until_s", desired.valid_until_s), ("settle_s", desired.settle_s))
        if not isinstance(value, int | float) or math.isnan(value)
    ]
    if not odd:
        return replace(desired, parallelism={vertex: count for vertex, count in counts.items() if count is not None})
    return replace(
        desired,
        parallelism=dict(observed.requested or {}),
        valid_until_s=math.inf,
        settle_s=0.0,
        objection=UNUSABLE,
        objection_detail=f"nothing can be made of what is wanted: {', '.join(sorted(odd)[:5])}",
    )


def _whole(count: object) -> int | None:
    """Return a parallelism as a whole number; None when it is none."""
    if isinstance(count, float):
        number = int(count) if math.isfinite(count) and count == int(count) else 0
    elif isinstance(count, SupportsIndex) and not isinstance(count, bool):
        number = count.__index__()
    else:
        return None
    return number if 1 <= number <= _MOST else None
