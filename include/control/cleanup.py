"""Removal of what persons said and what has ended, from the folders that the controller reads at every tick."""

from __future__ import annotations

import json

from include.control import approvals, holds, lifted_blocks, pins, undo_orders
from include.control.small_objects import ObjectFolder, StoreUnreadableError
from include.utc import DAY_S

STAYS_S = 7 * DAY_S
"""So long after its end an object stays: a clock that is days ahead deletes nothing that is in force."""
LIFT_STAYS_S = 60 * DAY_S
"""A lift has no end: what it lifts was blocked within the two weeks of the log that are looked at."""
_WITH_END = (approvals.FOLDER, holds.FOLDER, pins.FOLDER, undo_orders.FOLDER)


def delete_ended(lake: str, now_s: float) -> int:
    """Delete what has ended for long; returns how much. What cannot be read stays, and so it does without a store.

    Args:
        lake: folder or URI.
        now_s: epoch seconds.
    """
    deleted = 0
    for folder, key, stays_s in (
        *((name, "until_s", STAYS_S) for name in _WITH_END),
        (lifted_blocks.FOLDER, "at_s", LIFT_STAYS_S),
    ):
        objects = ObjectFolder(lake.rstrip("/"), folder)
        try:
            for name, content in objects.read_all().items():
                if _is_past(content, key, now_s - stays_s):
                    objects.delete(name)
                    deleted += 1
        except StoreUnreadableError:
            continue
    return deleted


def _is_past(content: bytes, key: str, before_s: float) -> bool:
    try:
        at_s = json.loads(content)[key]
    except (ValueError, TypeError, KeyError, RecursionError):
        return False
    return isinstance(at_s, int | float) and 0 < at_s < before_s
