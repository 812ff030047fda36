"""Stages on a service that runs Spark elsewhere, through the operator of its provider."""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from include.orchestration.airflow_names import AirflowFailException
from include.place import place
from include.settings import Settings
from include.submitting.connection_types import find_submitter
from include.submitting.refusal import SubmitError
from include.submitting.requests import Request, prepare_request
from include.submitting.submitter import Submitter

DEFAULT_TIMEOUT = timedelta(hours=3)
log = logging.getLogger(__name__)


def choose_submitter(connection: Any) -> Submitter | None:
    """Return the service of a connection; None: spark-submit.

    Raises:
        AirflowFailException: as it is set up no further try can succeed.
    """
    try:
        return find_submitter(connection.conn_type, connection.extra_dejson)
    except SubmitError as error:
        raise AirflowFailException(f"the connection {connection.conn_id}: {error}") from error


def form_request(
    submitter: Submitter, settings: Settings, name: str, asked: Sequence[str], timeout: timedelta | None
) -> Request:
    """Return the request of stages.

    Raises:
        AirflowFailException: as it is set up no further try can succeed.
    """
    within_s = (timeout or DEFAULT_TIMEOUT).total_seconds()
    try:
        return prepare_request(
            submitter, settings, settings.spark.connection_id, name=name, asked=asked, within_s=within_s
        )
    except SubmitError as error:
        raise AirflowFailException(str(error)) from error


def run_operator(operator: Any, context: Any) -> None:
    """Run a provider's operator inside a task of another one."""
    execute = type(operator).execute
    # Airflow's wrapper warns in the log of every task that an operator is run by another one.
    getattr(execute, "__wrapped__", execute)(operator, context)


def read_counts(settings: Settings, stages: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return stage -> what its driver wrote when it had ended; its log is not here."""
    result = {}
    for stage in stages:
        file = place(settings.paths.out) / "stages" / f"{stage}.json"
        try:
            result[str(stage)] = dict(json.loads(file.read_text()))
        except (OSError, ValueError) as error:  # a fact less in Airflow's events is no reason to run the stage again
            log.warning("tidewise: the counts of %s cannot be read: %s", stage, error)
    return result
