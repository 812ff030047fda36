"""What every DAG and task must state: schedule, owner, tags, documentation, retries, timeouts, pools, assets."""

from __future__ import annotations

import itertools
from datetime import timedelta
from pathlib import Path

import pytest
from airflow.providers.standard.operators.trigger_dagrun import TriggerDagRunOperator
from airflow.sdk import Asset, CronDataIntervalTimetable, CronTriggerTimetable

from include import tables
from include.orchestration.assets import CONTROLLED, application_inlets, application_outlets
from include.orchestration.pools import CONTROL_POOL, POOLS, SPARK_POOL
from include.orchestration.stage_operator import StageOperator, report_failure
from include.orchestration.task_states import remember_failure, remember_success
from include.orchestration.tasks import FAILURE_NOTIFIER, OWNER
from include.orchestration.watch_step import report_watch_failure
from include.settings import load_settings
from include.stage_catalogue import BUILT_IN, stages
from include.stage_names import Stage

REPOSITORY = Path(__file__).resolve().parents[2]
SCHEDULES = {
    "tidewise_control": (CronDataIntervalTimetable, "control"),
    "tidewise_hour": (CronDataIntervalTimetable, "hour"),
    "tidewise_train": (CronTriggerTimetable, "train"),
    "tidewise_backtest": (CronTriggerTimetable, "backtest"),
    "tidewise_maintenance": (CronTriggerTimetable, "maintenance"),
    "tidewise_watch": (CronTriggerTimetable, "watch"),
}
TASKS = {
    "tidewise_control": ["control"],
    "tidewise_import": ["import_hours", "ingest"],
    "tidewise_plan": ["forecast_plan_report"],
    "tidewise_profile": ["profiling"],
    "tidewise_backtest": ["backtest", "report"],
    "tidewise_maintenance": ["keep_up"],
    "tidewise_approve": ["find", "ask"],
    "tidewise_watch": ["watch"],
}
WITHOUT_SPARK = {
    "policies_learn",
    "models_compared",
    "plan_wanted",
    "training_wanted",
    "first_training",
    "first_plan",
    "find_missed_hours",
    "find",
    "ask",
    "watch",
}  # they end in a second and need no pool

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
    # Nobody is asked for a yes unless some job is in mode approve.
    assert by_hand == {"tidewise_profile", "tidewise_import", "tidewise_approve", "tidewise_ingest", "tidewise_plan"}
    assert all(type(dags[dag_id].timetable).__name__ == "NullTimetable" for dag_id in by_hand)


@pytest.mark.parametrize("dag_id", TASKS)
def test_tasks_run_in_this_order(dags, dag_id):
    dag = dags[dag_id]
    names = TASKS[dag_id]
    assert {task.task_id for task in dag.tasks} == set(names)
    for before, after in itertools.pairwise(names):
        assert after in dag.get_task(before).downstream_task_ids


def test_after_training_policies_learn_and_a_plan_is_made_when_asked_for(dags):
    dag = dags["tidewise_train"]
    after = {task.task_id: task.downstream_task_ids for task in dag.tasks}
    assert after == {
        "train": {"policies_learn", "models_compared", "plan_wanted"},
        "policies_learn": {"learn"},
        "learn": set(),
        "models_compared": {"plan_costs"},
        "plan_costs": set(),
        "plan_wanted": {"first_plan"},
        "first_plan": set(),
    }
    assert dag.get_task("first_plan").trigger_dag_id == "tidewise_plan"
    assert dag.params["then_plan"] is False


@pytest.mark.parametrize(
    ("variables", "expressions"),
    [
        ({}, "5 * * * * None None"),
        ({"HOUR": "", "INGEST": "7 * * * *", "PLAN": "20 * * * *"}, "None 7 * * * * 20 * * * *"),
    ],
)
def test_stages_have_a_schedule_of_their_own_where_one_is_set(run_python, variables, expressions):
    code = """
from dags.tidewise_hour import tidewise_hour
from dags.tidewise_ingest import tidewise_ingest
from dags.tidewise_plan import tidewise_plan
print(*(getattr(dag().timetable, "expression", None) for dag in (tidewise_hour, tidewise_ingest, tidewise_plan)))
"""
    given = {f"TIDEWISE__SCHEDULES__{name}": cron for name, cron in variables.items()}
    assert run_python(code, **given).splitlines()[-1] == expressions


