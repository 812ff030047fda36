"""What follows an hour's ingestion: a first training where jobs wait for one, and hours that were missed."""

from __future__ import annotations

import logging

from airflow.sdk import chain, task

from include.orchestration.missed_hours import missed_hours_step
from include.orchestration.stage_operator import StageOperator
from include.orchestration.tasks import END, stage_steps, trigger_step
from include.settings import load_settings
from include.spark.submission import anchor_paths
from include.stage_names import Stage
from include.utc import parse_utc


@task.short_circuit(task_id="training_wanted")
def training_is_wanted(as_of: str, run_type: str) -> bool:
    """Whether jobs wait for their first model; not after a backfill or by hand, when more history may follow."""
    from include.training_need import find_training_need

    need = find_training_need(anchor_paths(load_settings()), parse_utc(as_of)) if run_type == "scheduled" else None
    logging.getLogger(__name__).info("tidewise: a training is %s", f"wanted: {need}" if need else "not wanted")
    return need is not None


def follow_ingestion(step: StageOperator) -> None:
    """Wire what follows the task that ingests a run's own hour."""
    missed = missed_hours_step()
    train = trigger_step("first_training", "tidewise_train", as_of=END, then_plan=True)
    chain(step, training_is_wanted(END, "{{ dag_run.run_type }}"), train)
    chain(step, missed)
    stage_steps(Stage.INGEST, missed, task_id="ingest_missed")
