"""Every raw line is parsed once in a run of ingestion, and every table comes from that pass."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from noted_lines import count_notes, note_in
from pyspark.sql import SparkSession

from include.settings import Settings
from include.stage_names import Stage
from include.stage_request import StageRequest
from include.tables import BRONZE_METRICS, OBSERVATIONS
from spark_jobs.ingest import stage as ingest
from spark_jobs.lake import Lake
from spark_jobs.raw_parsing import typed_lines
from tests.spark.raw_builders import PolledJob, utc, write

pytestmark = [pytest.mark.spark, pytest.mark.long]

START = utc("2026-11-20T10:00")
HOUR = timedelta(hours=1)


def test_also_where_rows_come_late(
    spark: SparkSession, settings: Settings, lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second half of the hour before lies in this hour's directory, its first half in its own."""
    raw, job = Path(settings.paths.raw), PolledJob(running_at=START - 2 * HOUR)
    before, now, after = (job.hour(START + hours * HOUR) for hours in (-1, 0, 1))
    half = len(before) // 2
    write(raw, START - HOUR, before[:half])
    write(raw, START, [*now, "no JSON"])
    write(raw, START, before[half:], name="late.jsonl.gz")
    write(raw, START + HOUR, after)
    notes = tmp_path / "notes"
    monkeypatch.setattr(typed_lines, "_read_together", note_in(notes))
    summary = ingest.run(spark, settings, StageRequest(Stage.INGEST, START + HOUR, START, START + HOUR))
    assert summary["start"] == "2026-11-20T09:00:00Z"
    files, lines = count_notes(notes)
    assert set(lines.values()) == {1}
    assert len(lines) == len(before) + len(now) + 1  # none of the hour after
    # That the interval is widened is known when its files were read: of the file before, other times are read then.
    in_order = {name.partition("hour=")[2]: times for name, times in sorted(files.items())}
    assert in_order == {"09/a.jsonl.gz": 2, "10/a.jsonl.gz": 1, "10/late.jsonl.gz": 1, "11/a.jsonl.gz": 1}
    assert lake.read(BRONZE_METRICS).count() == 2 * 12 * 3
    assert lake.read(OBSERVATIONS).where("date = '2026-11-20' AND hour = 10").count() > 0
