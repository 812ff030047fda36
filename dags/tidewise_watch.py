"""Turn red while something needs a person: a silent controller, old plans, metrics or models, steps that wait.

It asks what `tidewise status` asks, without Spark, and fails with the same screen in its log: what is wrong, what to
do. Airflow's own alerts on failed tasks are then alerts of the fleet. A run in which something needs a person is not
retried: the next one asks again, and is green when nothing does any more. Thresholds are those of `[health]`.

**Messages**: with an Airflow connection `tidewise_webhook` (`notifications.connection_id`) each fault is sent to it,
once an hour, and its end once (docs/on_call.md, Messages).

**Schedule**: `schedules.watch`. It changes nothing in the fleet.
"""

from airflow.sdk import dag

from include.orchestration.airflow_names import CronTriggerTimetable
from include.orchestration.tasks import dag_options
from include.orchestration.watch_step import watch_step
from include.settings import load_settings


@dag(
    dag_id="tidewise_watch",
    schedule=CronTriggerTimetable(load_settings().schedules.watch, timezone="UTC"),
    **dag_options(__doc__, "watch"),
)
def tidewise_watch() -> None:
    """Wire the DAG."""
    watch_step()


tidewise_watch()
