"""Samples of vertices by id to windows of operators: what one window says, and that no other is lost."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from include.arrow_rows import arrow_columns
from include.tables import AGGREGATES
from spark_jobs.job_history.job_shapes import JobShape
from spark_jobs.job_history.known_jobs import KnownJobs, ValidityPeriods
from spark_jobs.job_history.observations import MEASURED, measure_observations, name_samples
from spark_jobs.job_history.stop_effects import SOURCE_COLUMNS, StopSpans
from spark_jobs.job_history.vertex_windows import read_windows
from spark_jobs.raw_parsing.sample_columns import read_samples

START_S = 1_763_632_800  # a whole hour
FORMER, LATER = "a" * 32, "b" * 32
NAMES = {
    **dict.fromkeys(("cluster", "job_id", "vertex_id", "job", "operator"), "STRING"),
    "is_source": "BOOLEAN",
    **dict.fromkeys(("named_from", "named_until"), "TIMESTAMP"),
}
CHANGES = {
    **dict.fromkeys(("cluster", "job_id", "vertex_id"), "STRING"),
    "parallelism": "INT",
    **dict.fromkeys(("valid_from", "valid_to"), "TIMESTAMP"),
}
UNSETTLED = {"cluster": "STRING", "job_id": "STRING", "window_start": "TIMESTAMP"}
Metrics = list[tuple[str, float, float, float, float, float]]
Reply = tuple[str, str, float, Metrics]


def table(columns: dict[str, str], *rows: tuple[object, ...]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(columns, row, strict=True)) for row in rows], arrow_columns(columns))


def at_us(second: float) -> int:
    return round(1e6 * (START_S + second))


def polled(job_id: str, vertex: str, second: float, records: float) -> Reply:
    return job_id, vertex * 32, second, [("numRecordsIn", 0.0, records, records, records, 0.0)]


def named(job_id: str, vertex: str, job: str, operator: str = "map", is_source: bool = False) -> tuple[object, ...]:
    return "c", job_id, vertex * 32, job, operator, is_source, None, None


def known(
    names: list[tuple[object, ...]], changes: pa.Table | None = None, unsettled: pa.Table | None = None
) -> KnownJobs:
    return KnownJobs(
        table(NAMES, *names),
        table(CHANGES) if changes is None else changes,
        table(UNSETTLED) if unsettled is None else unsettled,
        windows_s={"c": 60},
        shapes={("c", FORMER): JobShape(has_stopped=True)},
        stops=StopSpans({}, 0, 0, 5.0),
    )


def samples(*replies: Reply) -> list[pa.RecordBatch]:
    metrics = pa.array([one[3] for one in replies], arrow_columns({"metrics": AGGREGATES}).field("metrics").type)
    sample = read_samples(metrics)
    columns = {
        "place": pa.array([1] * len(replies), pa.int64()),
        "cluster": pa.array(["c"] * len(replies)),
        "job_id": pa.array([one[0] for one in replies]),
        "vertex_id": pa.array([one[1] for one in replies]),
        "observed_at": pa.array([at_us(one[2]) for one in replies], pa.timestamp("us", "UTC")),
        **dict(zip([field.name for field in sample.type], sample.flatten(), strict=True)),
    }
    return [pa.RecordBatch.from_pydict(columns)]


def windows(replies: list[Reply], jobs: KnownJobs) -> list[dict[str, Any]]:
    made = measure_observations(samples(*replies), arrow_columns(MEASURED), jobs, None)
    return [row for batch in made for row in batch.to_pylist()]


def sources(replies: list[Reply], jobs: KnownJobs) -> list[dict[str, Any]]:
    schema = SOURCE_COLUMNS.append(pa.field("window_start", pa.timestamp("us", "UTC")))
    read = read_windows(name_samples(samples(*replies), jobs), schema, jobs.shapes)
    return [row for batch in read for row in batch.to_pylist() if row["window_start"] is None]


def began(row: dict[str, Any]) -> float:
    """Seconds from START_S to a window's start."""
    return float(row["window_start"].timestamp() - START_S)


def test_of_two_ids_in_one_window_the_later_stands() -> None:
    polls = [
        *[polled(FORMER, "1", second, 10.0 * second) for second in (0, 30, 60, 90, 130)],
        *[polled(LATER, "1", second, 7.0 * (second - 140)) for second in (140, 160, 190)],
        *[polled("c" * 32, "2", second, 5.0 * second) for second in (0, 30, 60, 90, 130)],
    ]
    names = [named(FORMER, "1", "rides"), named(LATER, "1", "rides"), named("c" * 32, "2", "fares")]
    observed = {(row["job"], began(row)): row for row in windows(polls, known(names))}
    assert {key: row["job_id"] for key, row in observed.items()} == {
        ("fares", 0): "c" * 32,
        ("fares", 60): "c" * 32,
        ("fares", 120): "c" * 32,
        ("rides", 0): FORMER,
        ("rides", 60): FORMER,
        ("rides", 120): LATER,
        ("rides", 180): LATER,
    }
    rates = {key: row["observed_processing_rate_per_s"] for key, row in observed.items()}
    assert (rates["fares", 60], rates["rides", 60], rates["rides", 120]) == (5.0, 10.0, 7.0)
    assert observed["rides", 120]["samples"] == 2


