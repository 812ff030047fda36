"""Rows of vertices from Arrow to windows, as a Python worker of Spark does it."""

from __future__ import annotations

import csv
import math
from collections.abc import ItemsView
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from vertex_batches import START_S, batches, polled, windows

from spark_jobs.job_history.job_shapes import JobShape, JobShapes, read_shapes
from spark_jobs.job_history.vertex_rows import read_vertices
from spark_jobs.job_history.vertex_windows import read_windows

SOURCES = pa.schema(
    [
        ("job", pa.string()),
        *[(name, pa.timestamp("us", "UTC")) for name in ("window_start", "observed_at")],
        *[(name, pa.float64()) for name in ("since_last_s", "age_s", "target_per_s", "taken_total", "pending")],
    ]
)


def fleet() -> list[dict[str, object]]:
    return [
        polled(f"job {job}", 20.0 * poll, in_total=(job + 1.0) * 20 * poll, pending=5.0 * poll)
        for job in range(4)
        for poll in range(3 + 5 * job)
    ]


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_batches_may_end_anywhere(size: int) -> None:
    assert windows(fleet(), size) == windows(fleet())
    counts = [len(one.polls.at_us) for one in read_vertices(batches(fleet(), size))]
    assert sum(counts) == len(fleet())
    assert len(counts) >= (4 if size == 1 else 1)
    assert windows([]) == []


def test_rates_are_of_a_vertex_and_its_window() -> None:
    result = {(row["job"], row["window_start"].timestamp() - START_S): row for row in windows(fleet())}
    assert len(result) == 1 + 3 + 5 + 6
    for (job, began), row in result.items():
        taken = int(str(job)[-1]) + 1.0
        assert row["observed_processing_rate_per_s"] == taken, began
        assert row["target_data_rate_per_s"] == taken + 0.25


def test_of_two_ids_in_one_window_the_later_stands() -> None:
    former = [polled("rides", second, "b", in_total=10.0 * second) for second in (0, 30, 60, 90)]
    later = [polled("rides", second, "c", in_total=7.0 * second) for second in (95, 115, 130)]
    alike = [polled("rides", 130, "d", in_total=1.0)]
    other = [polled("fares", 100, "e", in_total=1.0)]
    result = [(row["job"], row["job_id"], row["window_start"].timestamp() - START_S, row["samples"]) for row in
              windows([*other, *former, *later, *alike])]  # fmt: skip
    assert result == [("fares", "e", 60, 1), ("rides", "b", 0, 2), ("rides", "c", 60, 2), ("rides", "c", 120, 1)]


def test_what_is_not_known_is_null() -> None:
    (row,) = windows([polled("rides", 0, operator="map", pending=3.0)])
    assert row["observed_processing_rate_per_s"] is None
    assert row["target_data_rate_per_s"] is None
    assert row["pending_records"] is None  # of no source
    (source,) = windows([polled("rides", 0, pending=3.0, in_total=math.nan)])
    assert source["pending_records"] == 3.0
    assert source["target_data_rate_per_s"] is None


def test_samples_of_sources_show_their_age_and_what_arrives() -> None:
    rows = [
        polled("rides", 0, in_total=0.0, pending=10.0),
        polled("rides", 10, in_total=50.0),
        polled("rides", 30, in_total=150.0, pending=20.0),
        polled("rides", 300, in_total=160.0, pending=0.0),
        polled("rides", 310, in_total=210.0, pending=10.0),
    ]
    for has_stopped in (False, True):
        shapes = {("c", "a"): JobShape(has_stopped=has_stopped)}
        every = [row for batch in read_windows(batches(rows), SOURCES, shapes) for row in batch.to_pylist()]
        result = [row for row in every if row["window_start"] is None]
        assert len(every) == 2 + len(result)
        assert len(result) == (4 if has_stopped else 0)
    assert [row["since_last_s"] for row in result] == [None, 20.0, 270.0, 10.0]
    assert [row["age_s"] for row in result] == [56.0, 112.0, 0.0, 2.0]  # at 50 in 280 s, by the known ones
    assert [row["target_per_s"] for row in result] == [None, None, None, 6.0]
    assert [row["taken_total"] for row in result] == [None, 150.0, 160.0, 210.0]


SOURCE, WORK = "Source: x", "work"
FILLING = {("c", "a"): JobShape({f"a-{SOURCE}": [], f"a-{WORK}": [f"a-{SOURCE}"]})}


def filling(until_s: int, since_s: int = 0) -> list[dict[str, object]]:
    """700/s are sent and 500/s taken, nothing waits in front of the source."""
    source = [
        polled("rides", at, "a", SOURCE, in_total=700.0 * at, out_total=700.0 * at, pending=0.0)
        for at in range(since_s, until_s + 1, 20)
    ]
    work = [polled("rides", at + 0.5, "a", WORK, in_total=500.0 * at) for at in range(since_s, until_s + 1, 20)]
    return [row | {"vertex_id": f"a-{row['operator']}"} for row in (*source, *work)]


def of_source(rows: list[dict[str, object]], shapes: JobShapes) -> list[dict[str, object]]:
    return [row for row in windows(rows, shapes=shapes) if row["operator"] == SOURCE]


def test_records_that_an_operator_has_not_taken_yet_are_late_with_nothing_pending():
    """As tests/unit/test_live_windows.py has it of a controller: one rule."""
    row = of_source(filling(280), FILLING)[-1]
    assert (row["pending_records"], row["latency_ms"]) == (0.0, 0.0)
    assert row["outstanding_records"] == pytest.approx(200 * 280)
    assert row["age_s"] == pytest.approx(200 * 280 / 700)
    assert {row["age_s"] for row in windows(filling(280), shapes=FILLING) if row["operator"] == WORK} == {None}


