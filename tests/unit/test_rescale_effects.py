"""Catch-ups: dated by the first measurement that shows them, unknown where nothing was measured for long."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa

from include.arrow_rows import arrow_columns
from include.settings import Ingest
from include.utc import Interval
from spark_jobs.job_history.rescales import build_rescales, find_spans
from spark_jobs.job_history.stop_effects import EFFECT_COLUMNS, SOURCE_COLUMNS, read_effects

START = datetime(2026, 11, 20, 10, tzinfo=UTC)
JOB_ID = "a" * 32
Row = dict[str, Any]


def at(second: float) -> datetime:
    return START + timedelta(seconds=second)


def failure(job: str, started: float, running: float) -> Row:
    vector = [{"vertex_id": "1", "parallelism": 2, "operator": "src"}]
    unknown = ("checkpoint_at", "state_size_bytes", "next_started_at", "flink_trigger")
    return {
        **{"cluster": "c", "job": job, "job_id": JOB_ID, "started_at": at(started), "running_at": at(running)},
        **{"is_open": False, "kind": "restart", "cause": "lost", "cause_kind": "job_failure"},
        **{"vector_before": vector, "vector_after": vector, **dict.fromkeys(unknown)},
    }


def samples(job: str, seconds: list[float], lags: list[float]) -> list[Row]:
    before = [None, *seconds[:-1]]
    return [
        {
            **{"cluster": "c", "job": job, "operator": "src", "window_s": 60, "observed_at": at(second), "age_s": lag},
            **{"since_last_s": None if last is None else second - last, "target_per_s": 100.0},
        }
        for second, last, lag in zip(seconds, before, lags, strict=True)
    ]


def rescales(events: list[Row], sources: list[Row], lag_s: float, earlier: tuple[Row, ...] = ()) -> list[Row]:
    """The rows of silver.rescales, by way of the effects that a worker finds."""
    rules, hours = Ingest(caught_up_lag_s=lag_s), Interval(START, START + timedelta(hours=1))
    batch = pa.RecordBatch.from_pylist(sources, SOURCE_COLUMNS)
    made = read_effects(batch, find_spans(events, rules, hours), arrow_columns(EFFECT_COLUMNS))
    return build_rescales(events, [row for one in made for row in one.to_pylist()], earlier)


def test_a_catch_up_that_nothing_measured_has_no_time() -> None:
    """Down for 170 s, then ``polled`` is measured every 30 s; of ``unseen`` nothing is known for 10 minutes."""
    polled = samples("polled", [0, 30, 230, 260, 290], [0.0, 0.0, 90.0, 2.0, 1.0])
    unseen = samples("unseen", [0, 30, 830, 860, 890], [0.0, 0.0, 2.0, 1.0, 0.0])
    behind = samples("behind", [0, 30, 830, 860, 890], [0.0, 0.0, 90.0, 50.0, 1.0])
    events = [failure(job, 35, 205) for job in ("polled", "unseen", "behind")]
    rows = {row["job"]: row for row in rescales(events, [*polled, *unseen, *behind], 10)}
    assert {job: row["catch_up_s"] for job, row in rows.items()} == {"polled": 55.0, "unseen": None, "behind": 685.0}
    assert {row["downtime_s"] for row in rows.values()} == {170.0}
    assert rows["unseen"]["parallelism_after"] == {"src": 2}


def test_what_was_known_stands_where_a_run_does_not_see_all() -> None:
    event, polled = failure("polled", 35, 205), samples("polled", [0, 30, 230, 260, 290], [0.0, 0.0, 90.0, 2.0, 1.0])
    known = {**event, "caught_up_at": at(900), "load_per_s": 7.0}
    for sources, catch_up_s in ((polled, 55.0), (polled[:3], 695.0), ([], 695.0)):
        (row,) = rescales([event], sources, 10, (known,))
        assert row["catch_up_s"] == catch_up_s
        assert (row["load_per_s"] == 7.0) == (catch_up_s == 695.0)


def source_sample(
    operator: str, second: float, since: float | None, target: float | None, totals: tuple[float, float, float]
) -> Row:
    """A sample of one source; ``totals``: taken_total, pending and age_s."""
    values = (300, at(second), since, totals[2], target, *totals[:2])
    return dict(zip(SOURCE_COLUMNS.names, ("c", "two", operator, *values), strict=True))


def test_what_several_sources_did_until_one_poll_is_added_up() -> None:
    """The replies of a poll come one after the other; the second source has caught up a poll after the first."""
    rows = [
        source_sample("big", 0, 300.0, 90.0, (9e9, 30.0, 0.3)),
        source_sample("small", 0.02, 300.0, 10.0, (1e9, 4.0, 0.4)),
        source_sample("big", 230, None, None, (4000.0, 50.0, 0.3)),
        source_sample("small", 230.02, None, None, (400.0, 900.0, 56.0)),
        source_sample("big", 290, 60.0, 100.0, (10_000.0, 60.0, 0.6)),
        source_sample("small", 290.02, 60.0, 20.0, (1500.0, 8.0, 0.4)),
        source_sample("big", 590, 300.0, 110.0, (40_000.0, 60.0, 0.6)),
        source_sample("small", 590.02, 300.0, 30.0, (4500.0, 8.0, 0.4)),
    ]
    late = [row for row in rows if (row["operator"], row["observed_at"]) != ("big", at(290))]
    result = {name: rescales([failure("two", 35, 205)], own, 5)[0] for name, own in (("whole", rows), ("late", late))}
    whole = result["whole"]
    assert (whole["emitted_records"], whole["pending_records"]) == (11_500.0, 68.0)
    assert whole["pending_before_records"] == 34.0
    assert (whole["catch_up_s"], whole["unseen_s"]) == (85.02, 60.0)
    assert dict(whole["source_load_per_s"]) == {"big": (90.0 + 105.0) / 2, "small": (10.0 + 25.0) / 2}
    assert result["late"]["catch_up_s"] == 85.02
    assert result["late"]["emitted_records"] is None  # what one of them did until then is not known
