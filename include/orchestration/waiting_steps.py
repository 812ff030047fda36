"""Steps that wait for a person's yes, as the controller's log has them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Any

from include.control.approvals import Approval, WaitingStep
from include.settings import Settings
from include.tables import CONTROL_LOG

NEEDS_APPROVAL = "needs_approval"
_ORDER = ("at", "lease_number", "entry")
_SHOWN = ("cluster", "job", "reason", "step_id", "detail", "parallelism_from", "parallelism_to")


def read_waiting_steps(settings: Settings, now_s: float, answers: Iterable[Approval] = ()) -> list[WaitingStep]:
    """Return the steps that wait now: of each job its last row in ``ops.control_log``, while a person may answer.

    A step waits no longer with an answer that came after it was last said to wait.
    """
    from include.lake_table import LakeTable  # heavy: DAG files are parsed without it

    since = datetime.fromtimestamp(now_s, UTC) - timedelta(hours=settings.limits.approval_expires_h)
    rows = LakeTable(settings.paths.lake, CONTROL_LOG).read([*_ORDER, *_SHOWN], since.date(), date.max)
    return find_waiting(rows.to_pylist(), settings, now_s, answers)


def find_waiting(
    rows: Iterable[Mapping[str, Any]], settings: Settings, now_s: float, answers: Iterable[Approval] = ()
) -> list[WaitingStep]:
    """Return the steps that wait, from rows of the log in any order; see :func:`read_waiting_steps`."""
    last: dict[tuple[str, str], Mapping[str, Any]] = {}
    for row in sorted(rows, key=lambda row: (row["lease_number"], row["entry"])):
        last[row["cluster"], row["job"]] = row
    answered: dict[tuple[str, str, str], float] = {}
    for one in answers:
        key = (one.cluster, one.job, one.step_id)
        answered[key] = max(one.at_s, answered.get(key, one.at_s))
    result = []
    for (cluster, job), row in sorted(last.items()):
        if row["reason"] != NEEDS_APPROVAL:
            continue
        expires_s = row["at"].timestamp() + 3600 * settings.approval_expires_h(cluster, job)
        answered_s = answered.get((cluster, job, row["step_id"]), -math.inf)
        if now_s >= expires_s or answered_s >= row["at"].timestamp():
            continue
        before, after = (dict(row[name] or {}) for name in ("parallelism_from", "parallelism_to"))
        result.append(WaitingStep(cluster, job, row["step_id"], row["at"], row["detail"] or "", before, after))
    return result
