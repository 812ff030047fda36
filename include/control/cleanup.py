"""Removal of what persons said and what has ended, from the folders that the controller reads at every tick."""

from __future__ import annotations

import json
from contextlib import suppress

from include.control import approvals, holds, pins, undo_orders
from include.control.small_objects import ObjectFolder, StoreUnreadableError
from include.utc import DAY_S

STAYS_S = 7 * DAY_S
"""So long after its end an object stays: a clock that is days ahead deletes nothing that is in force."""
_WITH_END = (approvals.FOLDER, approvals.ASKED_FOLDER, holds.FOLDER, pins.FOLDER, undo_orders.FOLDER)


def delete_ended(lake: str, now_s: float) -> int:
    """Delete what has ended for long; returns how much. What cannot be read stays, and so it does without a store."""
    deleted = 0
    for folder in _WITH_END:
        with suppress(StoreUnreadableError):
            deleted += ObjectFolder(lake.rstrip("/"), folder).delete_where(lambda one: _is_past(one, now_s - STAYS_S))
    return deleted


def _is_past(content: bytes, before_s: float) -> bool:
    try:
        at_s = json.loads(content)["until_s"]
    except (ValueError, TypeError, KeyError, RecursionError):
        return False
    return isinstance(at_s, int | float) and 0 < at_s < before_s
