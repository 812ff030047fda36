"""The bins of sources that are read a day at a time: bit for bit those of all windows of each source."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from include.lake_table import LakeTable
from include.tables import OBSERVATIONS, SOURCE_LOADS
from lab.stages.inputs.source_series import SourceWindows
from spark_jobs.source_inputs.source_rates import SourceRates, list_sources, read_source_rates
from spark_jobs.source_inputs.source_windows import HistoryBins

NOON = datetime(2026, 3, 20, 12, tzinfo=UTC)
NOON_S = int(NOON.timestamp())
NAME = {"cluster": "c", "job": "orders", "operator": "source", "vertex_id": None}


def window(start_s: int, window_s: int, rate: float | None, **names: Any) -> dict[str, Any]:
    at = datetime.fromtimestamp(start_s, UTC)
    times = {"window_start": at, "window_s": window_s, "date": at.date(), "hour": at.hour}
    return {**NAME, "is_source": True, "target_data_rate_per_s": rate, **times, **names}


def read(lake: Path, rows: list[dict[str, Any]], frame: HistoryBins, current: Any = None) -> SourceRates:
    LakeTable(str(lake), OBSERVATIONS).append(rows)
    return read_source_rates(
        str(lake),
        frame,
        current or {},
        list_sources(str(lake), frame, current or {}, LakeTable(str(lake), SOURCE_LOADS).replace),
    )


@pytest.mark.parametrize(
    ("bin_s", "lengths"), [(60, (15, 60, 5400)), (300, (300, 60)), (1800, (900, 7200)), (7200, (60,))]
)
def test_bins_of_three_days_are_those_of_all_windows_at_once(
    tmp_path: Path, bin_s: int, lengths: tuple[int, ...]
) -> None:
    generator = np.random.default_rng(bin_s)
    bins = 48 * 3600 // bin_s
    frame = HistoryBins(NOON_S + bins * bin_s + 29.0, NOON_S, bin_s, bins)
    rows, expected = [], {}
    for job in ("a", "b", "late"):
        first_s = NOON_S - 3600 if job != "late" else NOON_S + 40 * 3600
        start_s = generator.integers(first_s, NOON_S + 50 * 3600, 120)
        window_s = generator.choice(lengths, 120)
        rate = np.where(generator.random(120) < 0.2, np.nan, generator.lognormal(5, 2, 120))
        rows += [
            window(start, length, None if np.isnan(one) else one, job=job)
            for start, length, one in zip(start_s.tolist(), window_s.tolist(), rate.tolist(), strict=True)
        ]
        expected[job] = SourceWindows(start_s, window_s, rate).select_measured(frame)
    made = read(tmp_path, rows, frame)
    assert sorted(made.names) == [("c", job, "source") for job in sorted(expected)]
    for (_, job, _), rates, until_s in zip(made.names, made.rate_per_s, made.last_seen_s, strict=True):
        assert rates.tobytes() == expected[job].average_in_bins(frame).tobytes()
        assert until_s == expected[job].last_seen_s


def test_a_source_that_is_younger_than_a_bin_has_its_rate_in_the_last_one(tmp_path: Path) -> None:
    frame = HistoryBins(NOON_S + 700.0, NOON_S, 300, 2)
    rows = [window(NOON_S + 610, 15, 5.0), window(NOON_S + 625, 15, 7.0), window(NOON_S + 910, 15, 99.0)]
    made = read(tmp_path, rows, frame)
    np.testing.assert_array_equal(made.rate_per_s, [[np.nan, 6.0]])
    assert made.last_seen_s.tolist() == [NOON_S + 640.0]


def test_a_source_without_a_rate_has_a_row_and_one_without_a_window_none(tmp_path: Path) -> None:
    frame = HistoryBins(NOON_S + 600.0, NOON_S, 300, 2)
    rows = [window(NOON_S, 300, None, job="silent"), window(NOON_S - 300, 300, 1.0, job="before")]
    made = read(tmp_path, [*rows, window(NOON_S + 600, 300, 1.0, job="after")], frame)
    assert made.names == [("c", "silent", "source")]
    assert np.isnan(made.rate_per_s).all()
    assert np.isnan(made.last_seen_s).all()


def test_a_renamed_operator_keeps_its_history_and_one_that_has_gone_ends(tmp_path: Path) -> None:
    frame = HistoryBins(NOON_S + 900.0, NOON_S, 300, 3)
    rows = [
        window(NOON_S, 300, 1.0, operator="old", vertex_id="v1"),
        window(NOON_S + 300, 300, 2.0, operator="old", vertex_id="v1"),
        window(NOON_S + 300, 300, 4.0, operator="new", vertex_id="v2"),
        window(NOON_S, 300, 9.0, operator="removed", vertex_id="v3"),
    ]
    current = {("c", "orders", "old", "v1"): "new", ("c", "orders", "removed", "v3"): None}
    made = read(tmp_path, rows, frame, current)
    assert made.names == [("c", "orders", "new")]
    np.testing.assert_array_equal(made.rate_per_s, [[1.0, 3.0, np.nan]])


def test_the_rates_of_some_sources_are_theirs_among_all(tmp_path: Path) -> None:
    frame = HistoryBins(NOON_S + 600.0, NOON_S, 300, 2)
    every = read(tmp_path, [window(NOON_S, 300, at + 1.0, job=job) for at, job in enumerate("abc")], frame)
    some = read_source_rates(str(tmp_path), frame, {}, [("c", "b", "source"), ("c", "c", "source")])
    assert some.names == [name for name in every.names if name[1] != "a"]
    np.testing.assert_array_equal(some.rate_per_s, every.rate_per_s[[name[1] != "a" for name in every.names]])


def test_a_lake_without_observations_has_no_source(tmp_path: Path) -> None:
    frame = HistoryBins(NOON_S + 600.0, NOON_S, 300, 2)
    assert list_sources(str(tmp_path), frame, {}, LakeTable(str(tmp_path), SOURCE_LOADS).replace) == []
    made = read_source_rates(str(tmp_path), frame, {}, [])
    assert made.table.num_rows == 0
    assert made.table.column_names == ["cluster", "job", "operator", "rate_per_s", "last_seen_s"]


def test_the_rows_that_travel_have_the_same_bits(tmp_path: Path) -> None:
    frame = HistoryBins(NOON_S + 900.0, NOON_S, 300, 3)
    made = read(tmp_path, [window(NOON_S + 300 * at, 300, 0.1 * at, job=f"j{at}") for at in range(3)], frame)
    travelled = made.table.to_pandas()
    assert np.stack(travelled["rate_per_s"].to_list()).tobytes() == made.rate_per_s.tobytes()
    assert list(travelled["job"]) == ["j0", "j1", "j2"]
