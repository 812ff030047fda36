"""A stage that is killed at any of its writes and run again leaves tables, files and models of an undisturbed run."""

from __future__ import annotations

import importlib
import json
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from kill_points import KillPoint, KillPoints, copy_world, recording
from pyspark.sql import SparkSession
from small_world import AS_OF, World, write_small_history
from waiting import wait_until

from include import tables
from include.model_registry import CHALLENGER, CHAMPION
from include.settings import load_settings
from include.stage_names import Stage
from include.stage_request import StageRequest
from spark_jobs.model_store import VERSION_TAG, ModelStore

HOURS = 3
SHORT = 2  # points of each stage that are checked first
REQUESTS = {
    stage: StageRequest(stage, AS_OF, AS_OF - timedelta(hours=HOURS), AS_OF)
    if stage is Stage.INGEST
    else StageRequest(stage, AS_OF)
    for stage in Stage
    if stage != "advise"  # writes no table, and appraises days that this history does not have
}
pytestmark = [pytest.mark.spark, pytest.mark.timeout(1800)]


@contextmanager
def variables(world: World) -> Iterator[None]:
    """Put the world's settings into the environment."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in world.environment.items():
            patch.setenv(name, value)
        yield


def run_stage(spark: SparkSession, world: World, stage: Stage) -> None:
    with variables(world):
        importlib.import_module(f"spark_jobs.{stage}.stage").run(spark, load_settings(), REQUESTS[stage])


def written_models(world: World) -> dict[str, Any]:
    """Return what MLflow has of models and finished runs."""
    if not (world.out / "mlflow.db").exists():
        return {}
    with variables(world):
        store = ModelStore(load_settings().mlflow)
    registered = store.client.search_model_versions(f"name = '{store.settings.registered_model}'")
    experiments = [one.experiment_id for one in store.client.search_experiments()]
    runs = store.client.search_runs(experiments, "attributes.status = 'FINISHED'")
    return {
        "aliases": {alias: store.find_aliased(alias) for alias in (CHAMPION, CHALLENGER)},
        "registered": sorted(version.tags[VERSION_TAG] for version in registered),
        "finished": sorted(str(run.info.run_name) for run in runs),
    }


def written(world: World) -> dict[str, Any]:
    """Return every table's rows, every file's content and the models."""
    made = [path for path in world.out.glob("*.json") if not path.name.startswith("tidewise-settings-")]  # shipped
    files: dict[str, Any] = {path.name: json.loads(path.read_text()) for path in made}
    files |= {path.name: path.stat().st_size > 0 for path in world.out.glob("*.html")}
    return {**world.rows(), **files, "models": written_models(world)}


# Tables of the controller, of persons, of the laboratory's stages, of events that have ended, of days that are over.
OF_OTHERS = (
    *tables.CONTROLLED,
    *tables.BY_PERSONS,
    *(tables.PROFILES, tables.BACKTESTS, tables.CERTIFICATES, tables.EVENT_RESULTS, tables.JOB_WINDOWS),
)


@dataclass
class Pipeline:
    """An undisturbed run of the stages, each when it is asked for first.

    Attributes:
        world: in which it runs.
        before: the disk before each stage.
        points: the writes of each stage.
        written: what is there after each stage.
    """

    world: World
    copies: Path
    before: dict[Stage, Path] = field(default_factory=dict)
    points: dict[Stage, list[KillPoint]] = field(default_factory=dict)
    written: dict[Stage, dict[str, Any]] = field(default_factory=dict)

    def run_until(self, spark: SparkSession, last: Stage) -> None:
        """Run every stage up to one, once."""
        for stage in list(REQUESTS)[: list(REQUESTS).index(last) + 1]:
            if stage not in self.points:
                self._run(spark, stage)

    def _run(self, spark: SparkSession, stage: Stage) -> None:
        copies = self.copies / stage
        self.before[stage] = copies / "before"
        copy_world(self.world.out, self.before[stage])
        with recording(KillPoints(self.world.out, copies)) as points:
            run_stage(spark, self.world, stage)
        self.points[stage] = points.found
        self.written[stage] = written(self.world)


@pytest.fixture(scope="module")
def pipeline(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pipeline]:
    """Two jobs under the default policy and one under a policy that learns and remembers."""
    root = tmp_path_factory.mktemp("kills")
    write_small_history(root / "raw", HOURS)
    world = World(root / "out", root / "raw")
    world.out.mkdir()
    pipeline = Pipeline(world, root / "copies")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TIDEWISE__PLANNER__POLICIES", '{"simulated/job-0001": "rl_decentralised"}')
        patch.setenv("TIDEWISE__SPARK__SHUFFLE_PARTITIONS", "2")
        yield pipeline


def assert_same(found: dict[str, Any], undisturbed: dict[str, Any], what: str) -> None:
    assert found.keys() == undisturbed.keys(), what
    for name, content in undisturbed.items():
        assert found[name] == content, f"{name} {what}"


def call_of(point: KillPoint) -> str:
    """Return the call of a write; what MLflow logs to an open run counts as one."""
    call = point.name.split()[0]
    return "MlflowClient.log" if call.startswith(("MlflowClient.log_", "MlflowClient.set_tag")) else call


def is_distinct(points: list[KillPoint], index: int) -> bool:
    """Whether the write before is of another kind, or the write is one of rows.

    Of tables that are created one after the other, and of what is logged to one open run, the first is enough before
    every commit: the product does the same whichever is cut short (``test_lake.py``, ``test_train.py``).
    """
    call = call_of(points[index])
    is_alike = call in {"LocalStore.put", "MlflowClient.log"}
    return not is_alike or index == 0 or call_of(points[index - 1]) != call


def assert_made_good(spark: SparkSession, pipeline: Pipeline, stage: Stage, points: list[KillPoint]) -> None:
    for point in points:
        world = World(point.disk, pipeline.world.raw)
        run_stage(spark, world, stage)
        assert_same(written(world), pipeline.written[stage], f"after {stage} was killed at {point.name}")


def spread(points: list[KillPoint]) -> list[KillPoint]:
    """Return a few of the distinct points, the last among them.

    Not the first: before it nothing is written.
    """
    distinct = [point for index, point in enumerate(points) if is_distinct(points, index)]
    most = min(SHORT, len(distinct))
    return [distinct[len(distinct) * (place + 1) // most - 1] for place in range(most)]


@pytest.mark.long
@pytest.mark.parametrize("stage", REQUESTS)
def test_a_stage_killed_at_a_write_is_made_good_by_the_next_run(
    spark: SparkSession, pipeline: Pipeline, stage: Stage
) -> None:
    pipeline.run_until(spark, stage)
    chosen = spread(pipeline.points[stage])
    assert chosen
    assert_made_good(spark, pipeline, stage, chosen)


@pytest.mark.long
@pytest.mark.parametrize("stage", REQUESTS)
def test_so_is_a_stage_killed_at_every_other_write(spark: SparkSession, pipeline: Pipeline, stage: Stage) -> None:
    pipeline.run_until(spark, stage)
    checked = spread(pipeline.points[stage])
    others = [point for point in pipeline.points[stage] if point not in checked]
    assert_made_good(spark, pipeline, stage, others)


@pytest.mark.long
def test_every_table_and_file_is_among_the_writes(spark: SparkSession, pipeline: Pipeline) -> None:
    """What is checked above is not empty: the run has made every table, and each write of a table is a point."""
    pipeline.run_until(spark, Stage.REPORT)
    last = pipeline.written[Stage.REPORT]
    of_stages = [table for table in tables.TABLES if table not in OF_OTHERS]
    assert {table.name for table in of_stages} <= last.keys()
    assert {"plans.json", "report.html"} <= last.keys()
    names = {point.name for points in pipeline.points.values() for point in points}
    for table in of_stages:
        assert any(name.endswith(f" {table.relative_path}") for name in names), table.name
    assert len(pipeline.points[Stage.TRAIN]) > 10  # MLflow's calls are among them


@pytest.mark.parametrize(
    ("stage", "writing"),
    [
        pytest.param(Stage.INGEST, "lake/bronze/metrics/*/**/*.parquet", marks=pytest.mark.long),
        pytest.param(Stage.TRAIN, "mlartifacts/**/*.png", marks=pytest.mark.long),
        pytest.param(Stage.PLAN, "lake/gold/policy_memory/stage=plan/**/*.parquet", marks=pytest.mark.long),
    ],
)
def test_a_real_process_that_is_killed_is_made_good_by_the_next_run(
    spark: SparkSession, pipeline: Pipeline, tmp_path: Path, stage: Stage, writing: str
) -> None:
    """SIGKILL to the submitter, the JVM and Python while files are being written."""
    pipeline.run_until(spark, stage)
    world = World(tmp_path / "out", pipeline.world.raw)
    copy_world(pipeline.before[stage], world.out)
    process = world.start(REQUESTS[stage], tmp_path / "stage.log")
    try:
        assert wait_until(lambda: process.poll() is not None or any(world.out.glob(writing)), 300, every_s=0.02)
        assert process.poll() is None, (tmp_path / "stage.log").read_text()[-4000:]
    finally:
        kill(process)
    run_stage(spark, world, stage)
    assert_same(written(world), pipeline.written[stage], f"after {stage} was killed")


def kill(process: subprocess.Popen[bytes]) -> None:
    os.killpg(process.pid, signal.SIGKILL)
    process.wait(timeout=30)
