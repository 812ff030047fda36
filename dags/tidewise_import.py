"""Fill past hours from Prometheus: samples of the server that scraped a cluster -> raw files -> bronze and silver.

**Feeds** training with history from before collecting began, and hours in which collecting was down. Hours that hold
raw files are left alone, so a run that was ended is continued by the next and a second one changes nothing; so are
hours that were ingested from raw files which are gone since (`force` fills them as well).

**Schedule**: none. Trigger it with `{"start": "2026-10-01T00:00:00Z", "end": "2026-11-01T00:00:00Z"}`, and `cluster` to
limit it to one; the same as `tidewise import`, and ingestion of the range afterwards.
"""

from datetime import timedelta
from typing import Any

from airflow.sdk import Param, dag, task

from include.orchestration.assets import RAW
from include.orchestration.parameters import ParametersError, refuse_at_once
from include.orchestration.pools import IMPORT_POOL
from include.orchestration.run_window import requested_interval
from include.orchestration.tasks import PAST_HOURS_PARAMS, dag_options, stage_step
from include.settings import load_settings
from include.spark.submission import anchor_paths
from include.stage_names import Stage

CLUSTER = Param(None, description="default: every cluster that has a Prometheus", type=["null", "string"])


@task(task_id="import_hours", pool=IMPORT_POOL, outlets=[RAW], retries=3, execution_timeout=timedelta(hours=12))
def import_raw(params: dict[str, Any] | None = None) -> dict[str, int]:
    """Write the raw files of the hours that have none; returns how many hours had which outcome."""
    from include.metric_sources.prometheus.import_hours import NoServerError, import_clusters

    given, settings = params or {}, anchor_paths(load_settings())
    hours = refuse_at_once(requested_interval)(given, None, None)
    try:
        return import_clusters(settings, hours, given.get("cluster"), is_forced=bool(given.get("force")))
    except NoServerError as error:
        raise ParametersError(str(error)) from None


@dag(
    dag_id="tidewise_import",
    schedule=None,
    params={**PAST_HOURS_PARAMS, "cluster": CLUSTER},
    **dag_options(__doc__, "import"),
)
def tidewise_import() -> None:
    """Wire the DAG."""
    import_raw() >> stage_step(Stage.INGEST)


tidewise_import()
