"""The hour: ingest its raw files, forecast every source, plan every job, write the report.

The four stages are one task and one Spark application, whose start takes longer than most of their work. Each may be
run again: a task that failed in one of them begins with the ingestion and writes the same rows.

**Feeds** `tidewise_control` and training. When it stops, plans are refused as `stale_metrics` after
`planner.max_input_age_h` hours.

**Schedule**: hourly; the run of 19:05 replaces the hour 18:00-19:00 and plans as of 19:00. Late rows (up to
`ingest.late_allowance_h` hours) make it replace their hours too. `tidewise_ingest` and `tidewise_plan` run the same
stages by hand, and by schedules of their own where `schedules.hour` is empty.

**Missed hours**: hours of the last `ingest.missed_hours_days` days that hold files which were not ingested (after an
outage, or because files came late) are found and ingested after the run's own hour.

**History**: `airflow backfill create --dag-id tidewise_hour --from-date 2026-11-01 --to-date 2026-11-02` ingests hour
by hour. No plan is made for the past.

**New jobs**: after a scheduled run, jobs that no training has seen yet have one triggered, and a plan after it
(`training.first_windows`, `training.retrain_after_h`).
"""

from airflow.sdk import dag

from include.orchestration.after_ingestion import follow_ingestion
from include.orchestration.airflow_names import CronDataIntervalTimetable
from include.orchestration.tasks import INTERVAL_PARAMS, dag_options, schedule_of, stage_step
from include.settings import load_settings
from include.stage_names import Stage


@dag(
    dag_id="tidewise_hour",
    schedule=schedule_of(load_settings().schedules.hour, CronDataIntervalTimetable),
    params=INTERVAL_PARAMS,
    **dag_options(__doc__, "hour"),
)
def tidewise_hour() -> None:
    """Wire the DAG."""
    follow_ingestion(stage_step(Stage.INGEST, Stage.FORECAST, Stage.PLAN, Stage.REPORT, task_id="hour"))


tidewise_hour()
