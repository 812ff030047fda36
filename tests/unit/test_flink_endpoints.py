"""Paths and bodies of Flink's REST API, and the load job's parameters."""

import pytest

from include.flink import endpoints
from include.utc import DAY_S
from lab.local_flink.load import LoadOptions, daily_trace, write_trace

JOB, VERTEX = "a" * 32, "b" * 32


def test_vertex_metrics_path_names_metrics_and_aggregates():
    path = endpoints.vertex_metrics_path(JOB, VERTEX, ["numRecordsIn", "Source__orders.pendingRecords"])
    assert path == (
        f"/jobs/{JOB}/vertices/{VERTEX}/subtasks/metrics"
        "?get=numRecordsIn,Source__orders.pendingRecords&agg=min,max,avg,sum"
    )


def test_a_metric_name_that_would_break_the_query_is_quoted():
    assert "get=a%26b" in endpoints.job_metrics_path(JOB, ["a&b"])


def test_requirements_body_has_a_lower_bound_that_flink_can_always_meet():
    assert endpoints.requirements_body({"v2": 3, "v1": 1}) == {
        "v1": {"parallelism": {"lowerBound": 1, "upperBound": 1}},
        "v2": {"parallelism": {"lowerBound": 1, "upperBound": 3}},
    }


@pytest.mark.parametrize(
    ("existing", "found"),
    [
        (["pendingRecords", "Source__a.pendingRecords"], ["pendingRecords"]),
        (["Source__a.pendingRecords", "Source__a.pendingRecordsMax"], ["Source__a.pendingRecords"]),
        (["notpendingRecords"], []),
    ],
)
def test_available_takes_the_exact_name_or_the_operators(existing, found):
    assert endpoints.available(["pendingRecords"], existing) == found


def test_available_leaves_unknown_names_out_and_keeps_the_order_wanted():
    assert endpoints.available(["b", "nosuch", "a"], ["a", "b", "c"]) == ["b", "a"]


def test_sources_are_the_plan_nodes_without_inputs():
    job = {"plan": {"nodes": [{"id": "s"}, {"id": "m", "inputs": [{"id": "s"}]}, {"id": "t", "inputs": []}]}}
    assert endpoints.sources_of(job) == {"s", "t"}
    assert endpoints.sources_of({}) == frozenset()


def test_daily_trace_is_a_closed_cycle_between_its_bounds(tmp_path):
    points = daily_trace(300, 3600)
    assert points[0] == (0, 300.0)
    assert points[-1][0] == DAY_S
    assert points[-1][1] == pytest.approx(300.0)
    rates = [rate for _, rate in points]
    assert min(rates) >= 300
    assert 3600 * 0.9 < max(rates) < 3600 * 1.15
    write_trace(tmp_path / "t.csv", points)
    lines = (tmp_path / "t.csv").read_text().splitlines()
    assert len(lines) == len(points) + 1
    assert all(len(line.split(",")) == 2 for line in lines)


def test_load_arguments_are_pairs_of_flag_and_text(tmp_path):
    arguments = LoadOptions(cost_us=7).arguments(tmp_path / "t.csv")
    pairs = dict(zip(arguments[::2], arguments[1::2], strict=True))
    assert pairs["--cost-us"] == "7"
    assert pairs["--trace"] == str(tmp_path / "t.csv")
    assert all(flag.startswith("--") for flag in pairs)
