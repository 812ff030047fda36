"""One clock: the times that a JobManager tells, as the clock of the polls has them."""

from __future__ import annotations

from collections.abc import Collection
from statistics import median

_LEAST_MS = 5_000  # a smaller difference may be the age of a reply


def find_ahead_ms(differences_ms: Collection[float]) -> int:
    """Return by how much a JobManager's clock is ahead of the polls', in whole seconds as ms; 0 where nobody knows.

    A difference is the time at which the JobManager says that it wrote a reply, less that of the poll.
    """
    ahead_ms = median(differences_ms) if differences_ms else 0.0
    return 0 if abs(ahead_ms) < _LEAST_MS else 1000 * round(ahead_ms / 1000.0)
