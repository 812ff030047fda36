"""The reactive controller of a job with an operator that cannot grow: the others are sized by their own load."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from include.domain.graph import JobGraph, Operator
from include.settings import Planner
from lab.policies.planner.controller_memory import ControllerMemory
from lab.policies.planner.reactive_controller import decide_reactively
from models.policies.evaluation.pending_steps import PendingStep
from models.policies.job_snapshot import Snapshot
from models.policies.observations import MEASURES, Observations

GRAPH = JobGraph.from_operators(
    [Operator("source"), Operator("map", ("source",)), Operator("top", ("map",), max_parallelism=1)]
)
PER_SUBTASK = {"source": 10_000.0, "map": 1000.0, "top": 500.0}


def snapshot(now_s: int, load_per_s: float, maps: int, *, lag_s: float = 0.0, graph: JobGraph = GRAPH) -> Snapshot:
    running = {"source": 1, "map": maps, "top": 1}
    processed = np.full((2, 3), load_per_s)
    capacity = np.tile([PER_SUBTASK[name] * count for name, count in running.items()], (2, 1))
    share = np.minimum(processed / capacity, 1.0)
    values = dict.fromkeys(MEASURES, processed) | {
        "true_processing_rate_per_s": capacity,
        "true_output_rate_per_s": capacity,
        "busy_share": share,
        "idle_share": 1.0 - share,
        "backpressured_share": np.zeros((2, 3)),
        "latency_ms": np.tile([1000.0 * lag_s, np.nan, np.nan], (2, 1)),
    }
    observed = Observations(
        window_start_s=np.array([now_s - 600, now_s - 300]),
        window_s=300,
        parallelism=np.tile(list(running.values()), (2, 1)),
        disturbed=np.zeros(2, bool),
        **values,
    )
    return Snapshot(now_s, graph, running, True, observed, 32, Planner())


def test_an_operator_beside_a_full_and_short_one_is_grown():
    for planned in (True, False):
        reported, _ = decide_reactively(snapshot(600, 2600.0, 2), ControllerMemory(planned=planned))
        assert reported.wanted is not None
        assert reported.wanted["map"] >= 3
        assert reported.wanted["top"] == 1
        assert "load uses 130%" in reported.reason  # of what map can process, not of top
        assert "top cannot grow and is short (520%" in reported.reason


def test_a_full_operator_does_not_keep_a_job_large():
    memory, asked = ControllerMemory(), []
    for turn in range(40):
        reported, memory = decide_reactively(snapshot(600 + 300 * turn, 700.0, 20, lag_s=900.0), memory)
        asked.append(reported.wanted and reported.wanted["map"])
    assert asked[0] is None
    assert 1 in asked


def test_a_full_operator_that_is_short_does_not_hold_a_planned_fall_up():
    step = PendingStep(600, 4200, {"source": 1, "map": 3, "top": 1}, 800.0, "falls")
    memory = decide_reactively(snapshot(300, 700.0, 8, lag_s=900.0), ControllerMemory(planned=True))[1]
    reported, _ = decide_reactively(snapshot(600, 700.0, 8, lag_s=900.0), replace(memory, due=(step,)))
    assert reported.wanted == {"source": 1, "map": 3, "top": 1}


def test_a_fall_that_would_overload_an_operator_that_could_grow_still_waits():
    step = PendingStep(600, 4200, {"source": 1, "map": 2, "top": 1}, 9000.0, "falls")
    memory = decide_reactively(snapshot(300, 1900.0, 2), ControllerMemory(planned=True))[1]
    memory = replace(decide_reactively(snapshot(600, 2600.0, 8), memory)[1], due=(step,))
    assert decide_reactively(snapshot(900, 2600.0, 8), memory)[0].wanted is None


def test_a_backlog_that_a_full_operator_causes_enlarges_nothing():
    memory = decide_reactively(snapshot(600, 700.0, 2), ControllerMemory(planned=True))[1]
    reported, memory = decide_reactively(snapshot(900, 700.0, 2, lag_s=600.0), memory)
    assert reported.wanted is None
    assert memory.back_to is None
    assert "as planned" in reported.reason


def test_a_backlog_is_worked_off_beside_an_operator_that_is_full_and_not_short():
    memory = decide_reactively(snapshot(600, 480.0, 1), ControllerMemory(planned=True))[1]
    wide = JobGraph.from_operators(
        [Operator("source"), Operator("map", ("source",), max_parallelism=1), Operator("top", ("map",))]
    )
    reported, _ = decide_reactively(snapshot(900, 480.0, 1, lag_s=400.0, graph=wide), memory)
    assert reported.wanted is not None
    assert reported.wanted["map"] == 1
    assert reported.wanted["top"] > 1


def test_a_fully_grown_job_that_is_short_is_left_and_named():
    alone = JobGraph.from_operators([Operator(name, up, 1) for name, up in _CHAIN])
    reported, _ = decide_reactively(snapshot(600, 700.0, 1, graph=alone), ControllerMemory(planned=True))
    assert reported.wanted is None
    assert "top cannot grow and is short (140%" in reported.reason


_CHAIN: tuple[tuple[str, tuple[str, ...]], ...] = (("source", ()), ("map", ("source",)), ("top", ("map",)))
