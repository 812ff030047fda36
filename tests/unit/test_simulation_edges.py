"""Simulated jobs as real ones are: side outputs, chained vertices, bursts, sources that count on either side."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from include.flink.raw_format import RawRecord
from lab.simulation.capacity import compute_gains
from lab.simulation.fleet import Fleet, pack
from lab.simulation.history import RunOptions, find_fitting_parallelism, simulate
from lab.simulation.rest.job_timeline import TimeOrigin
from lab.simulation.rest.lines import LineWriter
from lab.simulation.spec import JobSpec, OperatorSpec, SourceCounters
from lab.simulation.state import FleetState, RestartKind, begin_restart
from lab.simulation.step import StepFlow, advance
from models.arrays import Floats
from models.polling.poll_history import PollHistory
from models.topology import measure_edge_rates, measure_edge_ratios

SOURCE = "Source: orders -> parse -> filter"
WHOLE = "Source: orders -> filter -> Sink: out"


def side_outputs(**source: Any) -> JobSpec:
    """A source of which 30% leave its chain, over two tails, and a join of one branch with a second source."""
    operators = (
        OperatorSpec(SOURCE, (), 5000.0, 0.0, output_shares={"route": 0.27, "rejects": 0.03}, **source),
        OperatorSpec("Source: rates", (), 5000.0, 0.0),
        OperatorSpec("route", (SOURCE,), 2000.0, 0.0, output_shares={"small": 0.1, "join": 0.9}),
        OperatorSpec("rejects", (SOURCE,), 2000.0, 0.0, selectivity=0.0),
        OperatorSpec("small", ("route",), 300.0, 0.0, selectivity=0.0),
        OperatorSpec("join", ("route", "Source: rates"), 2500.0, 0.0, selectivity=0.0),
    )
    return JobSpec("side-outputs", operators, failures_per_week=0.0, restart_base_s=30.0, record_bytes=np.inf)


def started(fleet: Fleet, p: int = 1) -> FleetState:
    return FleetState.running(fleet, np.full(fleet.shape, p, dtype=np.int64), np.zeros(fleet.shape))


def at_sources(fleet: Fleet, *rates: float) -> Floats:
    grid = np.zeros(fleet.shape)
    grid[0, np.flatnonzero(fleet.is_source[0])] = rates
    return grid


def step(fleet: Fleet, state: FleetState, *rates: float, step_s: float = 10.0) -> StepFlow:
    return advance(fleet, state, at_sources(fleet, *rates), np.ones(fleet.shape), step_s)


def test_records_are_conserved_over_every_edge() -> None:
    spec = side_outputs()
    fleet, taken = pack([spec]), np.zeros(6)
    state = started(fleet)
    generator = np.random.default_rng(4)
    for _ in range(300):
        flow = step(fleet, state, *generator.uniform(0.0, 6000.0, 2))
        taken += 10.0 * flow.in_per_s[0]
    by_name = dict(zip(spec.graph().names, taken, strict=True))
    for name, operator in zip(spec.graph().names, spec.operators, strict=True):
        if operator.upstream:
            arrived = sum(by_name[up] * spec.edge_ratios[up, name] for up in operator.upstream)
            assert by_name[name] == pytest.approx(arrived)
    assert by_name["small"] == pytest.approx(by_name[SOURCE] * 0.27 * 0.1)
    np.testing.assert_allclose(state.emitted - state.replayed + state.backlog, state.due_records, rtol=1e-9)
    assert by_name[SOURCE] == pytest.approx(state.emitted[0, 0])


def test_a_vertex_counts_the_sum_of_its_tails_and_copies_of_one_tail_once() -> None:
    fleet = pack([side_outputs()])
    state = started(fleet)
    step(fleet, state, 1000.0, 500.0)
    np.testing.assert_allclose(state.records_out[0], [3000.0, 5000.0, 2700.0, 0.0, 0.0, 0.0])
    copied = (
        OperatorSpec("Source: a", (), 5000.0, 0.0, selectivity=0.5, output_shares={"late": 0.2}),
        *(OperatorSpec(name, ("Source: a",), 5000.0, 0.0, selectivity=0.0) for name in ("left", "right", "late")),
    )
    fleet = pack([JobSpec("copied", copied)])
    state = started(fleet)
    flow = step(fleet, state, 1000.0)
    np.testing.assert_allclose(flow.in_per_s[0], [1000.0, 500.0, 500.0, 200.0])
    assert state.records_out[0, 0] == pytest.approx(7000.0)  # 0.5 of the tail that is copied, 0.2 of the side output


def test_the_edges_of_a_simulated_job_are_measured_from_its_counters() -> None:
    spec = side_outputs(counts=SourceCounters.TASK)
    fleet = pack([spec])
    state = started(fleet)
    for _ in range(6):
        flow = step(fleet, state, 1000.0, 500.0)
    result = measure_edge_rates(spec.graph(), flow.in_per_s[0], state.records_out[0] / 60.0)
    assert result[SOURCE, "route"] == pytest.approx(270.0)
    assert result["route", "join"] == pytest.approx(243.0)
    assert result["route", "small"] == pytest.approx(27.0)


def test_a_slow_side_branch_holds_back_the_whole_source() -> None:
    fleet = pack([side_outputs()])
    flow = step(fleet, started(fleet), 50_000.0, 0.0)
    assert flow.in_per_s[0, 0] == pytest.approx(5000.0)  # its own capacity: route 1,350/s, small 135/s
    slow = pack([side_outputs()])
    slow.curves[0, 4] /= 10.0  # small: 30/s
    flow = step(slow, started(slow), 5000.0, 0.0)
    assert flow.in_per_s[0, 0] == pytest.approx(30.0 / 0.027)
    assert flow.backpressured[0, 2] > 0.0


@pytest.mark.parametrize(
    ("counts", "task_in", "operator_in"),
    [
        (SourceCounters.OPERATOR, 0.0, 0.0),
        (SourceCounters.TASK, 60_000.0, 60_000.0),
        (SourceCounters.BATCHES, 600.0, 600.0),
    ],
)
def test_a_source_counts_on_either_side(counts: SourceCounters, task_in: float, operator_in: float) -> None:
    metrics = poll_source(side_outputs(counts=counts), 1000.0, 500.0)
    assert metrics["numRecordsIn"] == task_in
    assert metrics["Source__orders.numRecordsIn"] == operator_in
    assert metrics["Source__orders.numRecordsOut"] == 60_000.0
    assert metrics["numRecordsOut"] == pytest.approx(18_000.0, abs=1.0)
    assert "Source__orders.pendingRecords" in metrics


def test_a_whole_job_in_one_vertex_sends_nothing() -> None:
    spec = JobSpec("whole", (OperatorSpec(WHOLE, (), 2000.0, 0.0, selectivity=0.0, shows_backlog=False),))
    metrics = poll_source(spec, 1000.0)
    assert (metrics["numRecordsIn"], metrics["numRecordsOut"]) == (0.0, 0.0)
    assert metrics["Source__orders.numRecordsOut"] == 60_000.0
    assert metrics["busyTimeMsPerSecond"] == pytest.approx(500.0, abs=100.0)
    assert "Source__orders.pendingRecords" not in metrics


def test_the_names_of_a_chain_are_written_as_flink_does() -> None:
    lines = write_lines(JobSpec("whole", (OperatorSpec(WHOLE, (), 2000.0, 0.0, selectivity=0.0),)), 100.0)
    job = next(body for kind, body in lines if kind == "job")
    assert [vertex["name"] for vertex in job["vertices"]] == [WHOLE]
    plan = next(body for kind, body in lines if kind == "plan")
    description = plan["plan"]["nodes"][0]["description"]
    assert description == "Source: orders<br/>+- filter<br/>   +- Sink: out<br/>"
    long = "Source: " + 90 * "x"
    spec = JobSpec("long", (OperatorSpec(f"{long} -> Sink: out", (), 2000.0, 0.0, selectivity=0.0),))
    assert f"Source__{72 * 'x'}.numRecordsOut" in poll_source(spec, 100.0)


def test_a_backlog_is_in_the_records_that_the_source_takes_in() -> None:
    spec = JobSpec("whole", (OperatorSpec(WHOLE, (), 800.0, 0.0, selectivity=0.0),))
    fleet = pack([spec])
    state = started(fleet)
    step(fleet, state, 1000.0, step_s=60.0)
    assert state.backlog[0, 0] == pytest.approx(60.0 * 200.0)
    assert state.emitted[0, 0] == pytest.approx(60.0 * 800.0)


def test_a_source_that_waits_in_poll_is_busy_at_any_rate() -> None:
    for rate in (10.0, 900.0):
        fleet = pack([side_outputs(waits_in_poll=True)])
        state = started(fleet)
        flow = step(fleet, state, rate, 0.0)
        assert (flow.busy[0, 0], flow.idle[0, 0]) == (1.0, 0.0)
        assert flow.working[0, 0] == pytest.approx(rate / 5000.0)
        assert state.busy_s[0, 0] == 10.0
        assert flow.busy[0, 2] == pytest.approx(rate * 0.27 / 2000.0)
    fleet = pack([side_outputs(waits_in_poll=True)])
    fleet.curves[0, 2] /= 10.0  # route: 200/s
    flow = step(fleet, started(fleet), 2000.0, 0.0)
    assert flow.backpressured[0, 0] > 0.5
    assert flow.busy[0, 0] + flow.backpressured[0, 0] == pytest.approx(1.0)


def window_job(sink_per_s: float, burst_s: float = 300.0, **options: float) -> JobSpec:
    operators = (
        OperatorSpec("Source: a", (), 5000.0, 0.0),
        OperatorSpec("window", ("Source: a",), 4000.0, 0.0, selectivity=0.5, burst_s=burst_s),
        OperatorSpec("Sink: b", ("window",), sink_per_s, 0.0, selectivity=0.0),
    )
    return JobSpec("bursts", operators, failures_per_week=0.0, **options)


def test_a_window_emits_in_bursts_what_it_gathered_and_loses_nothing() -> None:
    fleet = pack([window_job(20_000.0)])
    state = started(fleet)
    sunk, sent = [], np.zeros(2)
    for _ in range(100):
        flow = step(fleet, state, 1000.0, step_s=30.0)
        sunk.append(flow.in_per_s[0, 2])
        sent += 30.0 * np.array([flow.in_per_s[0, 1], flow.through_per_s[0, 1]])
        assert state.held[0, 1] + state.fired[0, 1] == pytest.approx(sent[0] - sent[1], abs=1e-6)
    assert [place for place, rate in enumerate(sunk) if rate > 0] == list(range(10, 100, 10))
    assert sunk[10] == pytest.approx(0.5 * 300_000.0 / 30.0)
    assert state.records_out[0, 1] == pytest.approx(0.5 * sent[1])
    np.testing.assert_allclose(fleet.mean_gain[0, :, 0], [1.0, 1.0, 0.5])
    assert (compute_gains(fleet.specs[0])[:, 0] == [1.0, 1.0, 0.5]).all()


def test_a_burst_that_the_successor_cannot_take_blocks_the_window() -> None:
    fleet = pack([window_job(1000.0, record_bytes=np.inf)])  # takes 500/s in the mean, 150 s for each burst
    state = started(fleet)
    while state.time_s < 300.0:
        step(fleet, state, 1000.0, step_s=30.0)
    assert state.backlog[0, 0] == 0.0
    flow = step(fleet, state, 1000.0, step_s=30.0)
    assert (flow.in_per_s[0, 1], flow.in_per_s[0, 2]) == (0.0, pytest.approx(1000.0))
    assert flow.backpressured[0, 0] == pytest.approx(1.0)
    assert flow.backpressured[0, 1] == pytest.approx(1.0)
    assert state.backlog[0, 0] == pytest.approx(30_000.0)
    while state.time_s < 600.0:
        step(fleet, state, 1000.0, step_s=30.0)
    assert state.fired[0, 1] == 0.0
    assert state.backlog[0, 0] == pytest.approx(0.0, abs=1e-6)  # 150 s at 4,000/s: caught up


@pytest.mark.parametrize("kind", [RestartKind.FAILURE, RestartKind.RESCALE])
def test_what_a_window_gathered_comes_back_with_the_checkpoint(kind: RestartKind) -> None:
    fleet = pack([window_job(20_000.0, checkpoint_interval_s=60.0, state_bytes_per_record=0.0)])
    state = started(fleet)
    while state.time_s < 200.0:
        step(fleet, state, 1000.0)
    begin_restart(fleet, state, 0, kind, at_s=200.0, target=np.array([1, 1, 1]), noise=0.0)
    if kind is RestartKind.FAILURE:  # of the checkpoint at 180 s
        assert state.held[0, 1] == pytest.approx(180_000.0)
        assert state.backlog[0, 0] == pytest.approx(20_000.0)
    else:
        assert state.held[0, 1] == pytest.approx(200_000.0)
        assert state.backlog[0, 0] == 0.0
    while state.time_s < 600.0:
        step(fleet, state, 1000.0)
    # Every record is in the state of the window, was emitted, or waits: once.
    emitted = state.emitted[0, 0] - state.replayed[0, 0]
    assert emitted + state.backlog[0, 0] == pytest.approx(600_000.0)


def test_a_burst_counts_at_its_mean_where_slots_are_fitted() -> None:
    fleet = pack([window_job(1000.0)])
    needed = find_fitting_parallelism(fleet, at_sources(fleet, 4000.0), 0.8)
    assert needed[0].tolist() == [1, 2, 3]  # the sink: 2,000/s at 800/s each


@pytest.mark.parametrize("options", [{"counts": one} for one in SourceCounters] + [{"waits_in_poll": True}])
def test_the_replies_are_read_right_whatever_the_source_counts(options: Mapping[str, Any]) -> None:
    """By the windows of the controller: rates of sources before their filters, and the edges behind them."""
    spec = side_outputs(**options)
    made = PollHistory({"c": 300})
    assert made.add(sorted(write_records(spec, 1000.0, 500.0), key=lambda record: record.observed_at_ms)) == []
    result = made.windows(86_400.0 + 3600.0 + 300.0).observations(0)
    names = made.jobs()[0].graph.names
    place = {name: names.index(name) for name in names}
    order = [place[name] for name in spec.graph().names]
    taken, sent = result.processing_rate_per_s[-1][order], result.output_rate_per_s[-1][order]
    np.testing.assert_allclose(taken, [1000.0, 500.0, 270.0, 30.0, 27.0, 743.0], rtol=0.01)
    assert result.target_data_rate_per_s[-1][place[SOURCE]] == pytest.approx(1000.0, rel=0.01)
    ratios = measure_edge_ratios(spec.graph(), taken[None], sent[None])
    for edge, ratio in spec.edge_ratios.items():
        assert ratios[edge] == pytest.approx(ratio, rel=0.02), edge


def write_records(spec: JobSpec, *rates: float) -> list[RawRecord]:
    """Return an hour of polls, one after each minute."""
    fleet = pack([spec])
    grid = np.tile(at_sources(fleet, *rates), (60, 1, 1))

    def keep(snapshot: Any) -> Any:
        return snapshot.parallelism

    history = simulate(fleet, grid, np.ones(fleet.shape, np.int64), keep, RunOptions(step_s=60.0, poll_s=60.0, seed=1))
    writer = LineWriter(fleet, history.samples, history.restarts, TimeOrigin("c", 86_400_000, (0,)))
    return [RawRecord(**json.loads(line)) for line in writer.hour(range(60), cluster_wide=False)]


def write_lines(spec: JobSpec, *rates: float) -> list[tuple[str, Any]]:
    """Return (kind, body) of these polls."""
    return [(str(record.kind), json.loads(record.body)) for record in write_records(spec, *rates)]


def poll_source(spec: JobSpec, *rates: float) -> Mapping[str, float]:
    """Return the sums of the source's metrics at the first poll."""
    body = next(body for kind, body in write_lines(spec, *rates) if kind == "vertex_metrics" and body)
    return {one["id"]: one["avg"] if one["id"].startswith("busy") else one["sum"] for one in body}
