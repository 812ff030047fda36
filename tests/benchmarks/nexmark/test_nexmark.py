"""What `make nexmark` takes for the truth, and how it judges."""

from __future__ import annotations

import math
from datetime import datetime

import pytest

from benchmarks.nexmark.autoscaler_process import read_advice
from benchmarks.nexmark.counters import Counters, CounterSeries, Reading, compare
from benchmarks.nexmark.cpu import CpuMeter
from benchmarks.nexmark.experiment import HIGH, LOW, STEPS, TIDEWISE, JobTrial, Truth, find_step, make_trace
from benchmarks.nexmark.results import format_results, read_results
from benchmarks.nexmark.tables import judge, print_tables
from cli.arguments import UsageError
from include.atomic_write import write_json
from lab.local_flink.nexmark import QUERIES, SQL_DIR
from tools.record_queries import RECORDED, SCRIPT

VERTEX = "cbc357ccb763df2852fee8c4fc7d55f2"


def reading(at_s: float, parallelism: int, read: float, busy_ms: float) -> Reading:
    return Reading(at_s, {"job": {VERTEX: Counters("Join[3]", parallelism, read, 0.0, busy_ms, 0.0)}})


def test_a_flow_is_a_difference_per_second_and_mean_subtask():
    flow = compare(reading(0.0, 2, 100.0, 1000.0), reading(10.0, 2, 600.0, 11_000.0), "job")[VERTEX]
    assert (flow.in_per_s, flow.busy) == (50.0, 0.5)


@pytest.mark.parametrize("before", [reading(0.0, 1, 100.0, 0.0), reading(0.0, 2, 700.0, 0.0)])
def test_a_rescale_or_a_restart_in_between_is_no_flow(before):
    assert math.isnan(compare(before, reading(10.0, 2, 600.0, 0.0), "job")[VERTEX].in_per_s)


def test_the_rate_between_two_times_is_that_of_the_jobs_own_counters(monkeypatch):
    readings = iter([(0.0, 0.0), (10.0, 100.0), (20.0, 300.0), (30.0, 10.0)])  # a rescale resets the last one
    series = CounterSeries(None, "job")
    for at_s, read in readings:
        monkeypatch.setattr("benchmarks.nexmark.counters.time.time", lambda at_s=at_s: at_s)
        monkeypatch.setattr(
            "benchmarks.nexmark.counters._vertices",
            lambda *_, read=read: {VERTEX: Counters("Join", 1, read, read, 0.0, 0.0)},
        )
        series.read()
    assert series.rates_between(5.0, 15.0) == {VERTEX: pytest.approx(15.0)}
    assert series.rates_between(15.0, 25.0) == {}
    assert series.rates_between(-5.0, 5.0) == {}


def test_processors_are_busy_when_they_are_not_idle(tmp_path):
    stat = tmp_path / "stat"
    stat.write_text("cpu 100 0 0 100 0 0 0 0\n")
    meter = CpuMeter(stat)
    stat.write_text("cpu 130 0 0 140 30 0 0 0\n")
    assert meter.take() == pytest.approx(0.3)


def truth() -> Truth:
    return Truth(
        {VERTEX: "Join[3]"},
        VERTEX,
        {1: 100.0, 2: 190.0, 3: 280.0},
        {1: True, 2: True, 3: True},
        inflow_per_s={LOW: {VERTEX: 50.0}, HIGH: {VERTEX: 200.0}},
    )


def test_least_is_what_covers_the_load_and_unknown_beyond_what_was_measured():
    result = truth()
    assert (result.least(LOW), result.least(HIGH)) == (1, 3)
    result.inflow_per_s[HIGH][VERTEX] = 300.0
    assert result.least(HIGH) is None
    result.inflow_per_s[HIGH][VERTEX] = math.nan
    assert result.least(HIGH) is None


