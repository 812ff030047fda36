"""silver.source_loads after whatever may happen to silver.observations: the windows of sources, by a plain loop."""

from __future__ import annotations

import math
import tempfile
from collections import defaultdict
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from deltalake import DeltaTable
from hypothesis import given, settings
from hypothesis import strategies as st

from include.arrow_rows import arrow_rows
from include.lake_table import LakeTable
from include.tables import OBSERVATIONS, SOURCE_LOADS
from lab.stages.inputs.source_series import SourceWindows
from spark_jobs.source_inputs import source_loads
from spark_jobs.source_inputs.source_loads import WHOLE_DAY
from spark_jobs.source_inputs.source_windows import HistoryBins

START = datetime(2026, 3, 20, 22, tzinfo=UTC)
HOURS = 4  # of two days
DAYS = START.date(), START.date() + timedelta(days=1)
RATES = (None, math.nan, math.inf, -5.0, 0.0, 700.0)


def update(lake: str, since: date, until: date) -> int:
    return source_loads.update_source_loads(lake, since, until, LakeTable(lake, SOURCE_LOADS).replace)


def window(hour: int, minute: int, **values: Any) -> dict[str, Any]:
    at = START + timedelta(hours=hour, minutes=minute)
    names = {"cluster": "c", "job": "orders", "operator": "source", "vertex_id": None, "is_source": True}
    return names | {"window_start": at, "window_s": 60, "date": at.date(), "hour": at.hour} | values


def slice_of(hour: int) -> str:
    at = START + timedelta(hours=hour)
    return f"date = DATE'{at.date()}' AND hour = {at.hour}"


def present(lake: str) -> dict[tuple[Any, ...], list[tuple[Any, ...]]]:
    """Return the windows of each source and hour as the table has them, without rows that name none."""
    if not DeltaTable.is_deltatable(f"{lake}/{SOURCE_LOADS.relative_path}"):
        return {}
    rows = LakeTable(lake, SOURCE_LOADS).read(list(SOURCE_LOADS.columns), *DAYS).to_pylist()
    named = [row for row in rows if row["operator"] is not None]
    assert all(row["start_s"] == [] for row in rows if row["operator"] is None)
    keys = [tuple(row[name] for name in SOURCE_LOADS.keys) for row in named]
    assert len(set(keys)) == len(keys)
    arrays = [(row["start_s"], row["window_s"], row["demand_per_s"]) for row in named]
    return {key: sorted(zip(*own, strict=True), key=str) for key, own in zip(keys, arrays, strict=True)}


def expected(lake: str) -> dict[tuple[Any, ...], list[tuple[Any, ...]]]:
    result = defaultdict(list)
    windows = LakeTable(lake, OBSERVATIONS)
    hours = windows.read_files_by_hour()
    newest = max((day for day, _ in hours), default=None)
    is_open = newest is not None and (newest, 23) not in hours
    for row in windows.read(list(OBSERVATIONS.columns), *DAYS).to_pylist():
        rate = row["target_data_rate_per_s"]
        is_known = rate is not None and 0 <= rate < math.inf and not row["target_is_lower_bound"]
        if row["is_source"]:
            one = (int(row["window_start"].timestamp()), row["window_s"], rate if is_known else None)
            own = row if is_open and row["date"] == newest else row | {"hour": WHOLE_DAY}
            result[tuple(own[name] for name in SOURCE_LOADS.keys)].append(one)
    return {key: sorted(own, key=str) for key, own in result.items()}


rows = st.builds(
    window,
    st.integers(0, HOURS - 1),
    st.integers(0, 59),
    operator=st.sampled_from(["source", "other source", "it's"]),
    vertex_id=st.sampled_from([None, "1" * 32]),
    is_source=st.sampled_from([True, True, False, None]),
    window_s=st.sampled_from([60, 900]),
    target_data_rate_per_s=st.sampled_from(RATES),
    target_is_lower_bound=st.sampled_from([None, False, True]),
)
changes = st.one_of(
    st.tuples(st.just("late rows"), st.lists(rows, min_size=1, max_size=6)),
    st.tuples(st.just("doubled rows"), st.lists(rows, min_size=1, max_size=3)),
    st.tuples(st.just("remade hour"), st.tuples(st.integers(0, HOURS - 1), st.lists(rows, max_size=4))),
    st.tuples(st.just("lost hour"), st.integers(0, HOURS - 1)),
    st.tuples(st.just("merged files"), st.none()),
)


