"""Stages on a service that runs Spark elsewhere, through an operator that a team's own distribution makes."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any

from include.entry_points import EntryPointError, EntryRegistry
from include.place import place
from include.settings import Settings

GROUP = "tidewise.operators"
"""Entry points by the type of Airflow's connection; docs/spark_services.md has the function that one names."""
SPARK_SUBMIT = ("spark", "yarn", "k8s", "local")
"""Types of connections that spark-submit goes by; all but the first come from a URI, whose scheme is Spark's master."""
log = logging.getLogger(__name__)


def find_maker(connection_type: str | None) -> Callable[..., Any] | None:
    """Return what makes the operator of a service; None: spark-submit.

    Raises:
        EntryPointError: no distribution makes one for that type, two do, or what it names is not a function.
    """
    if connection_type in SPARK_SUBMIT:
        return None
    makers = EntryRegistry(GROUP, FunctionType, {})
    if connection_type and connection_type in makers:
        return makers[connection_type]
    raise EntryPointError(
        f"stages go by spark-submit, through a connection of type spark; for one of type {connection_type!r} a "
        f"function of yours makes the operator (entry point of {GROUP}: docs/spark_services.md)"
    )


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
