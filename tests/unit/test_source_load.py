"""Traces keep their weekday, and mixes keep their scale."""

from __future__ import annotations

import gzip
from datetime import datetime
from pathlib import Path

import numpy as np
import pytest

from lab.commands.simulated_jobs import load_simulated_jobs
from lab.commands.traces import load_traces, week_second
from lab.simulation.source_load import (
    WEEK_S,
    SourceLoad,
    TracePart,
    WeeklyTrace,
    compute_shape,
    draw_source_rates,
)
from lab.simulation.spec import SpecError

WEEK = 2016


def weekly(first_week_s: int = 0, weeks: int = 2) -> WeeklyTrace:
    """A trace whose value tells its second of the week (and the week): day + hour / 100."""
    at = (first_week_s + 300 * np.arange(weeks * WEEK)) % WEEK_S
    return WeeklyTrace.from_values(1.0 + at / WEEK_S, 300, first_week_s)


@pytest.mark.parametrize("first_week_s", [0, 2 * 86400, 6 * 86400 + 3 * 3600])
@pytest.mark.parametrize("wanted_week_s", [0, 4 * 86400 + 18 * 3600, WEEK_S - 300])
@pytest.mark.parametrize("weeks", [0, 1, 5])
def test_a_window_begins_at_the_wanted_time_of_the_week(first_week_s: int, wanted_week_s: int, weeks: int) -> None:
    trace = weekly(first_week_s)
    scale = trace.values.max() / (1.0 + (WEEK_S - 300) / WEEK_S)
    window = trace.window(wanted_week_s, 3, weeks, 0) / scale
    expected = 1.0 + ((wanted_week_s + 300 * np.arange(3)) % WEEK_S) / WEEK_S
    np.testing.assert_allclose(window, expected, rtol=1e-9)


def test_hours_delay_the_load() -> None:
    trace = weekly()
    np.testing.assert_array_equal(trace.window(10 * 3600, 5, 0, 3), trace.window(7 * 3600, 5, 0, 0))


def test_coarse_traces_are_interpolated_and_cut_to_whole_weeks() -> None:
    values = np.arange(1.0, 9 * 48 + 1)
    trace = WeeklyTrace.from_values(values, 1800, 0)
    assert trace.values.size == WEEK
    assert trace.values[3] / trace.values[0] == pytest.approx(1.5)


def test_contrast_deepens_the_nights_and_keeps_the_peak() -> None:
    trace = weekly()
    flat, deep = (
        compute_shape(SourceLoad(1000.0, (TracePart("t", contrast=contrast),)), {"t": trace}, 0, WEEK)
        for contrast in (1.0, 1.9)
    )
    assert flat.max() == pytest.approx(deep.max(), rel=0.02)
    assert deep.min() < 0.5 * flat.min()
    assert (deep >= 1000.0 * SourceLoad.FLOOR).all()


def test_noise_is_about_five_percent_and_follows_the_seed() -> None:
    traces, load = {"t": weekly()}, SourceLoad(1000.0, (TracePart("t"),), step_noise=0.0)

    def rates(seed: int) -> np.ndarray:
        return draw_source_rates([load], traces, 0, steps=WEEK, step_s=300.0, generator=np.random.default_rng(seed))[0]

    np.testing.assert_array_equal(rates(1), rates(1))
    middle = np.interp(np.arange(WEEK) + 0.5, np.arange(WEEK + 1), compute_shape(load, traces, 0, WEEK + 1))
    # values of the trace are joined linearly: halfway between two of them 5% becomes 5% / sqrt(2)
    assert np.std(rates(1) / middle - 1.0) == pytest.approx(0.05 / np.sqrt(2.0), rel=0.1)


def test_unknown_traces_and_bad_values_are_refused() -> None:
    with pytest.raises(SpecError, match="unknown traces"):
        compute_shape(SourceLoad(1.0, (TracePart("nope"),)), {"t": weekly()}, 0, 10)
    with pytest.raises(SpecError, match="negative or not finite"):
        WeeklyTrace.from_values(np.array([1.0, np.nan] * WEEK), 300, 0)
    with pytest.raises(SpecError, match="one whole week"):
        WeeklyTrace.from_values(np.ones(100), 300, 0)


def test_shipped_traces_cover_what_the_catalogue_names() -> None:
    traces = load_traces()
    named = {part.trace for job in load_simulated_jobs() for load in job.loads for part in load.parts}
    assert named <= set(traces)
    assert all(trace.values.size >= 3 * WEEK for trace in traces.values())
    assert traces["dsp_taxi"].first_week_s == 5 * 86400  # 2020-02-01 was a Saturday


def test_a_further_trace_is_found_by_its_file_name(tmp_path: Path) -> None:
    rows = ["timestamp,value"] + [
        f"{datetime.fromtimestamp(1_700_000_000 + 600 * i):%Y-%m-%d %H:%M:%S},{i % 144}" for i in range(1100)
    ]
    with gzip.open(tmp_path / "my_shop_10min.csv.gz", "wt") as file:
        file.write("\n".join(rows))
    traces = load_traces(tmp_path)
    assert set(traces) == {"my_shop"}
    assert traces["my_shop"].values.size == WEEK
    assert traces["my_shop"].first_week_s == week_second(datetime.fromtimestamp(1_700_000_000))
    with pytest.raises(SpecError, match="no traces"):
        load_traces(tmp_path / "empty")
