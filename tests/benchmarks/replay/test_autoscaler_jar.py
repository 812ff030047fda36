"""What Flink's own autoscaler is given in the replay."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.replay.autoscaler_java.build import find_wrong_jars, read_pins
from benchmarks.replay.autoscaler_java.compare import DecisionPair
from benchmarks.replay.autoscaler_java.jar_driver import JarMemory, build_cycle, id_of
from lab.replay.candidate_policies import CandidatePolicy
from lab.replay.conditions import Conditions, Disturbances
from lab.replay.replay_run import ReplayRun
from lab.replay.workload import Workload
from lab.simulation.spec import JobSpec, OperatorSpec

MONDAY = 1_709_510_400
LINE = JobSpec(
    "line",
    (
        OperatorSpec("in", (), 1000.0, contention=0.0),
        OperatorSpec("work", ("in",), 100.0, contention=0.0, selectivity=0.0),
    ),
    slots_max=16,
)


def test_counters_grow_with_what_is_processed_and_restart_with_the_job() -> None:
    cycles: list[dict[str, Any]] = []

    class Probe:
        def first_memory(self) -> JarMemory:
            return JarMemory("job")

        def tick(self, snapshot: Any, memory: JarMemory) -> tuple[dict[str, int] | None, JarMemory]:
            cycle, after = build_cycle(snapshot, memory)
            if cycle is not None:
                cycles.append(cycle)
            return ({"work": 12} if len(cycles) == 5 else None), after

    load = Workload(LINE, MONDAY, 10, np.full((8640 // 8, 1), 500.0))
    driver: Any = Probe()
    undisturbed = Conditions(disturbances=Disturbances(failures_per_day=0, capacity_noise=0.0))
    ReplayRun(load, [CandidatePolicy("probe", driver)], [0], undisturbed).run()
    counters = [cycle["vertices"][1]["records_in"] for cycle in cycles]
    assert np.diff(counters[:5]) == pytest.approx(150_000.0)
    assert counters[5] < counters[4]  # the rescale began at the fifth
    assert cycles[0]["running_since_ms"] == 1000 * MONDAY
    assert cycles[5]["running_since_ms"] > 1000 * (MONDAY + 1500)
    assert cycles[5]["vertices"][1]["parallelism"] == 12
    assert cycles[0]["vertices"][1]["inputs"] == [id_of(0)]
    assert cycles[0]["vertices"][1]["busy_ms_per_s"] == pytest.approx(1000 * 500 / (100 * 8), rel=0.2)


def test_jars_are_pinned_by_content(tmp_path: Path) -> None:
    content = b"jar"
    pins = {"a.jar": hashlib.sha256(content).hexdigest(), "b.jar": "0" * 64}
    (tmp_path / "a.jar").write_bytes(content)
    (tmp_path / "c.jar").write_bytes(content)
    assert find_wrong_jars(tmp_path, pins) == ["b.jar", "c.jar"]
    assert "flink-autoscaler-1.10.0.jar" in read_pins()
    assert all(len(digest) == 64 for digest in read_pins().values())


def test_differences_have_kinds() -> None:
    def kind(ours: dict[str, int] | None, theirs: dict[str, int] | None) -> str:
        return DecisionPair("t", 0, {"a": 4}, ours, theirs).kind

    assert kind(None, None) == kind({"a": 3}, {"a": 3}) == "same"
    assert kind({"a": 5}, None) == "only ours asks for more"
    assert kind(None, {"a": 3}) == "only Flink's asks for less"
    assert kind({"a": 5}, {"a": 6}) == "both ask, for other numbers"
