"""What persons did to the control of jobs, kept in ``ops.interventions`` for others to read.

It is written after the act itself: a lake in which nothing can be written keeps nobody from holding a job.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from enum import StrEnum

from deltalake.exceptions import DeltaError

from include.lake_table import LakeTable, date_of, maybe_timestamp, timestamp_of
from include.tables import INTERVENTIONS

log = logging.getLogger(__name__)


class UserAction(StrEnum):
    """What a person did."""

    HOLD = "hold"
    RELEASE = "release"
    APPROVE = "approve"
    DENY = "deny"
    LIFT = "lift"
    UNDO = "undo"
    PIN = "pin"
    UNPIN = "unpin"
    RESTORE = "restore"
    APPROVE_MODEL = "approve model"
    REJECT_MODEL = "reject model"
    PIN_MODEL = "pin model"
    LIFT_MODEL = "lift model"
    ROLL_BACK_MODEL = "roll back model"


@dataclass(frozen=True, slots=True)
class Intervention:
    """Something that a person did.

    Attributes:
        at_s: epoch seconds.
        act: what.
        scope: ``all``, a cluster, or ``cluster/job``.
        by: who.
        reason: why, in their words; empty where they gave none.
        detail: what it was about, one sentence for a person.
        step_id: of the step; empty where it was about none.
        until_s: epoch seconds; None without an end.
    """

    at_s: float
    act: UserAction
    scope: str
    by: str
    reason: str = ""
    detail: str = ""
    step_id: str = ""
    until_s: float | None = None


def record_intervention(lake: str, one: Intervention) -> bool:
    """Append a row; returns whether it was written. The act itself has been done in any case."""
    row = {
        "at": timestamp_of(one.at_s),
        "act": str(one.act),
        "scope": one.scope,
        "by": one.by,
        "reason": one.reason or None,
        "detail": one.detail or None,
        "step_id": one.step_id or None,
        "until": maybe_timestamp(one.until_s),
        "date": date_of(one.at_s),
    }
    try:
        LakeTable(lake, INTERVENTIONS).append([row])
    except (DeltaError, OSError, ValueError) as error:
        reported = str(error).partition("\n")[0] or type(error).__name__
        log.warning("done, but not written into %s: %s", INTERVENTIONS.name, reported)
        return False
    return True
