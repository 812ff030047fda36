"""Which rows of which table are old."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, timedelta

from include.settings import Retention
from include.stage_names import PROFILING
from include.tables import (
    CONTROL_LOG,
    CONTROLLER_MEMORY,
    FILES,
    INTERVENTIONS,
    POLICY_MEMORY,
    QUALITY,
    QUARANTINE,
    RESCALE_OUTCOMES,
    Table,
)

# Written at every evaluation, and of use until the next few.
TICK_TABLES = frozenset({POLICY_MEMORY.name, CONTROLLER_MEMORY.name})
HOURLY_TABLES = frozenset({CONTROLLER_MEMORY.name})
"""Of a day that is over one evaluation an hour is kept, and no version but the newest."""
LOG_TABLES = frozenset({QUARANTINE.name, QUALITY.name, CONTROL_LOG.name, INTERVENTIONS.name, RESCALE_OUTCOMES.name})
_FILES_LONGER_DAYS = 30  # than raw files: their removal may be late
# Profiles are expensive and few: a policy reads them however old they are.
_RETAINED_ROWS = {POLICY_MEMORY.name: f"stage <> '{PROFILING}'"}


@dataclass(frozen=True, slots=True)
class ExpiredRows:
    """The rows of a table that are to go.

    Attributes:
        before: first day that is kept.
        predicate: SQL that is true for old rows.
    """

    before: date
    predicate: str


def days_of(table: Table, retention: Retention) -> int | None:
    """Return for how many days a table's rows are kept, None: for ever."""
    if table.name in TICK_TABLES:
        return retention.tick_days
    if table.name in LOG_TABLES:
        return retention.log_days
    if table.name == FILES.name and retention.log_days is not None and retention.raw_days is not None:
        # It tells which raw files were ingested, without which none is removed.
        return max(retention.log_days, retention.raw_days + _FILES_LONGER_DAYS)
    layer = table.name.split(".")[0]
    return {"bronze": retention.bronze_days, "silver": retention.silver_days, "gold": retention.gold_days}.get(
        layer, retention.log_days
    )


def old_rows(table: Table, retention: Retention, now: datetime) -> ExpiredRows | None:
    """Return which rows are old; None when all are kept, or the table has no days (it is small then)."""
    days = days_of(table, retention)
    if days is None or "date" not in table.partition_by:
        return None
    before = (now - timedelta(days=days)).date()
    retained = _RETAINED_ROWS.get(table.name)
    return ExpiredRows(before, f"date < '{before.isoformat()}'" + (f" AND {retained}" if retained else ""))
