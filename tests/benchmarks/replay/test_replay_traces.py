"""Traces of any form, and jobs under them."""

from __future__ import annotations

import gzip
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

from benchmarks.replay.replay_jobs import JOBS, PEAK_SHARE, read_job
from benchmarks.replay.replay_traces import ColumnChoice, TraceError, read_trace
from lab.replay.workload import compute_curves, compute_source_gains
from lab.simulation.spec import SpecError

START = datetime(2024, 3, 4, tzinfo=UTC)
EPOCH = int(START.timestamp())


def write(path: Path, rows: list[tuple[object, object]], header: str | None = "time,rate") -> Path:
    lines = [header] if header else []
    lines += [f"{time},{rate}" for time, rate in rows]
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def stamps(count: int, step_s: float) -> list[str]:
    return [(START + timedelta(seconds=step_s * n)).isoformat(sep=" ") for n in range(count)]


def test_five_minutes_stay_as_they_are_under_any_header_or_none(tmp_path: Path) -> None:
    rates = np.arange(48.0) + 1
    rows = list(zip(stamps(48, 300), rates, strict=True))
    for header in ("date,messages", "Zeit,Last", None):
        trace = read_trace(write(tmp_path / "t.csv", rows, header))
        assert (trace.start_s, trace.name) == (EPOCH, "t")
        assert np.array_equal(trace.values, rates)


