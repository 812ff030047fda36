"""A run's parameters that cannot be used: said at once, in the open part of the log, and never tried again."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from include.orchestration.airflow_names import AirflowFailException
from include.utc import IntervalError

P = ParamSpec("P")
R = TypeVar("R")
log = logging.getLogger(__name__)


class ParametersError(AirflowFailException, IntervalError):  # type: ignore[misc]  # Airflow's is untyped
    """Whoever started the run has to start another one; no retry heals it."""


def refuse_at_once(read: Callable[P, R]) -> Callable[P, R]:
    """Return a reader of parameters whose complaint fails the task without a retry.

    Raises:
        ParametersError: in the place of IntervalError.
    """

    @functools.wraps(read)
    def checked(*arguments: P.args, **options: P.kwargs) -> R:
        try:
            return read(*arguments, **options)
        except IntervalError as error:
            log.info("::endgroup::")  # templates are rendered within a group of the log that Airflow shows closed
            raise ParametersError(f"the run's parameters cannot be used: {error}") from None

    return checked
