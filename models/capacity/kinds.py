"""The kind of an operator, from its name and its place in the job graph: operators of a kind scale in a similar way."""

from __future__ import annotations

import re
from typing import Final

KINDS: Final = ("source", "join", "keyed", "sink", "map")
# Names as Flink's DataStream and Table APIs give them, chained ones ("Window -> Sink: out") and a user's own words.
_JOIN: Final = re.compile(r"join|co-?group|co-?process|connect")
_KEYED: Final = re.compile(
    r"window|aggregat|reduc|keyed|group|session|\bcount|\bsum\b|distinct|dedup|\brank|top-?n|roll-?up"
)
_SINK_NAME: Final = re.compile(r"\bsink: ?[^>]*")  # what follows is where records go, not what is done with them
_SINK: Final = re.compile(r"\bsink\b|\bwriter\b|\bcommitter\b")


def kind_of(name: str, upstreams: int, downstreams: int) -> str:
    """Return the kind of an operator, one of :data:`KINDS`.

    What keeps state by key decides over where a chain ends: "Window -> Sink: out" works as a window.  An operator that
    has no such name and feeds others is a map.
    """
    if not upstreams:
        return "source"
    words = name.lower()
    work = _SINK_NAME.sub(" ", words)
    if upstreams > 1 or _JOIN.search(work):
        return "join"
    if _KEYED.search(work):
        return "keyed"
    if not downstreams or _SINK.search(words):
        return "sink"
    return "map"
