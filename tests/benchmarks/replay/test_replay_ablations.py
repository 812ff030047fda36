"""What the planner decides without one of its parts, over three days."""

from __future__ import annotations

import pytest
from replayed_line import workload

from benchmarks.replay.fleet_prior_value import learn_prior_without
from lab.replay.ablations import ABLATIONS, FLEET
from lab.replay.candidate_policies import build_candidates
from lab.replay.conditions import Conditions, Disturbances
from lab.replay.replay_run import ReplayRun


@pytest.mark.long
def test_the_planner_without_a_part_decides_otherwise() -> None:
    job, conditions = workload(3.0), Conditions(fleet=learn_prior_without("wordcount", Disturbances()))
    assert len(build_candidates(list(ABLATIONS), job, conditions)) == len(ABLATIONS)
    chosen = ["planner", "planner_no_uncertainty", "planner_no_recovery", FLEET]
    result = ReplayRun(job, build_candidates(chosen, job, conditions), [0], conditions).run()
    slots = dict(zip(result.names, result.ledger.slots.sum(axis=0).tolist(), strict=True))
    assert slots["planner_no_uncertainty"] < slots["planner"]
    assert slots["planner_no_recovery"] < slots["planner"]