def change(lake: str, kind: str, how: Any) -> None:
    table = LakeTable(lake, OBSERVATIONS)
    if kind in ("late rows", "doubled rows"):
        table.append(how * (1 + (kind == "doubled rows")))
        return
    if table.read_version() is None:
        return
    if kind == "merged files":
        DeltaTable(f"{lake}/{OBSERVATIONS.relative_path}").optimize.compact()
    else:
        hour, made = how if kind == "remade hour" else (how, [])
        at = START + timedelta(hours=hour)
        own = [row | {"date": at.date(), "hour": at.hour} for row in made]
        own = [row | {"window_start": at + timedelta(minutes=row["window_start"].minute)} for row in own]
        table.replace(arrow_rows(OBSERVATIONS, own), slice_of(hour))


@given(st.lists(st.tuples(changes, st.booleans()), min_size=1, max_size=5))
@settings(max_examples=10, deadline=None)
def test_the_table_has_the_windows_of_sources(steps: list[tuple[tuple[str, Any], bool]]) -> None:
    with tempfile.TemporaryDirectory() as lake:
        for (kind, how), is_read in steps:
            change(lake, kind, how)
            if is_read:
                update(lake, *DAYS)
                assert present(lake) == expected(lake), kind
        update(lake, *DAYS)
        assert present(lake) == expected(lake)
        assert update(lake, *DAYS) == 0  # nothing is read twice


def test_only_hours_that_changed_are_made_anew(tmp_path: Path) -> None:
    lake = str(tmp_path)
    assert update(lake, *DAYS) == 0  # without a table of windows
    table = LakeTable(lake, OBSERVATIONS)
    table.append([window(hour, minute, target_data_rate_per_s=1.0) for hour in range(HOURS) for minute in range(3)])
    assert update(lake, START.date(), START.date()) == 1  # a day that is over; two hours of the next one
    assert update(lake, *DAYS) == 2
    table.append([window(1, 30, target_data_rate_per_s=2.0)])
    table.append([window(3, 30, is_source=False)])
    assert update(lake, *DAYS) == 2
    assert update(lake, *DAYS) == 0
    table.replace(arrow_rows(OBSERVATIONS, []), slice_of(0))
    assert update(lake, *DAYS) == 1
    assert {key[-2:] for key in present(lake)} == {(START.date(), WHOLE_DAY), (DAYS[1], 0), (DAYS[1], 1)}


def test_a_day_is_one_slice_when_its_last_hour_is_there(tmp_path: Path) -> None:
    lake = str(tmp_path)
    table, loads = LakeTable(lake, OBSERVATIONS), LakeTable(lake, SOURCE_LOADS)
    for hour, slices in ((0, {"22"}), (1, {"-1"}), (2, {"-1", "0"})):
        table.append([window(hour, minute, target_data_rate_per_s=1.0) for minute in range(hour + 1)])
        assert update(lake, *DAYS) == (2 if hour == 1 else 1)
        assert present(lake) == expected(lake)
        assert {name for _, name, _ in loads.read_partitions()} == slices


