"""A stage that is killed at any moment and run again leaves the tables of an undisturbed run.

Random moments in real processes; every write of every stage stands in ``tests/spark/test_stages_survive_kills.py``.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import time
from datetime import timedelta
from pathlib import Path

import pytest
from small_world import AS_OF, World, write_small_history

from include.stage_names import LEARN, Stage
from include.stage_request import StageRequest

HOURS = 6
KILLS = 4  # of each stage,
IN_A_ROW = 2  # the second of them while what the first left is being made good
REQUESTS = (
    StageRequest(Stage.INGEST, AS_OF, AS_OF - timedelta(hours=HOURS), AS_OF),
    StageRequest(Stage.TRAIN, AS_OF),
    StageRequest(LEARN, AS_OF),
    StageRequest(Stage.FORECAST, AS_OF),
    StageRequest(Stage.PLAN, AS_OF),
)

pytestmark = [pytest.mark.long, pytest.mark.timeout(7200)]


@pytest.fixture
def world(tmp_path, monkeypatch) -> World:
    """Two jobs under the default policy and one under a policy that learns and remembers."""
    monkeypatch.setenv("TIDEWISE__PLANNER__POLICIES", '{"simulated/job-0001": "rl_decentralised"}')
    write_small_history(tmp_path / "raw", HOURS)
    world = World(tmp_path / "out", tmp_path / "raw")
    world.out.mkdir()
    return world


def kill(process: subprocess.Popen[bytes]) -> None:
    """SIGKILL to everything of a stage: the submitter, the JVM and Python."""
    os.killpg(process.pid, signal.SIGKILL)
    process.wait(timeout=30)


def restore(world: World, saved) -> None:
    """Put everything back to before the stage, in the same place: the model store holds absolute paths."""
    shutil.rmtree(world.out)
    shutil.copytree(saved, world.out)


def timestamps(generator: random.Random) -> list[list[float]]:
    """Random shares of a run, one in each of as many stretches; not in its first quarter, where only Java starts."""
    width = 0.75 / KILLS
    result = [0.25 + width * (index + generator.random()) for index in range(KILLS)]
    generator.shuffle(result)
    return [result[start : start + IN_A_ROW] for start in range(0, KILLS, IN_A_ROW)]


def completed_in(world: World, request: StageRequest, log: Path) -> float:
    """Run a stage to its end; returns how long it takes at the machine's present speed, in seconds."""
    began = time.monotonic()
    world.complete(request, log)
    return time.monotonic() - began


def test_every_stage_survives_being_killed(world, tmp_path):
    generator = random.Random(20261121)
    log, saved, killed = tmp_path / "stage.log", tmp_path / "before", 0
    for request in REQUESTS:
        shutil.rmtree(saved, ignore_errors=True)
        shutil.copytree(world.out, saved)
        seconds = completed_in(world, request, log)
        undisturbed = world.rows()
        for several in timestamps(generator):
            restore(world, saved)
            for share in several:
                process = world.start(request, log)
                try:
                    process.wait(timeout=share * seconds)  # a faster run than the last leaves nothing to be killed
                except subprocess.TimeoutExpired:
                    kill(process)
                    killed += 1
            seconds = completed_in(world, request, log)
            result = world.rows()
            assert result.keys() == undisturbed.keys()
            for table, rows in undisturbed.items():
                assert result[table] == rows, f"{table} after {request.stage} was killed at {several} of its run"
    assert set(undisturbed) >= {
        "silver.observations",
        "gold.model_versions",
        "gold.policy_memory",
        "gold.plans",
    }
    assert killed >= len(REQUESTS) * KILLS * 3 // 4
