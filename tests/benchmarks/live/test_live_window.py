"""The choice of the window, its scale, and its trace."""

from __future__ import annotations

import gzip

import numpy as np
import pytest

from benchmarks.live.__main__ import DEFAULT_TRACE, TRACES
from benchmarks.live.load_window import (
    BIN_S,
    PEAK_SHARE,
    WindowError,
    choose_window,
    find_steepest,
    integrate,
    make_trace,
)
from benchmarks.replay.replay_traces import read_trace


def test_a_rise_alone_or_a_fall_alone_is_less_steep_than_both():
    values = np.full(60, 10.0)
    values[20:30] = 50.0  # a plateau: with four bins no window has its rise and its fall
    values[40:42] = [20.0, 12.0]
    first = find_steepest(values, 4, least_before=5)
    window = values[first : first + 5]
    assert window.max() == 20.0
    assert window[0] == 10.0


def test_nothing_is_chosen_before_there_is_enough_history():
    values = np.full(60, 10.0)
    values[[10, 50]] = [90.0, 30.0]
    assert 46 <= find_steepest(values, 4, least_before=20) <= 50
    with pytest.raises(WindowError, match="60 bins are too few"):
        find_steepest(values, 4, least_before=56)


def test_its_peak_is_a_share_of_what_the_job_carries():
    values = np.full(2000, 10.0)
    values[1800] = 40.0
    window = choose_window(values, 40, carried_per_s=1000.0)
    assert window.rates_per_s.max() == pytest.approx(PEAK_SHARE * 1000)
    assert window.rates_per_s.min() == pytest.approx(PEAK_SHARE * 250)
    assert window.seconds == 2400
    assert len(window.before_per_s) == window.first_bin
    assert window.before_per_s[0] == pytest.approx(PEAK_SHARE * 250)


def test_the_default_is_the_shipped_trace_with_the_steepest_window():
    def steepness(name: str) -> float:
        window = choose_window(read_trace(TRACES / name).values, 40, 1.0).rates_per_s / PEAK_SHARE
        peak = int(window.argmax())
        return float(1.0 - max(window[: peak + 1].min(), window[peak:].min()))

    # nab_nyc_taxi has half-hour means: what happens within forty minutes is not in it.
    names = [path.name for path in sorted(TRACES.glob("dsp_*.csv.gz"))]
    assert max(names, key=steepness) == f"{DEFAULT_TRACE}.csv.gz"
    with gzip.open(TRACES / f"{DEFAULT_TRACE}.csv.gz", "rt") as lines:
        assert len(lines.readlines()) == 2011


def test_a_trace_has_its_lead_the_window_and_then_nothing():
    window = choose_window(np.concatenate([np.full(1500, 10.0), [10, 20, 10, 10, 10]]), 10, 100.0)
    trace = make_trace(window, lead_s=60, minutes=10, seed=1)
    assert trace[0][1] == trace[1][1]
    assert trace[1][0] == 60
    assert [rate for _, rate in trace[-2:]] == [0.0, 0.0]
    assert trace[-2][0] == 60 + 600 + 1
    assert make_trace(window, 60, 10, 1) == trace
    assert make_trace(window, 60, 10, 2) != trace
    rates = np.array([rate for _, rate in trace[1:-2]])
    assert rates.max() == pytest.approx(80.0, rel=0.1)
    assert window.seconds == 2 * BIN_S


def test_events_due_are_the_area_under_the_trace():
    trace = [(0, 100.0), (10, 100.0), (20, 0.0), (100, 0.0)]
    assert integrate(trace, 0, 100) == pytest.approx(1500.0)
    assert integrate(trace, 5, 15) == pytest.approx(500 + 375)
    assert integrate(trace, 30, 40) == 0.0
