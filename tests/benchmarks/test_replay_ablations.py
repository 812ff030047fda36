"""What the planner decides without one of its parts, over three days."""

from __future__ import annotations

import numpy as np

from benchmarks.replay.fleet_prior_value import learn_prior_without
from models.evaluation.ablations import ABLATIONS, FLEET
from models.evaluation.candidate_policies import build_candidates
from models.evaluation.conditions import Conditions, Disturbances
from models.evaluation.replay_run import ReplayRun
from models.evaluation.workload import Workload
from models.simulation.spec import JobSpec, OperatorSpec

MONDAY = 1_709_510_400  # 2024-03-04 00:00 UTC
LINE = JobSpec(
    "line",
    (
        OperatorSpec("in", (), 1000.0, contention=0.0),
        OperatorSpec("work", ("in",), 100.0, contention=0.02, selectivity=0.5),
        OperatorSpec("out", ("work",), 500.0, contention=0.0, selectivity=0.0),
    ),
    slots_max=16,
)


def workload(days: float, start_s: int = MONDAY) -> Workload:
    at = np.arange(round(days * 8640)) * 10.0
    return Workload(LINE, start_s, 10, (500.0 + 250.0 * np.sin(2 * np.pi * at / 86400))[:, None])


def test_the_planner_without_a_part_decides_otherwise() -> None:
    job, conditions = workload(3.0), Conditions(fleet=learn_prior_without("wordcount", Disturbances()))
    assert len(build_candidates(list(ABLATIONS), job, conditions)) == len(ABLATIONS)
    chosen = ["planner", "planner_no_uncertainty", "planner_no_recovery", FLEET]
    found = ReplayRun(job, build_candidates(chosen, job, conditions), [0], conditions).run()
    slots = dict(zip(found.names, found.ledger.slots.sum(axis=0).tolist(), strict=True))
    assert slots["planner_no_uncertainty"] < slots["planner"]
    assert slots["planner_no_recovery"] < slots["planner"]
