"""Lines of a stage at their level in Airflow's log: the hook of spark-submit prints them all at INFO."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, Protocol

_LINE = re.compile(r"^(?:\S+ )?tidewise: (WARNING|ERROR|stage \S+ failed)\b")


class LineLogger(Protocol):
    """What a hook logs with."""

    def warning(self, line: str, /) -> Any:
        """Show a line as a warning."""

    def error(self, line: str, /) -> Any:
        """Show a line as an error."""


def split_by_level(lines: Iterable[str], log: LineLogger) -> Iterator[str]:
    """Log the lines that name a level, at that level; yield the others.

    >>> class Log:
    ...     warning = error = print
    >>> list(split_by_level(["tidewise: WARNING 2 lines were quarantined", "tidewise: stage ingest done: {}"], Log))
    tidewise: WARNING 2 lines were quarantined
    ['tidewise: stage ingest done: {}']
    """
    for line in lines:
        match = _LINE.match(line)
        if match is None:
            yield line
        elif match[1] == "WARNING":
            log.warning(line.strip())
        else:
            log.error(line.strip())


def show_levels(hook: Any) -> None:
    """Have a hook of spark-submit show each line of the driver at its level."""
    process, log = hook._process_spark_submit_log, hook.log
    hook._process_spark_submit_log = lambda lines: process(split_by_level(lines, log))
