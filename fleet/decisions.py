"""Rows of the control log as facts: the last decision and rescale of each job, and how often steps went wrong."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from fleet.facts import DecisionFact
from fleet.log_tables import JobKey, read_json, state_of
from include.lake_table import timestamp_of
from include.utc import DAY_S
from models.control.case import Verb
from models.control.reasons import Reason

ASKED_FOR = frozenset({Reason.ON_HOLD, Reason.HELD, Reason.DENIED, Reason.FOREIGN_CHANGE, Reason.FALLS_OFF})
"""Refusals that a person has asked for, or that are counted by themselves."""


def decision_of(row: Mapping[str, Any]) -> DecisionFact:
    """Return a whole row (:data:`fleet.log_tables.WHOLE`) as a fact."""
    history = read_json(row, "history")
    return DecisionFact(
        cluster=row["cluster"],
        job=row["job"],
        at_s=row["at"].timestamp(),
        verb=row["verb"],
        reason=row["reason"],
        detail=row["detail"] or "",
        answer=row["answer"] or "",
        origin=row["origin"] or "",
        step_id=row["step_id"] or "",
        mode=row["mode"] or "",
        is_dry_run=bool(row["is_dry_run"]),
        state=state_of(row),
        slots_from=row["slots_from"],
        slots_to=row["slots_to"],
        parallelism_from=dict(row["parallelism_from"] or {}),
        parallelism_to=dict(row["parallelism_to"] or {}),
        late_since_s=history.get("late_since_s"),
        down_since_s=history.get("down_since_s"),
        wish_changed=row["wish_changed"] or "",
    )


def count_troubles(rows: pa.Table, now_s: float) -> tuple[dict[JobKey, int], dict[JobKey, int]]:
    """Return how many decisions on each job were refused, and how many requests taken back, within the last day."""
    since = pa.scalar(timestamp_of(now_s - DAY_S), pa.timestamp("us", tz="UTC"))
    lately = rows.filter(pc.greater_equal(rows["at"], since))
    is_refused = pc.and_(
        pc.equal(lately["verb"], str(Verb.REFUSE)),
        pc.invert(pc.is_in(lately["reason"], pa.array(sorted(ASKED_FOR)))),
    )
    taken_back = pc.and_(pc.equal(lately["verb"], str(Verb.ROLL_BACK)), pc.is_null(lately["answer"]))
    by_itself = pc.and_(
        pc.not_equal(lately["reason"], str(Reason.UNDO)), pc.invert(pc.fill_null(lately["is_dry_run"], False))
    )
    return _count(lately.filter(is_refused)), _count(lately.filter(pc.and_(taken_back, by_itself)))


def _count(rows: pa.Table) -> dict[JobKey, int]:
    counted = rows.group_by(["cluster", "job"]).aggregate([([], "count_all")]).to_pylist()
    return {(row["cluster"], row["job"]): row["count_all"] for row in counted}
