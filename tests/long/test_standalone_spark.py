"""Two executors of a standalone Spark cluster make the same tables as one process; a lost one costs time only."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from small_world import AS_OF, World, write_small_history
from standalone_spark import HOST, find_executors, standalone_spark
from waiting import wait_until

from include.stage_names import LEARN, Stage
from include.stage_request import StageRequest

HOURS = 6
LATER = (Stage.TRAIN, LEARN, Stage.FORECAST, Stage.PLAN)
INGEST = StageRequest(Stage.INGEST, AS_OF, AS_OF - timedelta(hours=HOURS), AS_OF)
EXECUTORS = {
    "TIDEWISE__SPARK__EXECUTORS": "2",
    "TIDEWISE__SPARK__EXECUTOR_CORES": "1",
    "TIDEWISE__SPARK__EXECUTOR_MEMORY": "1g",
    "TIDEWISE__SPARK__EXECUTOR_PYTHON": sys.executable,
    "SPARK_LOCAL_IP": HOST,
}

pytestmark = [pytest.mark.long, pytest.mark.timeout(1800)]


@pytest.fixture(scope="module")
def master(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with standalone_spark(tmp_path_factory.mktemp("spark"), workers=2, memory="1g") as url:
        yield url


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> World:
    """The tables of one process."""
    root = tmp_path_factory.mktemp("one")
    write_small_history(root / "raw", HOURS)
    return run(World(root / "out", root / "raw"))


def run(world: World) -> World:
    world.out.mkdir()
    world.complete(INGEST, world.out / "log", *LATER)
    return world


def test_two_executors_make_the_tables_of_one_process(master: str, expected: World, tmp_path: Path) -> None:
    world = run(World(tmp_path / "out", expected.raw, master, EXECUTORS))
    rows = world.rows()
    assert rows["gold.plans"]
    assert rows == expected.rows()


def test_a_lost_executor_costs_time_only(master: str, expected: World, tmp_path: Path) -> None:
    world = World(tmp_path / "out", expected.raw, master, EXECUTORS)
    world.out.mkdir()
    process = world.start(INGEST, world.out / "log", *LATER)
    assert wait_until(lambda: "stage train starts" in (world.out / "log").read_text(errors="replace"), 300, 0.5)
    (victim, *others) = wait_until(find_executors, 60)
    assert others
    victim.kill()
    assert process.wait(900) == 0, (world.out / "log").read_text(errors="replace")[-4000:]
    assert world.rows() == expected.rows()
