"""A job whose controller has polled ten minutes of windows, of which nothing was ingested."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
from controlled_cluster import ControlledCluster

from controller.view.job_view import JobView
from include.domain.graph import JobGraph, Operator
from include.live_windows import LiveWindows
from models.policies.observations import MEASURES, Observations

WINDOW_S = 10
GRAPH = JobGraph.from_operators([Operator("Source: orders", (), 128), Operator("enrich", ("Source: orders",), 128)])


def form_windows(start_s: int, count: int, load_per_s: float = 50.0, age_s: float = 2.0) -> Observations:
    """Return windows of both operators."""
    shape = (count, 2)
    values = {name: np.full(shape, 0.5) for name in MEASURES}
    values["target_data_rate_per_s"] = np.tile([load_per_s, np.nan], (count, 1))
    values["pending_records"] = np.tile([1234.0, np.nan], (count, 1))
    values["latency_ms"] = np.tile([1000.0 * age_s, np.nan], (count, 1))
    return Observations(
        window_start_s=start_s + WINDOW_S * np.arange(count),
        window_s=WINDOW_S,
        parallelism=np.full(shape, 3),
        disturbed=np.zeros(count, bool),
        **values,
    )


def evaluate(world: ControlledCluster, observations: Observations | None, *, is_evaluation: bool = True) -> None:
    """Have the controller of a cluster evaluate its job with these windows, or follow it only."""
    world.control.live = LiveWindows(str(world.root / "lake"))
    seen = replace(world.poll(), graph=GRAPH)
    view = JobView("live", world.job.name, seen=seen, observations=observations)
    world.control.control({world.job.name: view}, {world.job.name: None}, None, is_evaluation=is_evaluation)


def run_for_ten_minutes(world: ControlledCluster, age_s: float = 2.0) -> None:
    """Have the job be rescaled, and polled for ten minutes."""
    assert world.want(4) == "rescale plan"
    assert world.want(4) == "confirm runs_as_requested"
    evaluate(world, form_windows(int(time.time()) // WINDOW_S * WINDOW_S - 600, 60, age_s=age_s))
