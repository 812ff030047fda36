"""Look at the jobs and apply due steps: Spark starts only when there are fresh metrics to look at, or a step is due.

`watch` is the safety net's look at what was collected in the last minutes: it says what goes out now, the plan's due
step, a step of its own or none, in `gold.looks`. Without fresh metrics (or with `apply.watch` off) due steps go out as
planned.

`apply` **changes Flink** only where the settings say `apply.mode = "auto"` (or a cluster's own `apply_mode`); otherwise
it records what it would have done. Each step is claimed in `gold.applied_steps` before it is sent: none is sent twice.

**Schedule**: every five minutes. A tick without fresh metrics and due steps ends after the first task. What became of a
step stands in `gold.applied_steps`, and in the report of the next plan. To stop all changes at once, pause this DAG.
"""

from airflow.sdk import CronTriggerTimetable, TriggerRule, chain, dag, task

from include.control import agenda, watching
from include.orchestration.tasks import AS_OF, AS_OF_PARAM, dag_options, stage_step
from include.settings import load_settings
from include.spark.submission import anchored
from include.stages import Stage
from include.utc import parse_utc


@task.branch(task_id="due")
def first_stage(as_of: str) -> str | None:
    """Look at the times of the raw files and at the agenda that the plan stage left, which takes no Spark."""
    settings, timestamp = anchored(load_settings()), parse_utc(as_of)
    if watching.something_to_watch(settings, timestamp):
        return str(Stage.WATCH)
    return str(Stage.APPLY) if agenda.due(settings, timestamp) else None


@task.short_circuit(task_id="released", trigger_rule=TriggerRule.NONE_SKIPPED)
def step_is_released(as_of: str) -> bool:
    """Look whether the look released a step; a look that failed holds back no step that is due."""
    settings, timestamp = anchored(load_settings()), parse_utc(as_of)
    return watching.released(settings, timestamp) or agenda.due(settings, timestamp)


@dag(
    dag_id="tidewise_apply",
    schedule=CronTriggerTimetable(load_settings().schedules.apply, timezone="UTC"),
    doc_md=__doc__,
    params={"as_of": AS_OF_PARAM},
    **dag_options("apply"),
)
def tidewise_apply() -> None:
    """Wire the DAG."""
    due = first_stage(AS_OF)
    apply = stage_step(Stage.APPLY, trigger_rule=TriggerRule.NONE_FAILED_MIN_ONE_SUCCESS)
    chain(due, stage_step(Stage.WATCH), step_is_released(AS_OF), apply)
    chain(due, apply)


tidewise_apply()
