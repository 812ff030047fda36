"""Control the jobs: poll the clusters, evaluate every job between two plans, and rescale those that should change.

One process without Spark. It polls each cluster every `poll_every_s` seconds and keeps the replies as raw files, which
`tidewise_hour` reads; replies that were not collected cannot be fetched later. Every `planner.timing.apply_every_s`
seconds it evaluates all jobs with the metrics of the last minutes: the due step of the plan goes out, it waits, or the
measured load asks for another parallelism (for example when a backlog grows). Then each job is compared with what
its cluster says it runs at, and what was decided is written to `ops.control_log`.

It **changes Flink** only where the mode is `auto`, or `approve` and a person has said yes; else the log says what it
would have done. To stop all changes at once: `tidewise hold`.

**Schedule**: a run lasts until the next one begins. A run that is killed loses nothing: the next one finds what was
sent in what Flink says it was asked for. With `as_of` a run makes one dry-run tick at that time and ends.
"""

from airflow.sdk import dag

from include.orchestration.airflow_names import CronDataIntervalTimetable
from include.orchestration.controller_step import controller_step
from include.orchestration.tasks import AS_OF_PARAM, dag_options
from include.settings import load_settings

_SETTINGS = load_settings()


@dag(
    dag_id="tidewise_control",
    schedule=CronDataIntervalTimetable(_SETTINGS.schedules.control, timezone="UTC"),
    params={"as_of": AS_OF_PARAM},
    **dag_options(__doc__, "control"),
)
def tidewise_control() -> None:
    """Wire the DAG."""
    controller_step(is_service=_SETTINGS.apply.as_service)


tidewise_control()
