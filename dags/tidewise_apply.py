"""Apply the steps that are due: between plans the reactive controller decides which of them go out.

`watch` evaluates every job with the metrics of the last minutes and writes its decision to `gold.looks`: the plan's due
step goes out, it waits, or the controller adds a step of its own (for example when a backlog grows). Without fresh
metrics, or with `apply.watch = false`, the plan's due steps go out unchanged.

`apply` **changes Flink** only where the settings say `limits.mode = "auto"` (or a cluster's own mode). Otherwise
it records what it would have done. Every step is claimed in `gold.applied_steps` before it is sent, so no step is sent
twice.

**Schedule**: every five minutes. A run without fresh metrics and without due steps ends after its first task and starts
no Spark. The outcome of a step is in `gold.applied_steps` and in the next report. To stop all changes at once, pause
this DAG.
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
    """Choose the first stage from the times of the raw files and the times of planned steps; starts no Spark."""
    settings, timestamp = anchored(load_settings()), parse_utc(as_of)
    if watching.something_to_watch(settings, timestamp):
        return str(Stage.WATCH)
    return str(Stage.APPLY) if agenda.due(settings, timestamp) else None


@task.short_circuit(task_id="released", trigger_rule=TriggerRule.NONE_SKIPPED)
def step_is_released(as_of: str) -> bool:
    """Whether a step goes out now; when the evaluation failed, the plan's due steps still do."""
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
