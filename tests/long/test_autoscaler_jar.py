"""Apache Flink's own autoscaler beside our copy of its rules: a day of load, decision by decision."""

from __future__ import annotations

import shutil
from typing import Any

import pytest

from benchmarks.replay.autoscaler_java.compare import DecisionPair, PairDriver
from benchmarks.replay.autoscaler_java.jar_driver import NAME, AutoscalerProcess, list_options
from benchmarks.replay.replay_cases import ReplayCase, replay_case
from benchmarks.replay.replay_jobs import read_job
from benchmarks.replay.split import Piece, read_piece
from lab.policies.flink_autoscaler.config import Release
from lab.replay.candidate_policies import CandidatePolicy
from lab.replay.conditions import Conditions
from lab.replay.replay_run import ReplayRun

pytestmark = [
    pytest.mark.long,
    pytest.mark.timeout(900),
    pytest.mark.skipif(not shutil.which("mvn"), reason="Maven fetches the autoscaler's jars"),
]
DAY = Piece("dsp_taxi_5min", 3, 1)


def test_our_rules_decide_as_the_jar_does() -> None:
    workload = read_job("wordcount").build_workload(read_piece(DAY), 10)
    pairs: list[DecisionPair] = []
    # Narrow bounds and scale-downs that do not wait make for many decisions.
    ours = {"utilization_target": 0.8, "target_utilization_boundary": 0.05, "scale_down_interval_s": 0.0}
    theirs = {
        "job.autoscaler.target.utilization": "0.8",
        "job.autoscaler.target.utilization.boundary": "0.05",
        "job.autoscaler.scale-down.interval": "0 s",
    }
    with AutoscalerProcess({**list_options(workload.spec.slots_max), **theirs}) as process:
        driver: Any = PairDriver("taxi", ours, Release.V1_10, process, pairs)
        ReplayRun(workload, [CandidatePolicy("pair", driver)], [0, 1], Conditions()).run()
    asking = [pair for pair in pairs if pair.theirs is not None]
    assert len(asking) >= 10
    assert sum(pair.kind == "same" for pair in pairs) >= 0.99 * len(pairs)


def test_the_jar_is_a_row_of_the_replay() -> None:
    case = ReplayCase(read_piece(DAY), "wordcount", (NAME, "static_max"), (0, 1), Conditions())
    costs = {str(row["policy"]): row["cost"] for row in replay_case(case).rows if row["segment"] == "all"}
    assert set(costs) == {NAME, "static_max"}
    assert replay_case(case).rows == replay_case(case).rows
