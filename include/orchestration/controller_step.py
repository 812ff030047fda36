"""The task that runs the controller: a process of its own, without Spark."""

from __future__ import annotations

from datetime import timedelta

from airflow.providers.standard.operators.bash import BashOperator

from include.orchestration.assets import CONTROLLED, RAW
from include.orchestration.module_step import module_step
from include.orchestration.pools import CONTROL_POOL

_INTERVAL = "data_interval_start | default(none), data_interval_end | default(none)"


def controller_step(*, is_service: bool) -> BashOperator:
    """Return the task; it is killed with its run and started again by the next.

    Of a controller that is a service, outside of Airflow, the task fails while its ticks are late.
    """
    return module_step(
        "control",
        f"controller {{{{ controller_arguments_of(params, {_INTERVAL}, {is_service}) }}}}",
        outlets=[RAW, *CONTROLLED],
        pool=CONTROL_POOL,
        priority_weight=10,
        retries=1,
        retry_delay=timedelta(seconds=10),
        execution_timeout=timedelta(hours=25),
        doc_md="The controller: polls, evaluates, and rescales where the mode allows it. Log: ops.control_log.",
    )
