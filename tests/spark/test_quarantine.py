"""Corrupt input of every kind: quarantined or refused by name, and no good row is lost (``ingested_twice.py``)."""

from __future__ import annotations

import pytest

from include.tables import BRONZE_METRICS, OBSERVATIONS, QUARANTINE
from include.utc import Interval, IntervalError
from tests.spark.ingested_twice import JOBS, UNCHANGED, VALUES_AT, IngestedTwice, bad_lines, good_rows
from tests.spark.raw_builders import SOURCE, VERTEX_IDS, WORK

pytestmark = pytest.mark.spark


def test_every_bad_line_is_named_and_no_good_row_is_lost(twice: IngestedTwice) -> None:
    assert good_rows(twice.after["lines"]) == good_rows(twice.before["lines"])
    bad = bad_lines(JOBS["lines"])
    assert twice.reasons("lines") == {**{reason: len(lines) for reason, lines in bad.items()}, "empty_file": 1}
    retained = {row["raw"] for row in twice.rows(QUARANTINE, "lines")}
    assert {line for lines in bad.values() for line in lines} <= retained
    quality = twice.quality("lines")
    assert quality["duplicate"] == 5
    assert quality["quarantined"] == sum(map(len, bad.values()))
    for count in ("duplicate", "quarantined"):
        assert sum(twice.quality(cluster)[count] for cluster in (*UNCHANGED, *JOBS)) == twice.summary[count]


def test_a_bad_value_is_taken_out_and_its_row_kept(twice: IngestedTwice) -> None:
    assert set(twice.reasons("values")) == {"value_negative", "value_huge", "value_nan", "wrong_type"}
    assert twice.summary["not_measured"] == 1  # Flink's own word for a busy time it did not measure
    rows = twice.select(BRONZE_METRICS, "values").where(f"vertex_id = '{VERTEX_IDS[WORK]}'").collect()
    assert len(rows) == 12
    (row,) = [row for row in rows if row["observed_at"] == VALUES_AT.replace(tzinfo=None)]
    values = {entry["id"]: entry["sum"] for entry in row["metrics"]}
    assert values["numRecordsIn"] is None
    assert values["idleTimeMsPerSecond"] == 500.0
    assert twice.select(OBSERVATIONS, "values").where("operator = 'Source: orders'").count() == 12
    assert twice.lake.read(OBSERVATIONS).where("true_processing_rate_per_s = double('NaN')").isEmpty()


def test_a_damaged_file_gives_what_can_be_read_and_its_name(twice: IngestedTwice) -> None:
    assert good_rows(twice.after["torn"]) == good_rows(twice.before["torn"])
    assert twice.reasons("torn").get("corrupt_file") == 1


def test_a_file_too_large_to_be_read_is_named(twice: IngestedTwice) -> None:
    assert good_rows(twice.after["large"]) == good_rows(twice.before["large"])
    assert twice.reasons("large") == {"file_too_large": 1}


def test_conflicting_duplicates_keep_the_first(twice: IngestedTwice) -> None:
    assert twice.reasons("conflict") == {"duplicate_conflict": 1}
    rows = twice.select(BRONZE_METRICS, "conflict").where(f"vertex_id = '{VERTEX_IDS[SOURCE]}'").collect()
    assert len(rows) == 12
    assert all(len(row["metrics"]) > 2 for row in rows)


@pytest.mark.parametrize(
    ("start", "end"),
    [
        ("2026-11-20T11:00", "2026-11-20T10:00"),
        ("2026-11-20T10:00", "2026-11-20T10:00"),
        ("2026-11-20T10:30", "2026-11-20T12:00"),
    ],
)
def test_an_interval_that_cannot_be_is_refused(start, end):
    with pytest.raises(IntervalError):
        Interval.parse(start, end)
