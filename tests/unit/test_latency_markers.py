"""End-to-end latency among a job's metrics."""

import math

import pytest

from lab.stages.profiling.latency_markers import find_p95_names, mean_of_slowest_ms

MAP, SINK = "a" * 32, "b" * 32


def name(operator: str, subtask: int, quantile: str = "p95", source: str = "c" * 32) -> str:
    return f"latency.source_id.{source}.operator_id.{operator}.operator_subtask_index.{subtask}.latency_{quantile}"


def test_percentiles_are_found_among_all_metrics_of_a_job() -> None:
    plain = f"latency.operator_id.{MAP}.operator_subtask_index.0.latency_p95"  # granularity single
    listed = ["uptime", name(MAP, 0), name(MAP, 0, "p99"), name(SINK, 1), name(SINK, 1, "mean"), plain, "latency.other"]
    assert find_p95_names(listed) == [sorted([name(MAP, 0), name(SINK, 1), plain])]
    assert find_p95_names(["uptime"]) == []


def test_a_request_asks_for_no_more_names_than_its_line_can_hold() -> None:
    many = [name(MAP, subtask) for subtask in range(500)]
    requests = find_p95_names(many)
    assert sum(map(len, requests)) == 400
    assert all(len(",".join(one)) < 3900 for one in requests)


def test_the_latency_is_that_of_the_operator_that_markers_reach_last() -> None:
    values = {name(MAP, 0): "10", name(MAP, 1): "30", name(SINK, 0): "90.0", name(SINK, 1): "110", "uptime": "5000"}
    assert mean_of_slowest_ms(values) == pytest.approx(100.0)


@pytest.mark.parametrize("text", ["NaN", "", "none", "-1", "inf"])
def test_what_is_no_latency_is_left_out(text: str) -> None:
    assert math.isnan(mean_of_slowest_ms({name(MAP, 0): text}))
    assert mean_of_slowest_ms({name(MAP, 0): text, name(MAP, 1): "7"}) == 7.0