def trial(ends: list[int], capacity: float, rate: float) -> JobTrial:
    unit = QUERIES["q3"].unit_per_s
    return JobTrial(
        [(1, 3, 3)],
        ends,
        [0.0, 0.0, 0.0],
        said=[(1, "rescale reactive: load uses 200%")],
        rates=[(0, VERTEX, rate, 50.0), (1, VERTEX, 4 * rate, 200.0), (2, VERTEX, rate, 50.0)],
        arrivals=[(number, times * unit) for number, (times, _) in enumerate(STEPS)],
        capacities=[(1, 0.6, capacity), (1, 0.3, 5 * capacity)],
    )


def test_only_what_is_out_of_its_tolerance_falls_short():
    right = {"q3": {TIDEWISE: trial([1, 3, 1], 104.0, 50.5)}}
    assert judge({"q3": truth()}, right) == []
    wrong = judge({"q3": truth()}, {"q3": {TIDEWISE: trial([1, 2, 1], 120.0, 60.0)}})
    assert [sum(word in one for one in wrong) for word in ("rate of", "capacity of", "ends the step")] == [2, 1, 1]


def test_the_tables_have_a_row_per_query_and_policy():
    jobs = {policy: trial([1, 3, 1], 100.0, 50.0) for policy in (TIDEWISE, "ds2", "conttune", "autoscaler")}
    tables = print_tables({"q3": truth()}, {"q3": jobs})
    assert tables.count("| q3 | ds2 | -; 3; - | 1, 3, 1 | 1 (50%), 3 (71%), 1 (50%) | 0, 0, 0 |") == 1
    assert "| q3 | 0.5 | 0.5 | 1.49 | 0.5 | 1.18 | 0.5 |" in tables


def test_the_autoscalers_advice_is_read_from_its_log(tmp_path):
    log, job = tmp_path / "log", "1c8a8ce49fc2236369564a134dca3fba"
    log.write_text(
        f"2026-11-26 09:21:01,931 LoggingEventHandler [INFO ] [{job}] Autoscaler event, reason : ScalingReport, "
        "message : Scaling execution disabled, recommended parallelism change:"
        f"{{ Vertex ID {VERTEX} | Parallelism 1 -> 4 | "
        "Processing capacity 901.65 -> 3606.58 | Target data rate 2005.34}\n"
        f"2026-11-26 09:21:05,000 ScalingMetricCollector [INFO ] [{job}] Stabilizing until 2026-11-26 09:17:33\n"
    )
    (advice,) = read_advice(log)
    assert (advice.job_id, advice.vertex_id, advice.parallelism) == (job, VERTEX, 4)
    assert datetime.fromtimestamp(advice.at_s).strftime("%H:%M:%S") == "09:21:01"
    assert read_advice(tmp_path / "nosuch") == []


def test_the_trace_changes_with_the_steps():
    trace = dict(make_trace(100.0, 100.0))
    for second, rate in trace.items():
        assert rate == 100.0 * STEPS[find_step(second, 100.0)][0]


def test_every_query_has_its_statements_and_is_rescaled_by_its_own_recording():
    for query in QUERIES:
        assert "INSERT INTO" in (SQL_DIR / f"{query}.sql").read_text(encoding="utf-8")
    assert {change.query for change in SCRIPT} == set(RECORDED) <= set(QUERIES)


def test_results_are_read_back_as_they_were_written(tmp_path):
    jobs = {policy: trial([1, 3, 1], 100.0, 50.0) for policy in (TIDEWISE, "ds2", "conttune", "autoscaler")}
    write_json(tmp_path / "nexmark.json", format_results({"q3": truth()}, {"q3": jobs}))
    truths, trials = read_results(tmp_path / "nexmark.json")
    assert truths == {"q3": truth()}
    assert print_tables(truths, trials) == print_tables({"q3": truth()}, {"q3": jobs})
    with pytest.raises(UsageError, match="no results of `make nexmark`"):
        read_results(tmp_path / "nosuch.json")
