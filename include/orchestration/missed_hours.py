"""The hours that a run of the ingest DAG ingests besides its own."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from airflow.sdk import get_current_context, task

from include.missed_hours import find_missed_hours
from include.orchestration.run_window import requested_interval
from include.settings import load_settings
from include.spark.submission import anchor_paths
from include.stage_names import Stage
from include.stage_request import StageRequest

log = logging.getLogger(__name__)


@task(task_id="find_missed_hours")
def missed_hours_step() -> list[list[str]]:
    """Return the arguments of an ingestion for every interval that was missed; none for a run that names its own."""
    context: Mapping[str, Any] = get_current_context()
    run = context["dag_run"]
    return arguments_of_missed_hours(
        context["params"], context.get("data_interval_start"), context.get("data_interval_end"), str(run.run_type)
    )


def arguments_of_missed_hours(
    params: Mapping[str, str | None], interval_start: datetime | None, interval_end: datetime | None, run_type: str
) -> list[list[str]]:
    """Return what :func:`include.stage_request.parse_requests` reads, for every interval that was missed.

    A run that was asked for certain hours, or a backfill, ingests those alone.
    """
    if params.get("start") or params.get("end") or run_type == "backfill":
        return []
    own = requested_interval(params, interval_start, interval_end)
    missed = find_missed_hours(anchor_paths(load_settings()), own.start)
    for interval in missed:
        log.warning("missed: %s to %s is ingested now", interval.start, interval.end)
    return [StageRequest(Stage.INGEST, interval.end, interval.start, interval.end).to_argv() for interval in missed]
