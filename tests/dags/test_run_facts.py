"""What a run of Airflow is given of missed hours, and what its assets say: parts that import Airflow."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from include.flink.raw_format import hour_directory
from include.orchestration.asset_facts import form_facts
from include.orchestration.missed_hours import arguments_of_missed_hours
from include.settings import SETTINGS_FILE_VARIABLE, Paths, Settings
from include.stage_names import Stage
from include.stage_request import StageRequest
from include.utc import HOUR, parse_utc

UNTIL = datetime(2026, 11, 20, 12, tzinfo=UTC)
INGESTED = {"rows": 100, "quarantined": 0, "quarantined_values": 0, "quarantined_files": 0, "kept": 100}
pytestmark = pytest.mark.airflow


def test_a_run_that_names_its_hours_ingests_them_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SETTINGS_FILE_VARIABLE, str(tmp_path / "none.toml"))
    settings = Settings(paths=Paths(lake=str(tmp_path / "lake"), raw=str(tmp_path / "raw"), out=str(tmp_path)))
    monkeypatch.setattr("include.orchestration.missed_hours.load_settings", lambda: settings)
    hour = hour_directory(Path(settings.paths.raw), "c", UNTIL - 3 * HOUR)
    hour.mkdir(parents=True)
    (hour / "a.jsonl.gz").write_bytes(b"x")
    bounds = (UNTIL + timedelta(minutes=5), UNTIL + timedelta(minutes=65))
    assert arguments_of_missed_hours({}, *bounds, "scheduled") == [
        [
            "ingest",
            "--as-of",
            "2026-11-20T10:00:00Z",
            "--start",
            "2026-11-20T09:00:00Z",
            "--end",
            "2026-11-20T10:00:00Z",
        ]
    ]
    asked = {"start": "2026-11-20T09:00:00Z", "end": "2026-11-20T10:00:00Z"}
    assert arguments_of_missed_hours(asked, *bounds, "manual") == []
    assert arguments_of_missed_hours({}, *bounds, "backfill") == []


def test_an_assets_event_says_when_how_much_and_what_was_not_used() -> None:
    start, end = parse_utc("2026-11-20T16:00:00Z"), parse_utc("2026-11-20T17:00:00Z")
    facts = form_facts(StageRequest(Stage.INGEST, end, start, end), INGESTED | {"refusals": ["x"], "quarantined": 2})
    assert facts == {
        "stage": "ingest",
        "as_of": "2026-11-20T17:00:00Z",
        "start": "2026-11-20T16:00:00Z",
        "end": "2026-11-20T17:00:00Z",
        "rows": 100,
        "quarantined": 2,
        "quarantined_values": 0,
        "quarantined_files": 0,
    }
