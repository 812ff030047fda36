"""What every DAG and task must state: schedule, owner, tags, documentation, retries, timeouts, pools, assets."""

from __future__ import annotations

import itertools
from datetime import timedelta
from pathlib import Path

import pytest
from airflow.sdk import Asset, CronDataIntervalTimetable, CronTriggerTimetable

from include import tables
from include.orchestration.assets import inlets, outlets
from include.orchestration.stage_operator import StageOperator, report_failure
from include.orchestration.tasks import OWNER, POOLS, SPARK_POOL
from include.settings import load_settings
from include.stages import Stage

REPOSITORY = Path(__file__).resolve().parents[2]
SCHEDULES = {
    "tidewise_collect": (CronDataIntervalTimetable, "collect"),
    "tidewise_ingest": (CronDataIntervalTimetable, "ingest"),
    "tidewise_train": (CronTriggerTimetable, "train"),
    "tidewise_plan": (CronTriggerTimetable, "plan"),
    "tidewise_apply": (CronTriggerTimetable, "apply"),
    "tidewise_backtest": (CronTriggerTimetable, "backtest"),
}
TASKS = {
    "tidewise_collect": ["collect"],
    "tidewise_backfill": ["backfill", "ingest"],
    "tidewise_ingest": ["ingest"],
    "tidewise_train": ["train", "policies_learn", "learn"],
    "tidewise_plan": ["forecast_plan_report"],
    "tidewise_apply": ["due", "watch", "released", "apply"],
    "tidewise_profile": ["profiling"],
    "tidewise_backtest": ["backtest", "report"],
}
WITHOUT_SPARK = {"due", "released", "policies_learn"}  # they end in a second and need no pool

pytestmark = pytest.mark.airflow


def all_tasks(dags):
    return [task for dag in dags.values() for task in dag.tasks]


@pytest.mark.parametrize("dag_id", SCHEDULES)
def test_schedule(dags, dag_id):
    kind, key = SCHEDULES[dag_id]
    timetable = dags[dag_id].timetable
    assert type(timetable).__name__ == kind.__name__
    assert timetable.expression == getattr(load_settings().schedules, key)
    assert str(timetable.timezone) == "UTC"


def test_every_other_dag_is_triggered_by_hand(dags):
    by_hand = set(dags) - set(SCHEDULES)
    assert by_hand == {"tidewise_profile", "tidewise_backfill"}
    assert all(type(dags[dag_id].timetable).__name__ == "NullTimetable" for dag_id in by_hand)


@pytest.mark.parametrize("dag_id", TASKS)
def test_tasks_run_in_this_order(dags, dag_id):
    dag = dags[dag_id]
    names = TASKS[dag_id]
    assert {task.task_id for task in dag.tasks} == set(names)
    for before, after in itertools.pairwise(names):
        assert after in dag.get_task(before).downstream_task_ids


def test_every_dag_states_its_policy(dags):
    for dag in dags.values():
        assert dag.doc_md
        assert "**Schedule**" in dag.doc_md
        assert "tidewise" in dag.tags
        assert len(dag.tags) >= 2
        assert dag.catchup is False
        assert dag.max_active_runs == 1


def test_every_task_states_its_policy(dags):
    for task in all_tasks(dags):
        assert task.owner == OWNER
        assert task.has_on_failure_callback
        assert report_failure in task.on_failure_callback
        assert task.pool in POOLS or task.task_id in WITHOUT_SPARK


def test_spark_stages_are_pooled_retried_and_timed(dags):
    stages = [task for task in all_tasks(dags) if isinstance(task, StageOperator)]
    by_command = {Stage.ADVISE}  # `make advise`: of what is not installed yet
    assert {stage for task in stages for stage in task.stages} == set(Stage) - by_command
    for task in stages:
        assert task.pool == SPARK_POOL
        assert task.retries >= 1
        assert task.retry_delay <= timedelta(minutes=5)
        assert timedelta(minutes=5) <= task.execution_timeout <= timedelta(hours=3)
        assert Path(task.application) == REPOSITORY / "spark_jobs" / "launch.py"
        assert task._conn_id == load_settings().spark.connection_id


