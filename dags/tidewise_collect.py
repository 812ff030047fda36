"""Collect metrics of running clusters: replies of Flink's REST API -> raw files.

**Feeds** `tidewise_ingest`. Replies that were not collected cannot be fetched later, so an outage shows as missing
windows in `ops.quality`. Files that another system kept can be imported: `python -m cli.collect --files FOLDER`.

**Schedule**: every five minutes. One run polls each cluster every `poll_every_s` seconds until the next run is due,
because starting a task for every poll would take longer than the poll. Without a cluster that has a `rest_url` the run
is skipped.
"""

from datetime import datetime, timedelta

from airflow.sdk import CronDataIntervalTimetable, dag, task
from airflow.sdk.exceptions import AirflowSkipException

from include.orchestration.assets import RAW
from include.orchestration.tasks import COLLECT_POOL, dag_options
from include.settings import load_settings
from include.spark.submission import anchored

HAND_OVER_S = 15.0  # a run stops this long before the next, which has to start


@task(task_id="collect", pool=COLLECT_POOL, outlets=[RAW], retries=0, execution_timeout=timedelta(hours=1, minutes=5))
def collect_raw(data_interval_start: datetime | None = None, data_interval_end: datetime | None = None) -> int:
    """Poll the live clusters for the length of the interval, once without one; returns the number of files."""
    from include.flink.collection import collect_for
    from include.live_sources import observed_clusters

    settings = anchored(load_settings())
    if not observed_clusters(settings):
        raise AirflowSkipException("no cluster has a rest_url, prometheus.url or kafka: nothing to poll")
    seconds = 0.0
    if data_interval_start is not None and data_interval_end is not None:
        seconds = max(0.0, (data_interval_end - data_interval_start).total_seconds() - HAND_OVER_S)
    return len(collect_for(settings, seconds, grace_s=HAND_OVER_S / 2 if seconds else 60.0).written)


@dag(
    dag_id="tidewise_collect",
    schedule=CronDataIntervalTimetable(load_settings().schedules.collect, timezone="UTC"),
    doc_md=__doc__,
    **dag_options("collect"),
)
def tidewise_collect() -> None:
    """Wire the DAG."""
    collect_raw()


tidewise_collect()
