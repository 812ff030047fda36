"""The hour in one application: an executor that is lost within each of its stages costs time, and no row is another."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from small_world import AS_OF, World, write_small_history
from standalone_spark import HOST, find_executors, standalone_spark
from waiting import wait_until

from include.stage_names import Stage
from include.stage_request import StageRequest

HOURS = 3
HOUR = StageRequest(Stage.INGEST, AS_OF, AS_OF - timedelta(hours=HOURS), AS_OF)
STAGES = (Stage.INGEST, Stage.FORECAST, Stage.PLAN, Stage.REPORT)
JOBS_BEFORE = {Stage.INGEST: 5, Stage.FORECAST: 2, Stage.PLAN: 2, Stage.REPORT: 1}
"""So many Spark jobs of a stage have begun when an executor is killed."""
TRIES = 3  # of the task: the first, and the least retries of its stages

pytestmark = [pytest.mark.long, pytest.mark.timeout(3600)]


@pytest.fixture(scope="module")
def master(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with standalone_spark(tmp_path_factory.mktemp("spark"), workers=2, memory="1g") as url:
        yield url


def on_executors(world: World, master: str) -> World:
    """Return the world with two executors of one core each, and the events of Spark below it."""
    events = {"eventLog.enabled": "true", "eventLog.dir": f"file://{world.out}/events"}
    plain = {"eventLog.compress": "false", "eventLog.rolling.enabled": "false"}
    variables = {
        "TIDEWISE__SPARK__EXECUTORS": "2",
        "TIDEWISE__SPARK__EXECUTOR_CORES": "1",
        "TIDEWISE__SPARK__EXECUTOR_MEMORY": "1g",
        "TIDEWISE__SPARK__EXECUTOR_PYTHON": sys.executable,
        "TIDEWISE__SPARK__OPTIONS": json.dumps({f"spark.{name}": value for name, value in (events | plain).items()}),
        "SPARK_LOCAL_IP": HOST,
    }
    return World(world.out, world.raw, master, variables)


class Tries:
    """The task, tried until it ends well; an executor is killed once within each stage."""

    def __init__(self, world: World) -> None:
        self.world, self.killed_in, self.codes = world, [], list[int]()

    def run(self) -> None:
        while 0 not in self.codes and len(self.codes) < TRIES:
            shutil.rmtree(self.world.out / "events", ignore_errors=True)
            (self.world.out / "events").mkdir()
            log = self.world.out / f"log-{len(self.codes)}"
            process = self.world.start(HOUR, log, *STAGES[1:])
            for stage in STAGES:
                if stage not in self.killed_in and self._reach(process, log, stage):
                    self._kill(log, stage)
            self.codes.append(process.wait(900))

    def _reach(self, process: subprocess.Popen[bytes], log: Path, stage: Stage) -> bool:
        """Wait until enough Spark jobs of a stage have begun; False: the application has ended before."""

        def has_begun() -> bool:
            return f"tidewise: stage {stage} starts" in log.read_text(errors="replace")

        wait_until(lambda: process.poll() is not None or has_begun(), 600, 0.1)
        before = self._count_jobs()
        enough = before + JOBS_BEFORE[stage]
        wait_until(lambda: process.poll() is not None or self._count_jobs() >= enough, 600, 0.1)
        return process.poll() is None

    def _kill(self, log: Path, stage: Stage) -> None:
        victim, *others = find_executors()
        assert others
        victim.kill()
        assert f"tidewise: stage {stage} done" not in log.read_text(errors="replace")
        self.killed_in.append(stage)

    def _count_jobs(self) -> int:
        files = (self.world.out / "events").iterdir()
        return sum(file.read_bytes().count(b'"Event":"SparkListenerJobStart"') for file in files)


def leave_out_versions(row: str) -> dict[str, object]:
    """Return the columns of a row but for the versions of tables, of which a further try of the task makes more."""
    return {name: value for name, value in json.loads(row).items() if name != "input_versions"}


def test_an_executor_lost_in_each_stage_of_the_hour_changes_no_row(master: str, tmp_path: Path) -> None:
    write_small_history(tmp_path / "raw", HOURS)
    alone = World(tmp_path / "out", tmp_path / "raw")
    alone.out.mkdir()
    alone.complete(HOUR, alone.out / "log", Stage.TRAIN)
    shutil.copytree(alone.out, tmp_path / "trained")
    alone.complete(StageRequest(STAGES[1], AS_OF), alone.out / "log", *STAGES[2:])  # an application of its own
    expected = alone.rows()
    assert expected["gold.plans"]
    shutil.rmtree(alone.out)
    shutil.copytree(tmp_path / "trained", alone.out)  # in the same place: the model store holds absolute paths
    tries = Tries(on_executors(alone, master))
    tries.run()
    assert tries.codes[-1] == 0, (alone.out / f"log-{len(tries.codes) - 1}").read_text(errors="replace")[-4000:]
    assert tries.killed_in == list(STAGES)
    rows = alone.rows()
    assert rows.keys() == expected.keys()
    for table, those in expected.items():
        assert list(map(leave_out_versions, rows[table])) == list(map(leave_out_versions, those)), table
    print(f"an executor killed in each of {', '.join(STAGES)}: {len(tries.codes)} tries of the task")
