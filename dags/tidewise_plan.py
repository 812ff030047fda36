"""Plan the next day: a forecast of every source, then the steps of every job, then the report.

The three are one task and one Spark application, whose start takes longer than most of their work. Each may be run
again: a task that failed in one of them begins with the forecast and writes the same rows.

**Feeds** `tidewise_control`. A job whose metrics, forecast or models are too old gets one row with status `refused` and
the reason.

**Schedule**: none, unless `schedules.plan` has one of its own: `tidewise_hour` plans after each hour's ingestion. It
plans from `as_of` onward and never for the past: a backfill of this DAG is refused.
"""

from airflow.sdk import dag

from include.orchestration.airflow_names import CronTriggerTimetable
from include.orchestration.tasks import AS_OF_PARAM, dag_options, schedule_of, stage_step
from include.settings import load_settings
from include.stage_names import Stage


@dag(
    dag_id="tidewise_plan",
    schedule=schedule_of(load_settings().schedules.plan, CronTriggerTimetable),
    params={"as_of": AS_OF_PARAM},
    **dag_options(__doc__, "plan"),
)
def tidewise_plan() -> None:
    """Wire the DAG."""
    stage_step(Stage.FORECAST, Stage.PLAN, Stage.REPORT)


tidewise_plan()