def test_hours_that_share_a_file_are_read_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lake, read, parts = str(tmp_path), LakeTable.read, list[str]()

    def note(table: LakeTable, columns: Any, since: Any, until: Any, where: str = "") -> Any:
        parts.append(where)
        return read(table, columns, since, until, where)

    monkeypatch.setattr(LakeTable, "read", note)
    table = LakeTable(lake, OBSERVATIONS)
    table.append([window(hour, 0, target_data_rate_per_s=1.0) for hour in range(HOURS)])
    assert update(lake, *DAYS) == 3
    assert parts == ["is_source", "is_source AND hour IN (0, 1)"]
    parts.clear()
    monkeypatch.setattr(source_loads, "_RULE", 0)
    monkeypatch.setattr(source_loads, "_READ_BYTES", 0)  # each day is large: hours are read one by one
    assert update(lake, *DAYS) == 3
    assert parts == ["is_source", "is_source AND hour IN (0)", "is_source AND hour IN (1)"]
    monkeypatch.undo()
    assert update(lake, *DAYS) == 3  # as after a release with another rule
    assert present(lake) == expected(lake)
    files = LakeTable(lake, SOURCE_LOADS).read_files()
    assert [len(files[day]) for day in DAYS] == [1, 2]


def test_an_hour_without_a_source_is_read_once(tmp_path: Path) -> None:
    lake = str(tmp_path)
    LakeTable(lake, OBSERVATIONS).append([window(2, 0, is_source=False), window(3, 0, is_source=None)])
    assert [update(lake, *DAYS) for _ in range(2)] == [2, 0]
    assert present(lake) == {}


def test_what_another_program_made_of_older_windows_is_made_again(tmp_path: Path) -> None:
    lake = str(tmp_path)
    table = LakeTable(lake, OBSERVATIONS)
    table.append([window(0, 0, target_data_rate_per_s=1.0)])
    update(lake, *DAYS)
    loads = LakeTable(lake, SOURCE_LOADS)
    older = loads.read(list(SOURCE_LOADS.columns), *DAYS)
    table.append([window(0, 1, target_data_rate_per_s=2.0)])
    update(lake, *DAYS)
    loads.append_arrow(older)  # as of two that began at once: the rows of both
    assert update(lake, *DAYS) == 1
    assert present(lake) == expected(lake)


@pytest.mark.parametrize("bin_s", [60, 300, 1800])
def test_windows_in_bins_are_those_of_a_plain_loop(bin_s: int) -> None:
    generator = np.random.default_rng(bin_s)
    first_s, count = int(START.timestamp()), 40
    frame = HistoryBins(first_s + count * bin_s + 17.0, first_s, bin_s, count)
    start_s = first_s + generator.integers(-5, count + 5, 300) * bin_s + generator.integers(0, bin_s, 300)
    window_s = generator.choice([15, 60, 900, 3600], 300)
    rate = np.where(generator.random(300) < 0.2, np.nan, generator.integers(0, 50, 300) * 10.0)
    own = SourceWindows.of(list(start_s), list(window_s), [None if np.isnan(one) else one for one in rate])
    values: dict[int, list[float]] = defaultdict(list)
    ends = []
    for start, length, one in zip(start_s.tolist(), window_s.tolist(), rate.tolist(), strict=True):
        if first_s <= start < frame.as_of_s and not math.isnan(one):
            ends.append(start + length)
            for place in range((start - first_s) // bin_s, (start - first_s) // bin_s + max(1, length // bin_s)):
                values[place].append(one)
    means = [np.mean(values[place]) if values[place] else np.nan for place in range(count)]
    measured = own.select_measured(frame)
    np.testing.assert_allclose(measured.average_in_bins(frame), means)
    assert measured.last_seen_s == max(ends)


def test_a_source_without_a_measured_window_was_never_seen() -> None:
    frame = HistoryBins(600.0, 0, 300, 2)
    measured = SourceWindows.of([0, 300, 600], [300, 300, 300], [None, None, 5.0]).select_measured(frame)
    assert math.isnan(measured.last_seen_s)
    assert np.isnan(measured.average_in_bins(frame)).all()


def test_dates_outside_are_left_alone(tmp_path: Path) -> None:
    lake = str(tmp_path)
    LakeTable(lake, OBSERVATIONS).append([window(0, 0, target_data_rate_per_s=1.0)])
    assert update(lake, date(2026, 1, 1), date(2026, 2, 1)) == 0
    assert present(lake) == {}
