"""What Flink's ``exceptions`` reply tells of a job's failures: the root exception of each."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from models.control.readiness import Failure
from models.live.faults import ReplyError, Rule, shorten

_CAUSED_BY = "Caused by: "
_MOST_LETTERS = 300
# What differs from one occurrence of an exception to the next: ids, numbers, addresses.
_VARYING = re.compile(r"\b(?=[0-9a-f]*\d)[0-9a-f]{6,}\b|\d+")
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
    "The TaskExecutor is shutting down",
)


def read_failures(found: object) -> tuple[Failure, ...]:
    """Return the failures that a reply lists, oldest first.

    Raises:
        ReplyError: it has no history of exceptions.
    """
    history = found.get("exceptionHistory") if isinstance(found, dict) else None
    entries = history.get("entries") if isinstance(history, dict) else None
    if not isinstance(entries, list):
        raise ReplyError(Rule.MISSING_FIELD, f"exceptionHistory: {shorten(str(found))}")
    known = (_read_entry(entry) for entry in entries if isinstance(entry, dict))
    return tuple(sorted((one for one in known if one is not None), key=lambda one: (one.at_s, one.kind)))


def _read_entry(entry: Mapping[str, Any]) -> Failure | None:
    at_ms = entry.get("timestamp")
    if type(at_ms) is not int or at_ms <= 0:
        return None
    texts = [entry[key] for key in ("stacktrace", "exceptionName") if isinstance(entry.get(key), str) and entry[key]]
    trace = texts[0] if texts else ""
    cause = _root_of(trace)
    told = " ".join(texts).lower()
    lacks_slots = any(sign.lower() in told for sign in _LACKS_SLOTS)
    return Failure(at_ms / 1000.0, cause, _VARYING.sub("#", cause), lacks_slots)


def _root_of(trace: str) -> str:
    """Return the first line of the innermost cause of a stack trace."""
    lines = [line.strip() for line in trace.splitlines() if line.strip()]
    causes = [line.removeprefix(_CAUSED_BY) for line in lines if line.startswith(_CAUSED_BY)]
    root = causes[-1] if causes else lines[0] if lines else "an exception without a text"
    return root[:_MOST_LETTERS].encode("utf-8", "replace").decode()