def test_without_its_edges_a_source_is_as_old_as_what_is_pending():
    row = of_source(filling(280), {})[-1]
    assert (row["outstanding_records"], row["age_s"]) == (None, 0.0)
    unmeasured = {("c", "a"): JobShape({**FILLING["c", "a"].feeders, "a-sink": [f"a-{WORK}"]})}
    assert of_source(filling(280), unmeasured)[-1]["outstanding_records"] is None


def test_an_hour_is_the_same_however_much_was_read_before_it():
    whole = of_source(filling(7180), FILLING)
    alone = of_source(filling(7180, 3360), FILLING)  # from four windows before the hour on
    assert len(whole) == 120
    assert whole[60:] == alone[4:]
    assert whole[-1]["age_s"] == pytest.approx(200 * 7180 / 700)


def test_checkpoints_of_a_job_are_put_in_order_once_for_all_hours():
    """Three weeks of them, put in order for each of their hours, took more than all else of the windows."""

    class Counted(dict[int, int | None]):
        times = 0

        def items(self) -> ItemsView[int, int | None]:
            self.times += 1
            return super().items()

    done = Counted({1000 * (START_S + at): 1000 * (START_S + at - 60) for at in range(100, 10_000, 100)})
    result = of_source(filling(10_000), {("c", "a"): JobShape(FILLING["c", "a"].feeders, done)})
    assert result[-1]["age_s"] == pytest.approx(160.0)
    assert done.times == 1


IDLE = {"busy_total_ms": 420.0, "busy_max_total_ms": 420.0, "idle_total_ms": 580.0, "backpressured_total_ms": 0.0}


def stuck(**others: float) -> list[dict[str, object]]:
    """Windows of a source of 1,000/s that reports 500,000 for two hours; ``others``: its time, ms per second."""
    times = IDLE | others
    rows = [
        polled("rides", at, in_total=1000.0 * at, pending=5e5, **{name: each * at for name, each in times.items()})
        for at in range(0, 7200, 60)
    ]
    return windows(rows, shapes={("c", "a"): JobShape({"aaa": []})})


def test_a_backlog_that_stands_while_its_source_has_idle_time_is_no_work():
    """Of a dynamic Kafka source a cluster was taken away."""
    result = stuck()
    assert {row["pending_records"] for row in result} == {5e5}
    assert {(row["outstanding_records"], row["age_s"]) for row in result[5:]} == {(0.0, 0.0)}  # the next hour, too


@pytest.mark.parametrize(
    "others",
    [
        {"idle_total_ms": 20.0, "busy_total_ms": 980.0},  # it works as fast as it can
        {"busy_max_total_ms": 1000.0},  # one subtask does
        {"backpressured_total_ms": 500.0, "busy_total_ms": 0.0},  # it is held up
        {"busy_max_total_ms": math.nan},  # nobody knows
    ],
)
def test_a_backlog_of_a_source_without_idle_time_is_work(others: dict[str, float]):
    last = stuck(**others)[-1]
    assert (last["outstanding_records"], last["age_s"]) == (5e5, pytest.approx(500.0, rel=0.01))


def test_a_checkpoint_bounds_the_age_by_the_clock_of_the_polls():
    """A barrier set out at 200 s and went through by 270 s; the JobManager's clock is 240 s behind."""
    shape = FILLING["c", "a"].feeders
    names = pa.Table.from_pylist(
        [{"cluster": "c", "job_id": "a", "vertex_id": key, "feeders": own} for key, own in shape.items()]
    )
    done = {"completed_at": 1000 * (START_S + 30), "triggered_at": 1000 * (START_S - 40), "ahead_ms": -240_000.0}
    shapes = read_shapes(names, pa.Table.from_pylist([{"cluster": "c", "job_id": "a", **done}]))
    assert of_source(filling(280), shapes)[-1]["age_s"] == pytest.approx(80.0)
    sooner = {**done, "triggered_at": 1000 * (START_S + 20)}
    shapes = read_shapes(names, pa.Table.from_pylist([{"cluster": "c", "job_id": "a", **sooner}]))
    assert of_source(filling(280), shapes)[-1]["age_s"] == pytest.approx(20.0)


def test_the_age_of_a_recorded_overload_is_near_the_true_one() -> None:
    """Of a real Flink (tests/unit/test_outstanding.py)."""
    with (Path(__file__).parents[1] / "support" / "recordings" / "overload_split.csv").open() as file:
        recorded = list(csv.DictReader(file))
    feeders = {"source": [], "slow": ["source"], "sink": ["slow"], "others": ["source"]}
    rows = []
    for name in sorted(feeders, key=lambda one: one != "source"):
        for row in recorded:
            told = {"in_total": row[f"{name}_taken"], "out_total": row[f"{name}_sent"]}
            told |= {"pending": row["pending"]} if name == "source" else {}
            operator = f"Source: {name}" if name == "source" else name
            values = {key: float(one or "nan") for key, one in told.items()}
            rows.append(polled("bufA", float(row["at_s"]) - START_S, "a", operator, **values) | {"vertex_id": name})
    true_s = {float(row["at_s"]): float(row["true_age_s"] or "nan") for row in recorded}
    errors = []
    for row in windows(rows, shapes={("c", "a"): JobShape(feeders)}):
        if row["operator"] == "Source: source":
            end_s = row["window_start"].timestamp() + 60
            last_s = max(at_s for at_s in true_s if at_s < end_s)
            if true_s[last_s] > 30:
                errors.append([abs(one - true_s[last_s]) for one in (row["age_s"], row["latency_ms"] / 1000.0)])
    error_s, before_s = np.mean(errors, axis=0)
    assert len(errors) > 4
    assert error_s < min(11.0, before_s / 3.0)
