"""The task that fails while something needs a person: ``make status`` as a process of its own."""

from __future__ import annotations

from datetime import timedelta

from airflow.providers.standard.operators.bash import BashOperator

from include.orchestration.module_step import module_step


def watch_step() -> BashOperator:
    """Return the task; its log is the screen of ``make status``, whose exit code is 1 when something does."""
    return module_step(
        "watch",
        "cli.status",
        retries=0,
        execution_timeout=timedelta(minutes=5),
        doc_md="What needs a person, as make status says it.",
    )
