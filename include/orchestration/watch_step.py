"""The task that fails while something needs a person: ``make status`` as a process of its own."""

from __future__ import annotations

import shlex
import sys
from datetime import timedelta

from airflow.providers.standard.operators.bash import BashOperator

from include.settings import PROJECT


def watch_step() -> BashOperator:
    """Return the task; its log is the screen of ``make status``, whose exit code is 1 when something does."""
    return BashOperator(
        task_id="watch",
        bash_command=f"exec {shlex.quote(sys.executable)} -m cli.status",
        cwd=str(PROJECT),
        env={"PYTHONPATH": str(PROJECT)},
        append_env=True,
        retries=0,
        execution_timeout=timedelta(minutes=5),
        doc_md="What needs a person, as make status says it.",
    )
