"""The ingestion stage: raw files -> bronze, quarantine and quality, then silver.

Every table is replaced over exact hours, once it is sure that what its rows were made from is still there; so a run
can be repeated, or killed anywhere and run again, with the same tables.  Lines are parsed once and kept; each table is
written from them.
"""

from __future__ import annotations

import logging

from pyspark.sql import SparkSession

from include.settings import Settings
from include.stage_request import StageRequest
from include.utc import format_utc
from spark_jobs.ingest.ingest_interval import IngestResult, ingest_interval
from spark_jobs.lake import Lake, planned_once
from spark_jobs.session import threads

log = logging.getLogger(__name__)
_COUNTED = (
    "files",
    "rows",
    "metric_values",
    "late",
    "kept",
    "duplicate",
    "not_measured",
    "quarantined",
    "quarantined_values",
    "quarantined_files",
    "jobs",
    "observations",
    "missing_windows",
)


def run(spark: SparkSession, settings: Settings, request: StageRequest) -> dict[str, object]:
    """Ingest one interval; returns its counts.

    Raises:
        LostInputError: raw files from which rows of these hours come are gone, and the run is not forced.
    """
    lake = Lake(spark, settings.paths.lake)
    with planned_once(spark), threads(spark) as pool:
        ingested = ingest_interval(lake, settings, request.interval, pool, is_forced=request.is_forced)
    for refusal in ingested.refusals:
        log.warning("quarantined: %s", refusal)
    return _summarise(ingested)


def _summarise(ingested: IngestResult) -> dict[str, object]:
    totals = {name: sum(int(result.get(name) or 0) for result in ingested.counts.values()) for name in _COUNTED}
    lost = totals["rows"] - totals["kept"] - totals["duplicate"] - totals["quarantined"]
    if lost:
        log.error("%d lines are in no table: please report this with the raw files", lost)
    shown = {"refusals": ingested.refusals} if ingested.refusals else {}
    return {**totals, "start": format_utc(ingested.hours.start), "end": format_utc(ingested.hours.end), **shown}