@pytest.mark.parametrize(("dag_id", "task_id"), [("tidewise_hour", "hour"), ("tidewise_ingest", "ingest")])
def test_after_an_hour_new_jobs_are_trained_and_missed_hours_ingested(dags, dag_id, task_id):
    after = {task.task_id: task.downstream_task_ids for task in dags[dag_id].tasks}
    assert after == {
        task_id: {"training_wanted", "find_missed_hours"},
        "training_wanted": {"first_training"},
        "first_training": set(),
        "find_missed_hours": {"ingest_missed"},
        "ingest_missed": set(),
    }


@pytest.mark.covers("apply_review 24")
def test_a_first_training_is_triggered_with_a_plan_after_it(dags):
    trigger = dags["tidewise_hour"].get_task("first_training")
    assert trigger.trigger_dag_id == "tidewise_train"
    assert trigger.conf["then_plan"] is True
    assert trigger.conf["as_of"] in trigger.trigger_run_id  # one for each hour, whoever runs it again
    assert trigger.skip_when_already_exists
    assert not trigger.wait_for_completion


@pytest.mark.covers("apply_review 24")
def test_only_scheduled_ingests_ask_whether_a_training_is_wanted(run_python):
    code = """
from include.orchestration.after_ingestion import training_is_wanted
import include.training_need
include.training_need.find_training_need = lambda settings, as_of: f"new jobs as of {as_of}"
for kind in ("scheduled", "manual", "backfill"):
    print(kind, training_is_wanted.function("2026-11-20T19:00:00Z", kind))
"""
    lines = run_python(code, PYTHONPATH=str(REPOSITORY)).splitlines()
    answers = [line for line in lines if line.split()[0] in {"scheduled", "manual", "backfill"}]
    assert answers == ["scheduled True", "manual False", "backfill False"]


def test_every_dag_states_its_policy(dags):
    for dag in dags.values():
        assert dag.doc_md
        assert "**Schedule**" in dag.doc_md
        assert 20 < len(dag.description) < 200
        assert "\n" not in dag.description
        assert "tidewise" in dag.tags
        assert len(dag.tags) >= 2
        assert dag.catchup is False
        # A run waits as long as a person does; the next one shows other steps meanwhile.
        assert dag.max_active_runs == (100 if dag.dag_id == "tidewise_approve" else 1)


def test_every_task_states_its_policy(dags):
    for task in all_tasks(dags):
        assert task.owner == OWNER
        assert task.has_on_failure_callback
        assert {report_failure, report_watch_failure} & set(task.on_failure_callback)
        if task.task_id != "watch":  # what it names are faults already
            assert {remember_failure, FAILURE_NOTIFIER} <= set(task.on_failure_callback)
            assert remember_success in task.on_success_callback
        assert task.pool in POOLS or task.task_id in WITHOUT_SPARK


def test_spark_stages_are_pooled_retried_and_timed(dags):
    tasks = [task for task in all_tasks(dags) if isinstance(task, StageOperator)]
    by_command = {"advise"}  # `tidewise advise`: of what is not installed yet
    assert {stage for task in tasks for stage in task.stages} == set(stages()) - by_command
    for task in tasks:
        assert task.pool == SPARK_POOL
        assert task.retries >= 1
        assert task.retry_delay <= timedelta(minutes=5)
        assert timedelta(minutes=5) <= task.execution_timeout <= timedelta(hours=3)
        assert Path(task.application) == REPOSITORY / "spark_jobs" / "launch.py"
        assert task._conn_id == load_settings().spark.connection_id


def test_cheap_tasks_are_tried_as_often_as_an_ingestion(dags):
    triggers = [task for task in all_tasks(dags) if isinstance(task, TriggerDagRunOperator)]
    assert {task.retries for task in triggers} == {dags["tidewise_ingest"].get_task("ingest").retries} == {3}


def test_missed_hours_are_ingested_one_after_the_other_like_any_other(dags):
    own, missed = (dags["tidewise_ingest"].get_task(name) for name in ("ingest", "ingest_missed"))
    assert missed.is_mapped
    assert issubclass(missed.operator_class, StageOperator)
    assert missed.max_active_tis_per_dagrun == 1
    for name in ("pool", "retries", "execution_timeout", "priority_weight"):
        assert getattr(missed, name) == getattr(own, name), name


