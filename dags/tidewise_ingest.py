"""Ingest raw files into bronze and silver tables, full hours at a time: what `tidewise_hour` begins with, alone.

**Feeds** training, forecasts and plans.

**Schedule**: none, unless `schedules.ingest` has one of its own. Every write replaces exactly the run's hours, so a run
may be repeated at any time; missed hours and first trainings follow it as they follow `tidewise_hour`.

**History**: a trigger with `{"start": "2026-11-01T00:00:00Z", "end": "2026-11-08T00:00:00Z"}` ingests the whole range
in one Spark application, which is much faster than a backfill of `tidewise_hour`. It makes no plans.

**Input that is gone**: a run that would replace rows whose raw files are gone, as after `retention.raw_days` or where
the folder is not mounted, is refused and names them; `{"force": true}` beside start and end replaces them by what is
left.
"""

from airflow.sdk import dag

from include.orchestration.after_ingestion import follow_ingestion
from include.orchestration.airflow_names import CronDataIntervalTimetable
from include.orchestration.tasks import INTERVAL_PARAMS, dag_options, schedule_of, stage_step
from include.settings import load_settings
from include.stage_names import Stage


@dag(
    dag_id="tidewise_ingest",
    schedule=schedule_of(load_settings().schedules.ingest, CronDataIntervalTimetable),
    params=INTERVAL_PARAMS,
    **dag_options(__doc__, "ingest"),
)
def tidewise_ingest() -> None:
    """Wire the DAG."""
    follow_ingestion(stage_step(Stage.INGEST))


tidewise_ingest()
