"""A fall that is due: sent when the load before it is as forecast, kept back while it is higher than that."""

import numpy as np
import pytest

from include.domain.graph import JobGraph, Operator
from include.settings import Planner
from lab.policies.planner.controller_memory import ControllerMemory
from lab.policies.planner.reactive_controller import decide_reactively
from models.policies.evaluation.pending_steps import PendingStep
from models.policies.job_snapshot import Snapshot
from models.policies.observations import MEASURES, Observations

GRAPH = JobGraph.from_operators([Operator("source"), Operator("map", ("source",))])
FALL = PendingStep(600, 1200, {"source": 1, "map": 2}, 200.0, "the load falls", load_before_most_per_s=900.0)


def _sight(now_s: int, load_per_s: float) -> Snapshot:
    rates = np.full((2, 2), load_per_s)
    values = dict.fromkeys(MEASURES, rates) | {"latency_ms": np.zeros((2, 2))}
    values |= {name: np.full((2, 2), 0.5) for name in ("busy_share", "idle_share")}
    values |= {"backpressured_share": np.zeros((2, 2)), "true_processing_rate_per_s": 10 * rates}
    observed = Observations(
        window_start_s=np.array([now_s - 60, now_s - 30]),
        window_s=30,
        parallelism=np.tile([1, 8], (2, 1)),
        disturbed=np.zeros(2, bool),
        **values,
    )
    return Snapshot(now_s, GRAPH, {"source": 1, "map": 8}, True, observed, 16, Planner())


@pytest.mark.parametrize(
    ("now_s", "load_per_s", "sent"),
    [(600, 900.0, True), (600, 950.0, False), (690, 900.0, False), (690, 200.0, True)],
)
def test_a_fall_waits_only_while_the_load_is_above_its_forecast(now_s: int, load_per_s: float, sent: bool) -> None:
    reported, _ = decide_reactively(_sight(now_s, load_per_s), ControllerMemory(due=(FALL,), planned=True))
    assert (reported.wanted is not None) == sent