def test_plans_go_before_training(dags):
    weights = {task.task_id: task.priority_weight for task in all_tasks(dags)}
    assert weights["forecast_plan_report"] > weights["train"]


@pytest.mark.covers("apply_review 8")
def test_the_controller_waits_for_no_spark_stage(dags):
    task = dags["tidewise_control"].get_task("control")
    assert task.pool == CONTROL_POOL != SPARK_POOL
    assert not task.upstream_task_ids


def test_every_table_is_written_by_exactly_one_stage():
    written = [asset for stage in stages() for asset in application_outlets([stage])]
    writers = [asset.name for asset in (*written, *CONTROLLED)]
    # What policies remember comes from three stages, each with a partition of its own.
    assert {name for name in writers if writers.count(name) > 1} == {tables.POLICY_MEMORY.name}
    assert "stage" in tables.POLICY_MEMORY.partition_by
    assert {table.name for table in tables.TABLES} <= set(writers)


def test_a_stage_reads_only_what_an_earlier_one_wrote():
    others = set(stages()) - set(BUILT_IN)  # of the laboratory: the next plan or report reads what they write
    written = {"raw.payloads", *(asset.name for asset in (*CONTROLLED, *application_outlets(sorted(others))))}
    for stage in (*BUILT_IN, *sorted(others)):
        assert {asset.name for asset in application_inlets([stage])} <= written, stage
        written |= {asset.name for asset in application_outlets([stage])}


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


@pytest.mark.parametrize(
    ("counts", "jobs", "answer"),
    [
        ('{"champion_before": null}', "50", "False"),
        ('{"champion_before": "m0"}', "50", "True"),
        ('{"champion_before": "m0"}', "0", "False"),
        ("", "50", "True"),  # a driver elsewhere has kept its counts: the stage itself knows
    ],
)
def test_plans_are_compared_only_with_a_champion_before(run_python, tmp_path, counts, jobs, answer):
    (tmp_path / "stages").mkdir()
    (tmp_path / "stages" / "train.json").write_text(counts)
    code = """
import sys
from dags.tidewise_train import champion_was_there
print(champion_was_there.function(), "pyspark" in sys.modules, "models" in sys.modules)
"""
    settings = {"TIDEWISE__PATHS__OUT": str(tmp_path), "TIDEWISE__TRAINING__PLAN_COST_JOBS": jobs}
    assert run_python(code, **settings).splitlines()[-1] == f"{answer} False False"


def test_assets_are_attached(dags):
    learn = dags["tidewise_train"].get_task("learn")
    memory = Asset(name="gold.policy_memory", uri="x-tidewise://gold/policy_memory", group="tidewise")
    assert memory in learn.outlets
    plan = dags["tidewise_plan"].get_task("forecast_plan_report")
    assert {"gold.forecasts", "gold.plans", "report.page"} <= {asset.name for asset in plan.outlets}
    assert "silver.observations" in {asset.name for asset in plan.inlets}
    assert "gold.forecasts" not in {asset.name for asset in plan.inlets}  # it is written by the same task


def test_the_hour_is_one_task_and_one_application(dags):
    task = dags["tidewise_hour"].get_task("hour")
    assert task.stages == (Stage.INGEST, Stage.FORECAST, Stage.PLAN, Stage.REPORT)
    assert task.retries == min(BUILT_IN[stage].retries for stage in task.stages)
    assert task.priority_weight == max(BUILT_IN[stage].priority for stage in task.stages)
    assert task.execution_timeout == timedelta(seconds=sum(BUILT_IN[stage].timeout_s for stage in task.stages))
    assert {"silver.observations", "gold.plans"} <= {asset.name for asset in task.outlets}
    assert {"raw.payloads", "mlflow.fleet_bundle"} <= {asset.name for asset in task.inlets}
    assert "silver.observations" not in {asset.name for asset in task.inlets}


def test_stages_of_one_application_share_a_task(dags):
    task = dags["tidewise_plan"].get_task("forecast_plan_report")
    assert task.stages == (Stage.FORECAST, Stage.PLAN, Stage.REPORT)
    assert task.application_args[:3] == ["forecast", "plan", "report"]
    assert task.retries == 2
    assert task.execution_timeout == timedelta(minutes=75)
