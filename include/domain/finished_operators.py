"""Operators that have come to their end while their job runs on: they need nothing, and nothing comes from them."""

from __future__ import annotations

from collections.abc import Collection, Mapping

FINISHED = "FINISHED"
"""Status of a vertex whose tasks have all ended: a bounded source that was read, say.

A vertex that is CANCELED in a running job is being brought back, and has not ended.
"""

RESTORING = frozenset({"CREATED", "SCHEDULED", "DEPLOYING", "INITIALIZING", "CANCELING", "CANCELED", "RECONCILING"})
"""Status of a vertex of a running job whose tasks do not work yet: they are deployed, or read their state."""


def drop_finished(upstream: Mapping[str, Collection[str]], finished: Collection[str]) -> dict[str, tuple[str, ...]]:
    """Return the operators that still work -> those of them that feed each.

    One that is fed by none but finished ones gets nothing any more, and goes with them.
    """
    remaining = {name: tuple(feeders) for name, feeders in upstream.items() if name not in finished}
    while True:
        retained = {
            name: tuple(one for one in feeders if one in remaining or one not in upstream)
            for name, feeders in remaining.items()
        }
        result = {name: retained[name] for name in remaining if retained[name] or not upstream[name]}
        if result.keys() == remaining.keys():
            return result
        remaining = result
