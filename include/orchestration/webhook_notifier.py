"""Airflow's notifier of a task that failed: one message an hour to the webhook of a connection."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable
from typing import Any
from urllib.parse import urlsplit

from airflow.sdk.bases.notifier import BaseNotifier

from include.notifications.notice import EVERYWHERE, Notice

PAGE_PATH = "/tidewise"
"""Where Airflow serves the page (``page.PREFIX``)."""
STAGE_FAILING = "stage_failing"
"""``fleet.health.Fault.STAGE_FAILING``, which is above this layer."""
log = logging.getLogger(__name__)


class WebhookNotifier(BaseNotifier):  # type: ignore[misc]  # mypy does not follow Airflow
    """Sends what failed, and what to do; a webhook that fails or is slow costs a warning in the log."""

    def __init__(self, remedy: str, **options: Any) -> None:
        super().__init__(**options)
        self.remedy = remedy

    def notify(self, context: Any) -> None:
        """Send a message, unless one of the same task was sent within the hour."""
        task = context["task_instance"]
        name = f"{task.dag_id}.{task.task_id}"
        cause = str(context.get("exception") or "no exception is known").strip().partition("\n")[0]
        detail = f"{name} failed after {task.try_number} tries (run {task.run_id}): {cause}"
        send_messages([Notice(STAGE_FAILING, EVERYWHERE, name, detail, self.remedy)], is_complete=False)


def send_messages(active: Iterable[Notice], *, is_complete: bool) -> None:
    """Send what is due of faults to the webhook of the settings' connection; whatever goes wrong is a warning.

    Where they are all, the end of those that are missing is sent.
    """
    try:
        _send(active, is_complete=is_complete)
    except Exception as error:  # a message that is not sent must not be the next fault
        log.warning("tidewise: no message was sent: %s: %s", type(error).__name__, str(error).partition("\n")[0])


def _send(active: Iterable[Notice], *, is_complete: bool) -> None:
    from include.notifications.send_notices import send_due  # heavy for the parsing of DAGs
    from include.notifications.sent_notices import SentNotices
    from include.orchestration.webhook_connection import find_webhook
    from include.settings import load_settings
    from include.spark.submission import anchor_paths

    settings = anchor_paths(load_settings())
    own = settings.notifications
    webhook = find_webhook(own.connection_id)
    if webhook is None:
        log.info("tidewise: no message: Airflow has no usable connection %s", own.connection_id)
        return
    report = send_due(
        active,
        SentNotices(settings.paths.lake),
        webhook,
        own.page_url or find_page_url(),
        time.time(),
        is_complete=is_complete,
    )
    log.info("tidewise: messages sent: %s of faults, %s of their ends", report.begun, report.ended)
    if report.problem:
        log.warning("tidewise: the other messages wait for the next run: %s", report.problem)


def find_page_url() -> str:
    """Return where Airflow serves the page, by its own base address; empty where it names none."""
    from airflow.sdk.configuration import conf

    base = str(conf.get("api", "base_url", fallback="") or "")
    return f"{base.rstrip('/')}{PAGE_PATH}" if urlsplit(base).scheme in {"http", "https"} else ""
