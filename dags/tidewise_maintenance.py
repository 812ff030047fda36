"""Keep tables that live for years small: old rows go, small files of past days are merged, unneeded files are removed.

**Feeds** nothing. What everything else can be made of again, raw files and bronze tables, is kept unless
`[retention]` says otherwise; so are MLflow's runs. A table can still be read as it was `retention.time_travel_days`
days ago. Killed anywhere, it is run again.

**Schedule**: daily, without Spark. Stages may write meanwhile: only days that are over are touched. `tidewise maintain`
shows what a run would do; `dry_run` logs it.
"""

from airflow.sdk import dag, task

from include.orchestration.airflow_names import CronTriggerTimetable
from include.orchestration.tasks import AS_OF, AS_OF_PARAM, DRY_RUN_PARAM, UPKEEP, dag_options
from include.settings import load_settings
from include.spark.submission import anchor_paths
from include.utc import parse_utc


@task(task_id="keep_up", **UPKEEP)
def keep_up_tables(as_of: str, dry_run: bool | str) -> dict[str, int]:
    """Keep up every table; a table that fails is named, and fails the task after the others are done."""
    from include.maintenance.lake_upkeep import keep_up_lake

    done = keep_up_lake(anchor_paths(load_settings()), parse_utc(as_of), applies=str(dry_run) != "True")
    if done.failures:
        raise RuntimeError(f"upkeep failed: {done.failures}")
    return {one.table: one.removed_files for one in done.tables}


@dag(
    dag_id="tidewise_maintenance",
    schedule=CronTriggerTimetable(load_settings().schedules.maintenance, timezone="UTC"),
    params={"as_of": AS_OF_PARAM, "dry_run": DRY_RUN_PARAM},
    **dag_options(__doc__, "maintenance"),
)
def tidewise_maintenance() -> None:
    """Wire the DAG."""
    keep_up_tables(AS_OF, "{{ params.dry_run }}")


tidewise_maintenance()
