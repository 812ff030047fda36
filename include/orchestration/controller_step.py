"""The task that runs the controller: a process of its own, without Spark."""

from __future__ import annotations

import shlex
import sys
from datetime import timedelta

from airflow.providers.standard.operators.bash import BashOperator

from include.orchestration.assets import CONTROLLED, RAW
from include.orchestration.tasks import CONTROL_POOL
from include.settings import PROJECT

_ARGUMENTS = (
    "{{ controller_arguments_of(params, data_interval_start | default(none), data_interval_end | default(none)) }}"
)


def controller_step() -> BashOperator:
    """Return the task; it is killed with its run and started again by the next."""
    return BashOperator(
        task_id="control",
        bash_command=f"exec {shlex.quote(sys.executable)} -m controller {_ARGUMENTS}",
        cwd=str(PROJECT),
        env={"PYTHONPATH": str(PROJECT)},
        append_env=True,
        outlets=[RAW, *CONTROLLED],
        pool=CONTROL_POOL,
        priority_weight=10,
        retries=1,
        retry_delay=timedelta(seconds=10),
        execution_timeout=timedelta(hours=25),
        doc_md="The controller: polls, evaluates, and rescales where the mode allows it. Log: ops.control_log.",
    )
