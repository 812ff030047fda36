"""The reactive controller on jobs that fan out, and on figures that nothing measures: no step, and a reason."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import pytest

from include.domain.graph import JobGraph, Operator
from include.settings import Planner
from lab.policies.planner.controller_memory import ControllerMemory
from lab.policies.planner.reactive_controller import decide_reactively
from models.policies.job_snapshot import Snapshot
from models.policies.observations import MEASURES, Observations

WINDOWS = 2


def graph_of(**upstream: tuple[str, ...]) -> JobGraph:
    return JobGraph.from_operators([Operator(name, feeding) for name, feeding in upstream.items()])


ROUTE = graph_of(source=(), route=("source",), big=("route",), small=("route",))
DIAMOND = graph_of(source=(), a=("source",), b=("source",), c=("a", "b"), d=("a", "b"))


def look(
    graph: JobGraph,
    now_s: int,
    running: Mapping[str, int],
    taken: Mapping[str, float],
    sent: Mapping[str, float],
    busy: Mapping[str, float],
) -> Snapshot:
    """Return a job whose operators took and sent records at constant rates for two windows, without any backlog."""

    def columns(values: Mapping[str, float]) -> np.ndarray:
        return np.tile([values.get(name, math.nan) for name in graph.names], (WINDOWS, 1))

    capacity = {name: taken[name] / busy[name] for name in taken if busy.get(name) and busy[name] < 0.96}
    of_sources = dict.fromkeys(graph.sources, 0.0)
    values = dict.fromkeys(MEASURES, np.full((WINDOWS, len(graph.names)), math.nan)) | {
        "processing_rate_per_s": columns(taken),
        "output_rate_per_s": columns(sent),
        "true_processing_rate_per_s": columns(capacity),
        "target_data_rate_per_s": columns({name: taken[name] for name in graph.sources if name in taken}),
        "busy_share": columns(busy),
        "idle_share": 1.0 - columns(busy),
        "backpressured_share": np.zeros((WINDOWS, len(graph.names))),
        "pending_records": columns(of_sources),
        "latency_ms": columns(of_sources),
    }
    observed = Observations(
        window_start_s=np.array([now_s - 600, now_s - 300]),
        window_s=300,
        parallelism=np.tile([running[name] for name in graph.names], (WINDOWS, 1)),
        disturbed=np.zeros(WINDOWS, bool),
        **values,
    )
    return Snapshot(now_s, graph, running, True, observed, 32, Planner())


@pytest.mark.parametrize("planned", [True, False])
def test_side_outputs_of_half_busy_operators_are_no_overload(planned: bool) -> None:
    """Before, each successor was given the sum: 3 -> 12 slots at the first evaluation."""
    memory, running = ControllerMemory(planned=planned), {"source": 1, "route": 1, "big": 3, "small": 2}
    taken = {"source": 1000.0, "route": 1000.0, "big": 900.0, "small": 100.0}
    busy = {"source": 0.01, "route": 0.5, "big": 0.6, "small": 0.5}
    for number in range(4):
        reported, memory = decide_reactively(look(ROUTE, 600 + 300 * number, running, taken, taken, busy), memory)
        assert reported.wanted is None
        assert "edge_unknown" not in reported.reason


def test_a_side_output_that_is_short_is_enlarged_alone() -> None:
    running = {"source": 1, "route": 1, "big": 3, "small": 2}
    taken = {"source": 1000.0, "route": 1000.0, "big": 900.0, "small": 100.0}
    busy = {"source": 0.01, "route": 0.5, "big": 0.6, "small": 0.957}
    reported, _ = decide_reactively(look(ROUTE, 600, running, taken, taken, busy), ControllerMemory())
    assert reported.wanted == {**running, "small": 3}


def test_a_load_that_no_counter_tells_moves_nothing_and_is_named() -> None:
    graph = graph_of(source=())
    memory = ControllerMemory()
    for number in range(40):
        observed = look(graph, 600 + 300 * number, {"source": 4}, {}, {"source": 0.0}, {"source": 0.9})
        reported, memory = decide_reactively(observed, memory)
        assert reported.wanted is None
        assert reported.reason.startswith("load_unseen: no counter tells what source takes in")


def test_a_source_that_is_always_busy_is_not_enlarged_on_that_alone() -> None:
    """It waits inside its reader: 60% busy while it began, 100% at any rate since."""
    graph, running = graph_of(source=(), work=("source",)), {"source": 1, "work": 2}
    memory = ControllerMemory()
    for number, (rate, busy) in enumerate(((600.0, 0.9), (600.0, 1.0), (700.0, 1.0), (900.0, 1.0))):
        taken = {"source": rate, "work": rate}
        observed = look(graph, 600 + 600 * number, running, taken, taken, {"source": busy, "work": 0.5})
        reported, memory = decide_reactively(observed, memory)
        assert reported.wanted is None, reported.reason
        assert ("source_busy_unexplained: source" in reported.reason) == (busy == 1.0)


def test_an_edge_that_nothing_settles_neither_raises_nor_lowers_what_is_behind_it() -> None:
    taken = {"source": 1000.0, "a": 1000.0, "b": 1000.0, "c": 1500.0, "d": 500.0}
    memory = ControllerMemory()
    running = {"source": 1, "a": 2, "b": 2, "c": 8, "d": 8}
    busy = {"source": 0.1, "a": 0.5, "b": 0.5, "c": 0.01, "d": 0.9}
    for number in range(60):
        reported, memory = decide_reactively(look(DIAMOND, 600 + 300 * number, running, taken, taken, busy), memory)
        assert reported.wanted is None or (reported.wanted["c"], reported.wanted["d"]) == (8, 8)
        assert "edge_unknown: what goes over a to c, b to c, a to d, b to d" in reported.reason
        assert "so c, d neither rises nor falls" in reported.reason
