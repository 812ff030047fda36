"""The clusters of a tick, each in a thread of its own: one that takes long holds no other up, nor the next tick."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor, wait

Turn = Callable[[], tuple[Counter[str], str | None]]
"""Deals with a cluster; returns how many jobs met each decision, and why the cluster was left alone."""


class ClusterTurns:
    """Runs turns of clusters; one thread at a time calls it.

    Args:
        clusters: their number.
        monotonic: seconds of a clock that is never set.
    """

    def __init__(self, clusters: int, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._pool = ThreadPoolExecutor(max(1, clusters), thread_name_prefix="cluster")
        self._monotonic = monotonic
        self._at_work: dict[str, tuple[Future[tuple[Counter[str], str | None]], float]] = {}

    def begin(self, cluster: str, turn: Turn) -> None:
        """Begin the turn of a cluster, unless an earlier one is still at work."""
        if cluster not in self._at_work:
            self._at_work[cluster] = self._pool.submit(turn), self._monotonic()

    def take_ended(self, patience_s: float | None) -> tuple[Counter[str], dict[str, str]]:
        """Wait for the turns that are at work; returns decisions and problems by cluster.

        Args:
            patience_s: so long; None: until all have ended.
        """
        wait([future for future, _ in self._at_work.values()], timeout=patience_s)
        decisions, problems = Counter[str](), dict[str, str]()
        for cluster, (future, began_s) in list(self._at_work.items()):
            if not future.done():
                problems[cluster] = f"still at work since {self._monotonic() - began_s:.0f} s"
                continue
            del self._at_work[cluster]
            counted, problem = _result_of(future)
            decisions.update(counted)
            if problem is not None:
                problems[cluster] = problem
        return decisions, problems

    def idle(self, clusters: Iterable[str]) -> list[str]:
        """Return those of some clusters whose turn has ended."""
        return [cluster for cluster in clusters if cluster not in self._at_work]

    def close(self) -> None:
        """Begin no further turn; those at work go on."""
        self._pool.shutdown(wait=False)


def _result_of(future: Future[tuple[Counter[str], str | None]]) -> tuple[Counter[str], str | None]:
    error = future.exception()
    return future.result() if error is None else (Counter(), f"{type(error).__name__}: {error}")
