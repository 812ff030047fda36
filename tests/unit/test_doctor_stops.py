"""What the doctor says of the stops of jobs: how long they are, and what shortens them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from cli.doctor.findings import Level
from cli.doctor.stops import LOCAL_RECOVERY, check_stops, read_stops
from include.lake_table import LakeTable
from include.settings import Paths, Settings
from include.tables import RESCALES
from models.scheduling.figures import format_count

NOW = datetime(2026, 11, 20, 19, tzinfo=UTC)
LOCAL = {LOCAL_RECOVERY[0]: "true"}


@pytest.mark.parametrize(
    ("taken_s", "configuration", "triggers", "remedies"),
    [
        ([40.0, 8.0, 41.0], {"jobmanager.scheduler": "adaptive"}, True, ["from-local: true"]),
        ([40.0], {"jobmanager.scheduler": "adaptive"}, False, ["from-local: true", "trigger_checkpoint = true"]),
        ([40.0], LOCAL, False, ["trigger_checkpoint = true"]),
        ([40.0], {LOCAL_RECOVERY[1]: "true"}, True, []),  # as long as its state takes
        ([8.0, 9.0, 60.0], {"jobmanager.scheduler": "adaptive"}, True, []),
        ([40.0], {}, True, []),  # nobody knows what the cluster is set to
    ],
)
def test_a_long_stop_has_a_remedy(
    taken_s: list[float], configuration: dict[str, str], triggers: bool, remedies: list[str]
) -> None:
    (finding,) = check_stops("cluster c", {"orders": taken_s}, configuration, triggers_checkpoint=triggers)
    assert finding.level is (Level.WARNING if remedies else Level.OK)
    assert [remedy for remedy in remedies if remedy not in finding.remedy] == []
    assert finding.text.endswith(f"the median of {format_count(len(taken_s), 'rescale')} of the last 28 days")


def test_stops_are_those_of_rescales_that_were_measured(tmp_path: Path) -> None:
    settings = Settings(paths=Paths(lake=str(tmp_path / "lake")))
    assert read_stops(settings, "c", NOW) == {}

    def row(job: str, days: int, **changed: object) -> dict[str, object]:
        at = NOW - timedelta(days=days)
        known = {"cluster": "c", "job": job, "job_id": "1", "kind": "rescale", "downtime_s": 30.0}
        return {**known, "started_at": at, "date": at.date(), "hour": at.hour, **changed}

    rows = [
        row("orders", 1),
        row("orders", 2, downtime_s=12.0),
        row("orders", 3, downtime_s=None),
        row("orders", 4, kind="restart"),
        row("clicks", 40),
        row("clicks", 1, cluster="d"),
    ]
    LakeTable(settings.paths.lake, RESCALES).append(rows)
    assert {job: sorted(stops) for job, stops in read_stops(settings, "c", NOW).items()} == {"orders": [12.0, 30.0]}
