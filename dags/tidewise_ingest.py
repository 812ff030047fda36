"""Ingest raw files into bronze and silver tables, one full hour at a time.

**Feeds** training, forecasts and plans. When it stops, plans are refused as `stale_metrics` after
`planner.max_input_age_h` hours.

**Schedule**: hourly; the run of 19:05 replaces the hour 18:00-19:00. Every write replaces exactly its interval, so a
run may be repeated at any time. Late rows (up to `ingest.late_allowance_h` hours) make a run replace their hours too.

**Missed hours**: hours of the last `ingest.missed_hours_days` days that hold files which were not ingested (after an
outage, or because files came late) are found and ingested after the run's own hour.

**History**: `airflow backfill create --dag-id tidewise_ingest --from-date 2026-11-01 --to-date 2026-11-02` runs hour by
hour. A trigger with `{"start": "2026-11-01T00:00:00Z", "end": "2026-11-08T00:00:00Z"}` ingests the whole range in one
Spark application, which is much faster. Neither makes plans.

**Input that is gone**: a run that would replace rows whose raw files are gone, as after `retention.raw_days` or where
the folder is not mounted, is refused and names them; `{"force": true}` beside start and end replaces them by what is
left.

**New jobs**: after a scheduled run, jobs that no training has seen yet have one triggered, and a plan after it
(`training.first_windows`, `training.retrain_after_h`).
"""

import logging

from airflow.sdk import chain, dag, task

from include.orchestration.airflow_names import CronDataIntervalTimetable
from include.orchestration.missed_hours import missed_hours_step
from include.orchestration.tasks import INTERVAL_PARAMS, dag_options, stage_step, stage_steps, trigger_step
from include.settings import load_settings
from include.spark.submission import anchor_paths
from include.stage_names import Stage
from include.utc import parse_utc

END = "{{ end_of(params, data_interval_start | default(none), data_interval_end | default(none)) }}"


@task.short_circuit(task_id="training_wanted")
def training_is_wanted(as_of: str, run_type: str) -> bool:
    """Whether jobs wait for their first model; not after a backfill or by hand, when more history may follow."""
    from include.training_need import find_training_need

    need = find_training_need(anchor_paths(load_settings()), parse_utc(as_of)) if run_type == "scheduled" else None
    logging.getLogger(__name__).info("tidewise: a training is %s", f"wanted: {need}" if need else "not wanted")
    return need is not None


@dag(
    dag_id="tidewise_ingest",
    schedule=CronDataIntervalTimetable(load_settings().schedules.ingest, timezone="UTC"),
    params=INTERVAL_PARAMS,
    **dag_options(__doc__, "ingest"),
)
def tidewise_ingest() -> None:
    """Wire the DAG."""
    ingest, missed = stage_step(Stage.INGEST), missed_hours_step()
    train = trigger_step("first_training", "tidewise_train", as_of=END, then_plan=True)
    chain(ingest, training_is_wanted(END, "{{ dag_run.run_type }}"), train)
    chain(ingest, missed)
    stage_steps(Stage.INGEST, missed, task_id="ingest_missed")


tidewise_ingest()