def test_columns_are_found_by_what_they_hold(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    lines = [f"{n % 7},web,{1000 * (EPOCH + 300 * n)},{n + 1}" for n in range(48)]
    path.write_text("\n".join(["weekday,name,ms,load", *lines]), encoding="utf-8")
    with pytest.raises(TraceError, match=r"weekday, load can be the rate; say which with --rate-column"):
        read_trace(path)
    trace = read_trace(path, ColumnChoice(rate="load"))
    assert trace.start_s == EPOCH
    assert "time: ms, rate: load" in trace.notes[0]
    assert trace.values[0] == 1.0
    with pytest.raises(TraceError, match="--rate-column 'loads' is none of its columns"):
        read_trace(path, ColumnChoice(rate="loads"))


def test_the_index_that_pandas_writes_is_no_rate(tmp_path: Path) -> None:
    rates = 500.0 + np.arange(48.0) % 7
    lines = [f"{n},{at},{rate}" for n, (at, rate) in enumerate(zip(stamps(48, 300), rates, strict=True))]
    path = tmp_path / "t.csv"
    path.write_text("\n".join([",time,requests", *lines]), encoding="utf-8")
    trace = read_trace(path)
    assert np.array_equal(trace.values, rates)
    assert "rate: requests, left out as row numbers: column 1" in trace.notes[0]
    path.write_text("\n".join(["id,time,requests", *lines]), encoding="utf-8")
    with pytest.raises(TraceError, match="id, requests can be the rate"):  # a column with a name may mean something
        read_trace(path)
    assert np.array_equal(read_trace(path, ColumnChoice(rate="3")).values, rates)


def test_two_columns_of_times_are_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    lines = [f"{at},2020-01-01 00:00:{n:02},{n + 1}" for n, at in enumerate(stamps(48, 300))]
    path.write_text("\n".join(["sent,stored,load", *lines]), encoding="utf-8")
    with pytest.raises(TraceError, match="sent, stored can be the time; say which with --time-column"):
        read_trace(path)
    assert read_trace(path, ColumnChoice(time="sent")).start_s == EPOCH


def days(form: str, first: datetime) -> list[tuple[object, object]]:
    return [((first + timedelta(minutes=5 * n)).strftime(form), n + 1) for n in range(48)]


@pytest.mark.parametrize("form", ["%d/%m/%Y %H:%M", "%m/%d/%Y %H:%M", "%d.%m.%Y %H:%M", "%d/%m/%y %H:%M"])
def test_a_day_that_may_be_a_month_is_asked_for(tmp_path: Path, form: str) -> None:
    path = write(tmp_path / "t.csv", days(form, datetime(2026, 4, 3, tzinfo=UTC)))
    with pytest.raises(TraceError, match=r"(day/month or month/day|two digits for a year); .*--time-format"):
        read_trace(path)
    assert read_trace(path, ColumnChoice(time_format=form)).start_s == datetime(2026, 4, 3, tzinfo=UTC).timestamp()


@pytest.mark.parametrize("form", ["%d/%m/%Y %H:%M", "%m/%d/%Y %H:%M", "%d.%m.%Y %H:%M"])
def test_a_day_above_twelve_says_which_it_is(tmp_path: Path, form: str) -> None:
    first = datetime(2026, 4, 12, 22, tzinfo=UTC)  # over midnight to the 13th
    assert read_trace(write(tmp_path / "t.csv", days(form, first))).start_s == first.timestamp()


@pytest.mark.parametrize(("header", "unit"), [("time_s,rate", 1), ("time_ms,rate", 1000), ("t [ms],rate", 1000)])
def test_small_numbers_are_times_in_the_unit_that_their_header_names(tmp_path: Path, header: str, unit: int) -> None:
    rows = [(300 * unit * n, 10 + n % 5) for n in range(48)]
    assert read_trace(write(tmp_path / "t.csv", rows, header)).start_s == 0
    with pytest.raises(TraceError, match="may be seconds, milliseconds or numbers of rows"):
        read_trace(write(tmp_path / "t.csv", rows, "t,rate"))


def test_compressed_files_are_read(tmp_path: Path) -> None:
    path = tmp_path / "t.csv.gz"
    rows = "\n".join(f"{at},{n + 1}" for n, at in enumerate(stamps(48, 300)))
    path.write_bytes(gzip.compress(f"a,b\n{rows}".encode()))
    assert len(read_trace(path).values) == 48


def test_fine_steps_become_means(tmp_path: Path) -> None:
    rows = [(EPOCH + n, 10.0 if n % 2 else 20.0) for n in range(7200)]
    trace = read_trace(write(tmp_path / "t.csv", rows))
    assert len(trace.values) == 24
    np.testing.assert_allclose(trace.values, 15.0)
    assert "every 1 s, averaged" in " ".join(trace.notes)


def test_coarse_steps_are_joined(tmp_path: Path) -> None:
    rows = list(zip(stamps(12, 1800), 100.0 * (np.arange(12) + 1), strict=True))
    trace = read_trace(write(tmp_path / "t.csv", rows))
    assert len(trace.values) == 12 * 6
    assert trace.values[3:-3].mean() == pytest.approx(650.0, rel=0.01)
    assert np.all(np.diff(trace.values) >= 0)


def test_gaps_are_filled_and_told(tmp_path: Path) -> None:
    rates = 100.0 + np.arange(2 * 288.0) % 288
    retained = np.ones(len(rates), bool)
    retained[20:26] = False  # half an hour
    retained[288 + 100 : 288 + 148] = False  # four hours of the second day
    rows = [row for row, keep in zip(zip(stamps(len(rates), 300), rates, strict=True), retained, strict=True) if keep]
    rows[50] = (rows[50][0], "n/a")
    trace = read_trace(write(tmp_path / "t.csv", rows))
    np.testing.assert_allclose(trace.values, rates)
    notes = " ".join(trace.notes)
    for part in ("2 gaps of up to an hour", "1 longer gaps, 4.0 hours, FILLED", "1 rows"):
        assert part in notes


@pytest.mark.parametrize(
    ("rows", "why"),
    [
        ([("2024-01-01 00:00", 1), ("2024-01-01 03:00", 2), ("2024-01-01 06:00", 3)], "a step of"),
        ([("2024-01-01 00:00", 1), ("2024-01-01 00:05", 2)], "too short"),
        ([("x", 1), ("y", 2)], "needs a column of times"),
        (list(zip(stamps(48, 300), [0] * 48, strict=True)), "no rate"),
    ],
)
def test_what_is_no_trace_is_refused(tmp_path: Path, rows: list[tuple[object, object]], why: str) -> None:
    with pytest.raises(TraceError, match=why):
        read_trace(write(tmp_path / "t.csv", rows))


@pytest.mark.parametrize("name", JOBS)
def test_the_peak_needs_its_share_of_the_slots(tmp_path: Path, name: str) -> None:
    rates = 100.0 + 50.0 * np.sin(np.arange(288.0) / 40)
    trace = read_trace(write(tmp_path / "t.csv", list(zip(stamps(288, 300), rates, strict=True))))
    workload = read_job(name).build_workload(trace, 10)
    loads = (workload.compute_means(300) @ compute_source_gains(workload.spec).T).max(axis=0)
    needs = [
        np.interp(load, curve, np.arange(len(curve))) / workload.spec.slots_max
        for load, curve in zip(loads, compute_curves(workload.spec), strict=True)
    ]
    assert max(needs) == pytest.approx(PEAK_SHARE, rel=0.01)


def test_the_second_source_of_the_graph_lags(tmp_path: Path) -> None:
    rates = 100.0 + np.arange(2 * 288.0) % 288
    trace = read_trace(write(tmp_path / "t.csv", list(zip(stamps(len(rates), 300), rates, strict=True))))
    clicks, purchases = read_job("eight").build_workload(trace, 10).compute_means(300).T
    np.testing.assert_allclose(purchases[300:500] / clicks[300 - 36 : 500 - 36], 0.15, rtol=0.02)
    assert purchases[10] == pytest.approx(0.15 * clicks[288 - 36 + 10], rel=0.02)


def test_a_job_may_come_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "job.json"
    operators = [
        {"name": "in", "upstream": [], "per_subtask_per_s": 100.0},
        {"name": "out", "upstream": ["in"], "per_subtask_per_s": 50.0, "selectivity": 0.0},
    ]
    described = {"name": "mine", "slots_max": 12, "operators": operators, "sources": {"in": {"weight": 2}}}
    path.write_text(json.dumps(described), encoding="utf-8")
    job = read_job(str(path))
    assert (job.spec.name, job.spec.slots_max, job.shares[0].weight) == ("mine", 12, 2)
    path.write_text(json.dumps({**described, "sources": {"out": {}}}), encoding="utf-8")
    with pytest.raises(SpecError, match="not sources"):
        read_job(str(path))
    path.write_text(json.dumps({**described, "checkpoint_interval_s": 180, "nonsense": 1}), encoding="utf-8")
    with pytest.raises(SpecError, match="has no checkpoint_interval_s, nonsense"):
        read_job(str(path))
    path.write_text('{"name": "mine"}', encoding="utf-8")
    with pytest.raises(SpecError, match="--help"):
        read_job(str(path))
    with pytest.raises(SpecError, match="no job is called"):
        read_job("nothing")
