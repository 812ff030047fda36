"""The task that fails while something needs a person, and sends a message for each fault and hour."""

from __future__ import annotations

import json
import tempfile
from datetime import timedelta
from pathlib import Path
from typing import Any

from airflow.providers.standard.operators.bash import BashOperator

from include.notifications.notice import read_notices
from include.orchestration.airflow_names import AirflowException, AirflowFailException
from include.orchestration.module_step import module_options
from include.orchestration.stage_operator import report_failure
from include.orchestration.webhook_notifier import send_messages

FILE = "TIDEWISE_STATUS_FILE"


class FleetNeedsPersonError(AirflowFailException):  # type: ignore[misc]  # mypy does not follow Airflow
    """Something does; each fault has a message of its own."""


class WatchOperator(BashOperator):  # type: ignore[misc]  # mypy does not follow providers
    """Runs ``tidewise status`` as a process of its own, whose screen is the task's log, and sends what it names."""

    def execute(self, context: Any) -> Any:
        """Show the status and send what is due.

        Raises:
            FleetNeedsPersonError: something needs a person.
            AirflowException: nobody knows, since the status could not be read.
        """
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "status.json"
            self.env: dict[str, str] = {**(self.env or {}), FILE: str(file)}
            try:
                result = super().execute(context)
            except AirflowException:
                if not file.is_file():
                    raise
                result = None
            health = json.loads(file.read_text())["health"]
        notices = read_notices(health)
        send_messages(notices, is_complete=True)
        if notices:
            raise FleetNeedsPersonError(f"{len(notices)} faults need a person: see above, or tidewise status")
        return result


def watch_step() -> WatchOperator:
    """Return the task; its log is the screen of ``tidewise status``."""
    return WatchOperator(
        task_id="watch",
        **module_options(f'cli.console status --json-file "${FILE}"'),
        retries=1,  # of a process that was lost; what needs a person fails at once
        execution_timeout=timedelta(minutes=5),
        on_failure_callback=report_watch_failure,
        on_success_callback=None,
        doc_md="What needs a person, as `tidewise status` has it; a message for each fault and hour where Airflow has "
        "the connection of `notifications.connection_id`.",
    )


def report_watch_failure(context: Any) -> None:
    """Say in the log, and send, that nobody knows how the fleet is; what needs a person was sent by the task itself."""
    report_failure(context)
    if not isinstance(context.get("exception"), FleetNeedsPersonError):
        from include.orchestration.tasks import FAILURE_NOTIFIER

        FAILURE_NOTIFIER(context)
