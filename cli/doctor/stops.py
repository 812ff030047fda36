"""How long rescales stop each job, as ingested, and what would make that shorter."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from statistics import median
from typing import Final

from cli.doctor.findings import Finding, ok, warning
from include.lake_table import LakeTable, is_in
from include.settings import Settings
from include.tables import RESCALES
from models.scheduling.figures import format_count

LOOKBACK: Final = timedelta(days=28)
NOTED_S: Final = 15.0  # what a restart takes whose state lies on the TaskManagers' own disks
LOCAL_RECOVERY: Final = (
    "execution.state-recovery.from-local",
    "state.backend.local-recovery",
)  # since 1.20, and before


def read_stops(settings: Settings, cluster: str, now: datetime) -> dict[str, list[float]]:
    """Return job -> how long each of its rescales of the last weeks has stopped it, s."""
    where = f"{is_in('cluster', [cluster])} AND {is_in('kind', ['rescale'])}"
    since, until = (now - LOOKBACK).date(), now.date()
    rows = LakeTable(settings.paths.lake, RESCALES).read(["job", "downtime_s"], since, until, where).to_pylist()
    stops: dict[str, list[float]] = defaultdict(list)
    for row in rows:
        if row["downtime_s"] is not None:
            stops[row["job"]].append(row["downtime_s"])
    return stops


def check_stops(
    part: str, stops: Mapping[str, Sequence[float]], configuration: Mapping[str, str], *, triggers_checkpoint: bool
) -> list[Finding]:
    """Say how long each job stops for a rescale, and what shortens it where that is long.

    ``stops`` are of :func:`read_stops`; an empty configuration is not told.
    """
    remedies = []
    if configuration and not any(configuration.get(key) == "true" for key in LOCAL_RECOVERY):
        since, before = LOCAL_RECOVERY
        remedies.append(f"set {since}: true in Flink's configuration ({before} before 1.20)")
    if not triggers_checkpoint:
        remedies.append("write apply.trigger_checkpoint = true, so that less is read again")
    findings = []
    for job, taken_s in sorted(stops.items()):
        usual_s = median(taken_s)
        text = (
            f"{usual_s:.0f} s, the median of {format_count(len(taken_s), 'rescale')} of the last {LOOKBACK.days} days"
        )
        is_long = usual_s > NOTED_S and remedies
        check = f"stops of {job}"
        findings.append(warning(part, check, text, "; ".join(remedies)) if is_long else ok(part, check, text))
    return findings
