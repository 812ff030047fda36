"""A morning in parts: which day rises, what a part gets of the load, and how far ahead slots are asked for."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks.live.__main__ import TRACES
from benchmarks.live.calibration import Calibration
from benchmarks.live.hourly_runs import HourRun, PlannedStep, find_due, list_due_steps, read_plan
from benchmarks.live.load_window import BIN_S, PEAK_SHARE, WindowError, integrate
from benchmarks.live.measures import Measures
from benchmarks.live.morning import DEFAULT_TRACE
from benchmarks.live.morning_load import (
    LaidTrace,
    Request,
    choose_rise,
    continue_load,
    holds_rise,
    lay_trace,
    list_requests,
)
from benchmarks.live.morning_report import PartResult, format_morning, join_parts, match_step, read_parts, write_part
from benchmarks.live.results import RunResult
from benchmarks.replay.replay_traces import read_trace
from include.utc import parse_utc

NINE_S = parse_utc("2026-11-30T09:00:00Z").timestamp()
VALUES = read_trace(TRACES / f"{DEFAULT_TRACE}.csv.gz").values
CALIBRATION = Calibration("q3", "Join", (), {1: 100.0, 2: 200.0, 4: 400.0, 8: 800.0, 16: 1600.0}, 5.0)
CARRIED = np.array([CALIBRATION.capacity_per_s(slots) for slots in range(17)])


def ramp(from_s: float) -> list[tuple[float, float]]:
    """A load of 150/s that rises by 1/s each second from a time on."""
    return [(float(at), max(150.0, 150.0 + at - from_s)) for at in range(0, 1200, 10)]


def made_part(span_s: tuple[float, float], hours: list[HourRun] | None = None, **changes: object) -> PartResult:
    run = RunResult(
        policy="tidewise",
        job="q3",
        seed=1,
        minutes=(span_s[1] - span_s[0]) / 60,
        pace="product",
        trace=DEFAULT_TRACE,
        begun="2026-11-30T07:00:00+00:00",
        cpu_share=0.4,
        trouble="",
        slots_max=16,
        lost_at_s=None,
        measures=Measures(1.5, 4.0, 2, 30.0, 5000.0, None, None, 3.2),
        records_in=1000,
        records_due=1000,
        rows_out=90,
        rows_expected=None,
        lines=[(0.0, 100.0, 4, 0.5, 0.0)],
        actions=[(1.0, 4)],
        load=[(0, 100.0), (60, 100.0)],
        span_s=span_s,
        savepoint="file:/savepoint",
    )
    return PartResult(replace(run, **changes), hours or [])


def test_the_default_day_rises_sevenfold_within_a_part_of_two_hours_like_the_day_before():
    rise = choose_rise(VALUES)
    assert (rise.end - rise.begin) * BIN_S == 75 * 60
    assert VALUES[rise.trough : rise.trough + 144].max() > 7 * VALUES[rise.trough]
    day = VALUES[rise.begin : rise.end + 1]
    assert np.abs(day / VALUES[rise.begin - 288 : rise.end - 287] - 1).max() < 0.15


def test_a_trace_without_a_regular_day_is_refused():
    with pytest.raises(WindowError, match="none rises regularly"):
        choose_rise(np.random.default_rng(1).uniform(1.0, 2.0, 288 * 20))


def test_a_trace_is_laid_so_that_its_rise_begins_at_the_time_and_its_past_ends_at_the_window():
    laid, rise = lay_trace(VALUES, NINE_S, 1000.0), choose_rise(VALUES)
    assert laid.rise_s == (NINE_S, NINE_S + 75 * 60)
    assert laid.rates(np.array([NINE_S]))[0] == pytest.approx(laid.values_per_s[rise.begin])
    day = laid.rates(NINE_S + np.arange(-2 * 3600, 20 * 3600, BIN_S))
    assert day.max() == pytest.approx(PEAK_SHARE * 1000.0)
    window = laid.cut_window(NINE_S - 7200, 6.0)
    assert window.seconds == 6 * 3600
    assert window.first_bin == rise.begin - 24
    assert len(window.before_per_s) == window.first_bin
    with pytest.raises(WindowError, match="the trace ends"):
        laid.rates(np.array([NINE_S + 400 * 86_400]))


def test_a_part_that_would_cut_the_rise_is_told_from_one_that_holds_it_and_one_beside_it():
    rise_s = (100.0, 200.0)
    assert holds_rise((90.0, 210.0), rise_s) is True
    assert holds_rise((110.0, 210.0), rise_s) is False
    assert holds_rise((90.0, 190.0), rise_s) is False
    assert holds_rise((200.0, 300.0), rise_s) is None
    assert holds_rise((0.0, 100.0), rise_s) is None


def test_the_load_of_a_second_part_is_that_of_the_clock_and_what_was_due_before_stays_due():
    laid = lay_trace(VALUES, NINE_S, 1000.0)
    first = continue_load((), laid, NINE_S, (0.0, 1800.0), seed=1)
    both = continue_load(first, laid, NINE_S, (7200.0, 9000.0), seed=1)
    assert [second for second, _ in both] == sorted({second for second, _ in both})
    assert integrate(both, 0, 1800) == pytest.approx(integrate(first, 0, 1800))
    assert integrate(both, 1801, 7199) == 0.0
    assert integrate(both, 9001, 80_000) == 0.0
    at = np.arange(7200, 9000, 60)
    assert integrate(both, 7200, 9000) == pytest.approx(float(laid.rates(NINE_S + at).sum()) * 60, rel=0.02)


def test_the_lead_is_from_the_request_until_the_load_passes_what_the_slots_before_carry():
    # 200/s, which two slots carry, are passed at 660 s; 400/s, four slots, at 860 s.
    load = ramp(600.0)
    requests = list_requests([(0.0, 2), (300.0, 4), (900.0, 8), (1000.0, 2)], load, CARRIED)
    assert requests == [
        Request(300.0, 2, 4, 360.0),
        Request(900.0, 4, 8, -40.0),
        Request(1000.0, 8, 2, None),
    ]
    assert list_requests([(0.0, 8), (300.0, 16)], load, CARRIED) == [Request(300.0, 8, 16, None)]


def test_of_the_steps_of_all_plans_those_of_the_newest_count():
    first = HourRun(
        0.0, 0.0, 100.0, "", "", [PlannedStep(50.0, 4, 6), PlannedStep(500.0, 4, 6), PlannedStep(4000.0, 6, 8)]
    )
    second = HourRun(3600.0, 3600.0, 100.0, "", "", [PlannedStep(4200.0, 6, 9), PlannedStep(9000.0, 9, 4)])
    failed = HourRun(7200.0, 7200.0, 10.0, "failed", "", [])
    due = list_due_steps([first, second, failed], [(0.0, 3700.0), (4100.0, 9500.0)])
    assert [(one.at_s, one.after) for one in due] == [(500.0, 6), (4200.0, 9), (9000.0, 4)]
    requests = [Request(4300.0, 6, 9, 30.0), Request(9100.0, 9, 5, None)]
    assert [match_step(one, requests) for one in due] == ["not sent", "as planned", "9 -> 5"]


def test_of_several_hours_that_were_missed_the_last_is_run_and_none_twice():
    at = {minute: NINE_S + 60 * minute for minute in (-120, 4, 5, 6, 64)}
    assert find_due("5 * * * *", at[-120], at[4]) == at[5] - 3600
    assert find_due("5 * * * *", at[5], at[6]) is None
    assert find_due("5 * * * *", at[5] - 3600, at[6]) == at[5]


def test_the_steps_of_a_plan_are_those_of_the_job():
    row = {"job": "q3", "status": "planned", "apply_at": "2026-11-30T09:10:00Z", "slots_from": 4, "slots": 8}
    rows = [{**row, "reason": "the rise"}, {**row, "job": "q2"}, {**row, "status": "hold", "apply_at": None}]
    assert read_plan(rows, "q3") == ("the rise", [PlannedStep(NINE_S + 600, 4, 8)])
    assert read_plan([], "q3") == ("", [])


def test_parts_are_read_as_they_were_written_and_joined(tmp_path: Path):
    hour = HourRun(NINE_S - 300, NINE_S - 300, 60.0, "", "", [PlannedStep(NINE_S - 100, 2, 4)])
    submitted_s = NINE_S - 1200
    parts = [
        made_part((180.0, 600.0), actions=[(5.0, 1), (100.0, 2), (700.0, 16)]),
        made_part((780.0, 1200.0 + 75 * 60), [hour], actions=[(700.0, 2), (1080.0, 4)], cpu_share=0.8),
    ]
    for number, part in enumerate(parts, 1):
        write_part(tmp_path, number, part)
    assert read_parts(tmp_path) == parts
    values, rise_s = np.interp(np.arange(600), [0, 292, 304], [150, 150, 750]), (NINE_S + 600, NINE_S + 4500)
    laid = LaidTrace(values, NINE_S - 292 * BIN_S, rise_s, NINE_S)
    morning = join_parts(parts, laid, submitted_s, CALIBRATION, 90)
    assert (morning.rise_in, morning.maintenance_s, morning.records_lost) == (2, 180.0, 0)
    assert morning.sums == {"late_minutes": 3.0, "slot_hours": 8.0, "rescales": 4, "down_s": 60.0, "cost": 6.4}
    # The request in the lead of the first part, and the one for all slots at its end, are no figures of the windows.
    assert [(one.at_s, one.after) for one in morning.requests] == [(NINE_S - 120, 4)]
    # The load passes 200/s before its rise is said to begin.
    assert morning.rise_leads_s == [pytest.approx(120 + 300, abs=10)]
    assert morning.due == [(PlannedStep(NINE_S - 100, 2, 4), "as planned")]
    table = format_morning(morning, "q3")
    assert "| planned steps that came due, and were asked for as planned | 1, 1 |" in table
    assert "| processors busy | 40%, 80% (too busy: no measurement) |" in table
    assert "| stopped between parts, not measured | 3 minutes |" in table
