"""What was done to jobs: decisions of the controller and acts of persons, in one order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from include.control.holds import EVERYTHING
from models.control.log_lines import LogLine, log_lines


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    """A decision or an act.

    Attributes:
        scope: ``cluster/job``; of an act also a cluster, or ``all``.
        by: who; empty for a decision.
    """

    at: datetime
    scope: str
    line: LogLine
    by: str = ""


def merge_history(rows: Iterable[Mapping[str, Any]], acts: Iterable[Mapping[str, Any]]) -> list[HistoryEntry]:
    """Return decisions (rows of the control log, with ``state``) and acts (``ops.interventions``) by time."""
    of_jobs: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        of_jobs.setdefault(f"{row['cluster']}/{row['job']}", []).append(row)
    result = [HistoryEntry(line.at, job, line) for job, listed in of_jobs.items() for line in log_lines(listed)]
    result += [HistoryEntry(row["at"], row["scope"], line_of_act(row), row["by"] or "") for row in acts]
    return sorted(result, key=lambda one: (one.at, one.scope))


def select_acts(acts: Sequence[Mapping[str, Any]], cluster: str, job: str) -> list[Mapping[str, Any]]:
    """Return the acts that are about a job, its cluster or everything."""
    return [row for row in acts if row["scope"] in {EVERYTHING, cluster, f"{cluster}/{job}"}]


def line_of_act(row: Mapping[str, Any]) -> LogLine:
    """Return an act as a line of the log."""
    about = "; ".join(filter(None, (row["detail"], row["reason"])))
    until = f"until {row['until']:%Y-%m-%d %H:%MZ}" if row["until"] else ""
    return LogLine(
        at=row["at"],
        observed="",
        desired=f"{row['scope']} {until}".strip(),
        decision=f"{row['act']} by {row['by'] or 'somebody'}",
        why=about,
        came_of="",
        step_id=row["step_id"] or "",
        is_dry_run=False,
    )