def test_due_steps_go_before_everything_else(dags):
    weights = {task.task_id: task.priority_weight for task in all_tasks(dags)}
    assert weights["apply"] >= weights["watch"] > weights["forecast_plan_report"] > weights["train"]


def test_every_table_is_written_by_exactly_one_stage():
    writers = [asset.name for stage in Stage for asset in outlets(stage)]
    # What policies remember comes from three stages, each with a partition of its own.
    assert {name for name in writers if writers.count(name) > 1} == {tables.POLICY_MEMORY.name}
    assert "stage" in tables.POLICY_MEMORY.partition_by
    assert {table.name for table in tables.TABLES} <= set(writers)


def test_a_stage_reads_only_what_an_earlier_one_wrote():
    written = {"raw.payloads"}
    for stage in Stage:
        assert {asset.name for asset in inlets(stage)} <= written, stage
        written |= {asset.name for asset in outlets(stage)}


@pytest.mark.parametrize(
    ("variables", "answer"),
    [
        ({}, "False"),
        ({"TIDEWISE__PLANNER__POLICY": "rl_plus"}, "True"),
        ({"TIDEWISE__PLANNER__POLICIES": '{"c/orders": "mdp"}'}, "True"),
        ({"TIDEWISE__PLANNER__POLICIES": '{"c/orders": "phoebe"}'}, "False"),
    ],
)
def test_learning_starts_only_when_a_policy_learns(run_python, variables, answer):
    code = """
import sys
from dags.tidewise_train import some_policy_learns
print(some_policy_learns.function(), "pyspark" in sys.modules, "models" in sys.modules)
"""
    assert run_python(code, **variables).splitlines()[-1] == f"{answer} False False"


def test_spark_starts_only_for_fresh_files_or_due_steps(run_python, tmp_path):
    code = """
import os, sys
from datetime import UTC, datetime
from pathlib import Path
from dags.tidewise_apply import first_stage
from include.control.agenda import write_agenda
from include.flink.raw_format import hour_directory
from include.settings import load_settings
AS_OF, settings = datetime(2026, 11, 20, 18, 5, tzinfo=UTC), load_settings()
told = lambda: first_stage.function("2026-11-20T18:05:00Z")
write_agenda(settings, AS_OF, [])
nothing = told()
write_agenda(settings, AS_OF, [AS_OF])
due = told()
file = hour_directory(Path(settings.paths.raw), "c", AS_OF) / "poll.jsonl.gz"
file.parent.mkdir(parents=True)
file.touch()
os.utime(file, (AS_OF.timestamp() - 60,) * 2)
print(nothing, due, told(), "pyspark" in sys.modules)
"""
    paths = {"TIDEWISE__PATHS__RAW": str(tmp_path / "raw"), "TIDEWISE__PATHS__OUT": str(tmp_path / "out")}
    assert run_python(code, **paths).splitlines()[-1] == "None apply watch False"


def test_assets_are_attached(dags):
    learn = dags["tidewise_train"].get_task("learn")
    assert Asset(name="gold.policy_memory", group="tidewise") in learn.outlets
    plan = dags["tidewise_plan"].get_task("forecast_plan_report")
    assert {"gold.forecasts", "gold.plans", "report.page"} <= {asset.name for asset in plan.outlets}
    assert Asset(name="silver.observations", group="tidewise") in plan.inlets
    assert Asset(name="gold.forecasts", group="tidewise") not in plan.inlets  # it is written by the same task


def test_stages_of_one_application_share_a_task(dags):
    task = dags["tidewise_plan"].get_task("forecast_plan_report")
    assert task.stages == (Stage.FORECAST, Stage.PLAN, Stage.REPORT)
    assert task.application_args[:3] == ["forecast", "plan", "report"]
    assert task.retries == 2
    assert task.execution_timeout == timedelta(minutes=75)
