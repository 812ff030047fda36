"""Fill past hours from Prometheus: samples of the server that scraped a cluster -> raw files -> bronze and silver.

**Feeds** training with history from before collecting began, and hours in which collecting was down. Hours that hold
raw files are left alone, so a run that was ended is continued by the next and a second one changes nothing; so are
hours that were ingested from raw files which are gone since (`force` fills them as well).

**Schedule**: none. Trigger it with `{"start": "2026-10-01T00:00:00Z", "end": "2026-11-01T00:00:00Z"}`, and `cluster` to
limit it to one; the same as `make backfill`, and ingestion of the range afterwards.
"""

from datetime import timedelta
from typing import Any

from airflow.sdk import Param, dag, task

from include.orchestration.assets import RAW
from include.orchestration.run_window import requested_interval
from include.orchestration.tasks import BACKFILL_POOL, INTERVAL_PARAMS, dag_options, stage_step
from include.settings import load_settings
from include.spark.submission import anchor_paths
from include.stages import Stage

CLUSTER = Param(None, description="default: every cluster that has a Prometheus", type=["null", "string"])


@task(task_id="backfill", pool=BACKFILL_POOL, outlets=[RAW], retries=3, execution_timeout=timedelta(hours=12))
def backfill_raw(params: dict[str, Any] | None = None) -> dict[str, int]:
    """Write the raw files of the hours that have none; returns how many hours had which outcome."""
    from include.metric_sources.prometheus.backfill import backfill_clusters

    given = params or {}
    hours = requested_interval(given, None, None)
    is_forced = bool(given.get("force"))
    return backfill_clusters(anchor_paths(load_settings()), hours, given.get("cluster"), is_forced=is_forced)


@dag(
    dag_id="tidewise_backfill",
    schedule=None,
    params={**INTERVAL_PARAMS, "cluster": CLUSTER},
    **dag_options(__doc__, "backfill"),
)
def tidewise_backfill() -> None:
    """Wire the DAG."""
    backfill_raw() >> stage_step(Stage.INGEST)


tidewise_backfill()
