"""Ask for a person's yes to the steps of jobs in mode `approve` ("Required Actions" in Airflow).

Each step that waits in `ops.control_log` is shown with what would change and why. The answer is for exactly that
change, counts for `limits.approval_expires_h` hours, and is read by the controller before it sends anything. Without an
answer in that time the step is denied. `tidewise approve` answers the same steps by command.

**Schedule**: as `schedules.control` while some job is in mode `approve`; else none. Runs wait as long as their steps
do, so several are active at a time; a step is shown once.
"""

import time
from datetime import timedelta
from typing import Any

from airflow.sdk import dag, task

from include.orchestration.airflow_names import CronTriggerTimetable
from include.orchestration.approval_operator import StepApprovalOperator
from include.orchestration.tasks import dag_options
from include.settings import load_settings
from include.spark.submission import anchor_paths

RUNS = 100  # a day of runs every quarter of an hour


@task(task_id="find")
def find_steps() -> list[dict[str, Any]]:
    """Return the steps that wait and are not shown yet."""
    from include.orchestration.approval_operator import find_questions

    return find_questions(anchor_paths(load_settings()), time.time())


@dag(
    dag_id="tidewise_approve",
    schedule=CronTriggerTimetable(load_settings().schedules.control, timezone="UTC")
    if load_settings().asks_for_approval
    else None,
    **dag_options(__doc__, "approve") | {"max_active_runs": RUNS},
)
def tidewise_approve() -> None:
    """Wire the DAG."""
    expires = timedelta(hours=load_settings().limits.approval_expires_h)
    StepApprovalOperator.partial(task_id="ask", response_timeout=expires, retries=0).expand_kwargs(find_steps())


tidewise_approve()
