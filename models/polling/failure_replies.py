"""What Flink's ``exceptions`` reply tells of a job's failures: the root exception of each."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import islice, takewhile
from typing import Any

from include.domain.quarantine_rules import Rule
from models.control.readiness import Failure
from models.polling.faults import ReplyError, shorten
from models.polling.reply_values import encodable, read_time_ms

_CAUSED_BY, _AT = "Caused by: ", "at "
_MOST_LETTERS = 300
_PLACES = 3  # so many frames tell where an exception was thrown
# What differs from one occurrence of an exception to the next: ids, numbers, addresses.
_VARYING = re.compile(
    r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b"
    r"|\b(?=[0-9a-f]*\d)[0-9a-f]{6,}\b|(?<=@)[0-9a-f]+\b|\d+",
    re.IGNORECASE,
)
_LACKS_SLOTS = (
    "NoResourceAvailableException",
    "ResourceManagerException",
    "SlotAllocationException",
    "RemoteTransportException",
    "LocalTransportException",
    "TaskManager with id",
    "TaskExecutor with id",
    "heartbeat of taskmanager",
    "no longer reachable",
    "RecipientUnreachableException",
    "TaskExecutorGateway",  # a request to a TaskManager, which did not reply
    "PartitionConnectionException",
    "The TaskExecutor is shutting down",
)


def read_failures(result: object) -> tuple[Failure, ...]:
    """Return the failures that a reply lists, oldest first.

    Raises:
        ReplyError: it has no history of exceptions.
    """
    history = result.get("exceptionHistory") if isinstance(result, dict) else None
    entries = history.get("entries") if isinstance(history, dict) else None
    if not isinstance(entries, list):
        raise ReplyError(Rule.MISSING_FIELD, f"exceptionHistory: {shorten(str(result))}")
    known = (_read_entry(entry) for entry in entries if isinstance(entry, dict))
    return tuple(sorted((one for one in known if one is not None), key=lambda one: (one.at_s, one.kind)))


def _read_entry(entry: Mapping[str, Any]) -> Failure | None:
    at_ms = read_time_ms(entry.get("timestamp"))
    if at_ms is None:
        return None
    texts = [entry[key] for key in ("stacktrace", "exceptionName") if isinstance(entry.get(key), str) and entry[key]]
    trace = texts[0] if texts else ""
    cause, places = _root_of(trace)
    reported = " ".join(texts).lower()
    lacks_slots = any(sign.lower() in reported for sign in _LACKS_SLOTS)
    return Failure(at_ms / 1000.0, cause, _kind_of(cause, places), lacks_slots)


def _root_of(trace: str) -> tuple[str, list[str]]:
    """Return the first line of the innermost cause of a stack trace, and the first of the places below it."""
    lines = [line.strip() for line in trace.splitlines() if line.strip()]
    causes = [place for place, line in enumerate(lines) if line.startswith(_CAUSED_BY)]
    first = causes[-1] if causes else 0
    root = lines[first].removeprefix(_CAUSED_BY) if lines else "an exception without a text"
    below = takewhile(lambda line: line.startswith(_AT), lines[first + 1 :])
    return encodable(root[:_MOST_LETTERS]), [encodable(line) for line in islice(below, _PLACES)]


def _kind_of(cause: str, places: list[str]) -> str:
    """Return what occurrences of one exception have in common: its class and where it was thrown.

    Its message may name another record, file or address each time; where no place is told it has to do.
    """
    text = "\n".join([cause.partition(":")[0], *places]) if places else cause
    return _VARYING.sub("#", text)
