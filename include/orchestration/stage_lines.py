"""Lines of a stage's driver in Airflow's log: each at its level, the counts of stages read, Spark's own to a file."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterable, Iterator
from typing import Any, Protocol, TextIO

_LINE = re.compile(r"^(?:\S+ )?tidewise: (WARNING|ERROR|stage \S+ failed)\b")
_DONE = re.compile(r"^(?:\S+ )?tidewise: stage (\S+) done: (\{.*\})\s*$")
# Of log4j at INFO and WARN, of Spark's start and of Ivy; an error of Spark stays where a person reads.
_OF_SPARK = re.compile(
    r"^(?:\d\d/\d\d/\d\d \d\d:\d\d:\d\d (?:TRACE|DEBUG|INFO|WARN) |WARNING: (?:Using|Please|Use|All) |"
    r"Using Spark's |Setting default log level|To adjust logging level|:: |Ivy |The jars for the packages )"
)
_MORE_OF_IT = re.compile(r"^(?:\s+at |\s+\.\.\. \d+ more|Caused by: |\t)")


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


def read_summaries(lines: Iterable[str], summaries: dict[str, dict[str, Any]]) -> Iterator[str]:
    """Yield all lines, and put the counts that they tell of into ``summaries``, stage -> counts."""
    for line in lines:
        match = _DONE.match(line)
        if match is not None:
            with contextlib.suppress(ValueError):
                summaries[match[1]] = dict(json.loads(match[2]))
        yield line


def set_spark_aside(lines: Iterable[str], file: TextIO) -> Iterator[str]:
    """Write Spark's own lines below the level of an error to a file; yield the others."""
    was_of_spark = False
    for line in lines:
        was_of_spark = _OF_SPARK.match(line) is not None or (was_of_spark and _MORE_OF_IT.match(line) is not None)
        if was_of_spark:
            file.write(line if line.endswith("\n") else f"{line}\n")
        else:
            yield line


def tracks_by_lines(hook: Any) -> bool:
    """Whether a hook of spark-submit reads from the lines where its driver is: then it has to have all of them."""
    return bool(hook._is_yarn or hook._is_kubernetes or hook._should_track_driver_status)


def show_levels(hook: Any, summaries: dict[str, dict[str, Any]] | None = None, file: TextIO | None = None) -> None:
    """Have a hook of spark-submit show each line of the driver at its level.

    ``summaries`` is given the counts of stages; ``file`` takes Spark's own lines, which are shown with the others
    without it.
    """
    process, log = hook._process_spark_submit_log, hook.log

    def show(lines: Iterable[str]) -> None:
        read = read_summaries(lines, {} if summaries is None else summaries)
        shown = read if file is None or tracks_by_lines(hook) else set_spark_aside(read, file)
        process(split_by_level(shown, log))

    hook._process_spark_submit_log = show
