"""From a stage and a connection to what the provider's operator is given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from include.settings import PROJECT, Settings
from include.spark.submission import prepare_submission
from include.submitting.connection_types import find_submitter
from include.submitting.places import check_places
from include.submitting.refusal import SubmitError
from include.submitting.shipping import ship_submission
from include.submitting.submitter import Submitter

MASTER = "yarn"
"""Stands for any master that is not this machine: the service sets its own."""


@dataclass(frozen=True, slots=True)
class Request:
    """An operator of a provider.

    Attributes:
        operator: ``module:class``.
        options: its arguments but for the task id.
    """

    operator: str
    options: dict[str, Any]

    def make_operator(self, task_id: str) -> Any:
        """Return the operator."""
        module, _, name = self.operator.partition(":")
        return getattr(import_module(module), name)(task_id=task_id, **self.options)


def prepare_request(
    submitter: Submitter, settings: Settings, connection_id: str, *, name: str, asked: Sequence[str], within_s: float
) -> Request:
    """Bring code and settings to where a driver fetches them, and form the request.

    Args:
        submitter: of the service.
        settings: in force.
        connection_id: of Airflow's connection to the service.
        name: of the application.
        asked: arguments of the stages.
        within_s: how long the stages may take.

    Raises:
        SubmitError: a path is a folder of this machine, or a value a secret.
        OSError: the store does not take a file now.
        JarsMissingError: the jars were not fetched.
    """
    check_places(settings)
    submission = prepare_submission(settings, MASTER, PROJECT)
    shipped = ship_submission(submission, submitter, settings, name, asked)
    return Request(submitter.operator, submitter.form_options(shipped, connection_id, within_s))


def find_refusal(connection_type: str | None, extra: Mapping[str, Any], settings: Settings) -> str | None:
    """Return why no stage can be submitted through a connection; None where nothing is known to be against it.

    Nothing is written, and no service is asked.
    """
    try:
        if find_submitter(connection_type, extra) is not None:
            check_places(settings)
    except SubmitError as error:
        return str(error)
    return None