def test_a_source_shows_its_backlog_whatever_its_operator_is_called() -> None:
    def shown(*ids: str) -> Metrics:
        return [(name, 0.0, 1.0, 1.0, float(place), 0.0) for place, name in enumerate(ids, 1)]

    replies = [
        shown("numRecordsOut", "xpendingRecords", "Source__a.b.pendingRecords"),
        shown("pendingRecords", "numRecordsOut"),
        shown("numRecordsOut", "Source__pendingRecords.numLate"),
        shown("Source__a.pendingRecords"),  # of no source
    ]
    polls = [(FORMER, str(place) * 32, 0.0, metrics) for place, metrics in enumerate(replies)]
    names = [named(FORMER, str(place), "rides", f"v{place}", is_source=place < 3) for place in range(len(replies))]
    assert {row["operator"]: row["pending"] for row in sources(polls, known(names))} == {"v0": 3.0, "v1": 1.0}


def timed(second: float, emitted: float, pending: float, ran_s: float) -> Reply:
    """A source's reply after ``ran_s`` seconds of running, half of them busy."""
    spent = [("accumulateBusyTimeMs", 500.0), ("accumulateIdleTimeMs", 500.0), ("accumulateBackPressuredTimeMs", 0.0)]
    values = {"numRecordsOut": emitted, "pendingRecords": pending} | {name: share * ran_s for name, share in spent}
    return FORMER, "1" * 32, second, [(name, 0.0, value, value, value, 0.0) for name, value in values.items()]


def test_metrics_that_stand_still_are_no_measurement_and_an_idle_job_is_one() -> None:
    """A lost TaskManager holds up all metrics: without a look at their age the load would be zero until they move."""
    moving = [timed(second, 100.0 * second, 50.0, second) for second in (0, 30, 60, 90)]
    still = [timed(second, 9000.0, 50.0, 90) for second in range(120, 360, 30)]
    idle = [timed(second, 9000.0, 0.0, second) for second in range(360, 480, 30)]
    jobs, polls = known([named(FORMER, "1", "rides", "Source: rides", is_source=True)]), [*moving, *still, *idle]
    observed = {began(row): row["target_data_rate_per_s"] for row in windows(polls, jobs)}
    assert observed == {0: 100.0, 60: 100.0, 360: 0.0, 420: 0.0}
    assert [row["since_last_s"] for row in sources(polls, jobs)] == [None, 30.0, 30.0, 30.0, 270.0, 30.0, 30.0, 30.0]


def taken(second: float, subtasks: int = 4) -> Reply:
    return FORMER, "1" * 32, second, [("numRecordsIn", 0.0, 1e4, 1e3 + second, subtasks * (1e3 + second), 0.0)]


def test_a_window_has_the_parallelism_at_its_end_and_is_disturbed_where_it_is_unsettled() -> None:
    changes = table(
        CHANGES, ("c", FORMER, "1" * 32, 2, at_us(0), at_us(120)), ("c", FORMER, "1" * 32, 4, at_us(120), at_us(170))
    )
    unsettled = table(UNSETTLED, ("c", FORMER, at_us(60)), ("c", LATER, at_us(0)))
    jobs = known([named(FORMER, "1", "rides")], changes, unsettled)
    rows = windows([taken(second) for second in (0, 30, 60, 90, 130)], jobs)
    assert [(began(row), row["parallelism"], row["disturbed"]) for row in rows] == [
        (0, 2, False),
        (60, 2, True),
        (120, None, False),
    ]
    assert {(str(row["date"]), row["hour"]) for row in rows} == {("2025-11-20", 10)}


def test_a_sample_of_fewer_subtasks_than_ran_is_left_out() -> None:
    polls = [taken(0), taken(10, 3), taken(20)]
    changes = table(CHANGES, ("c", FORMER, "1" * 32, 4, at_us(5), at_us(60)))
    for some, left in ((changes, [0, 20]), (table(CHANGES), [0, 10, 20])):
        (batch,) = name_samples(samples(*polls), known([named(FORMER, "1", "rides")], some))
        assert batch["observed_at"].cast(pa.int64()).to_pylist() == [at_us(second) for second in left]


@pytest.mark.parametrize(
    ("key", "second", "row"),
    [
        ("a", -1, None),
        ("a", 0, 1),
        ("a", 9, 1),
        ("a", 10, 0),
        ("a", 1e6, 0),
        ("b", -1e6, 2),
        ("b", 5, None),
        ("x", 0, None),
    ],
)
def test_of_periods_the_one_that_has_begun_and_not_ended_holds(key: str, second: float, row: int | None) -> None:
    columns = {"key": "STRING", "since": "TIMESTAMP", "until": "TIMESTAMP"}
    rows = table(columns, ("a", at_us(10), None), ("a", at_us(0), at_us(10)), ("b", None, at_us(5)))
    asked = pa.table({"key": [key]})
    place = ValidityPeriods(rows, ["key"], "since", "until").find(asked, pa.array([at_us(second)]).to_numpy())
    assert place.tolist() == [-1 if row is None else row]
    assert ValidityPeriods(rows.slice(0, 0), ["key"], "since", "until").find(asked, place).tolist() == [-1]
