"""Polling the running clusters for a stretch of time, each at its own pace in a thread of its own."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from functools import reduce
from operator import add

from include.flink.faults import FlinkError
from include.flink.poller import DeliveredFiles, Poll
from include.flink.raw_format import RawRecord
from include.metric_sources.live_sources import LiveSource, observed_clusters, open_sources
from include.place import place
from include.settings import Settings

log = logging.getLogger(__name__)

OnRecords = Callable[[str, Sequence[RawRecord]], None]
"""Takes a cluster's name and the records of one of its polls; called from the threads of the clusters."""
_STOP_WITHIN_S = 5.0
_FAULTS_SHOWN = 5  # of one poll: a cluster that loses everything is one line, not hundreds


class CollectionError(RuntimeError):
    """Not one cluster could be reached; the message names each with its fault."""


def collect_for(
    settings: Settings,
    seconds: float,
    clock: Callable[[], float] = time.time,
    *,
    stop: threading.Event | None = None,
    on_records: OnRecords | None = None,
    grace_s: float = 60.0,
    may_be_empty: bool = False,
) -> DeliveredFiles:
    """Poll every live cluster at once and then every ``poll_every_s`` until ``seconds`` have passed.

    A cluster that is slow, does not reply or replies nonsense has lines in the log and delays no other; it is tried
    again at its next turn.  Every poll is a file of its own, so stopping at any time loses nothing that was received.

    Args:
        settings: of the run.
        seconds: for how long; may be infinite.
        clock: epoch seconds, for the records' times.
        stop: set by somebody else to end early; what is under way is given up.
        on_records: receives the records of each poll, also when they could not be written.
        grace_s: how much longer a poll that has begun may last; then what it has is kept and the rest given up.
        may_be_empty: whether the caller tells itself of clusters that do not reply.

    Raises:
        CollectionError: there are live clusters and nothing was received from any of them, unless that may be.
    """
    stop = threading.Event() if stop is None else stop
    ended = threading.Event()
    until_s = time.monotonic() + seconds
    pollers = [
        _Poller(settings, name, source, clock, ended=ended, on_records=on_records, until_s=until_s)
        for name in observed_clusters(settings)
        for source in open_sources(settings, name, clock, ended.wait)
    ]
    for poller in pollers:
        poller.start()
    try:
        for poller in pollers:
            while poller.is_alive() and not stop.is_set() and time.monotonic() < until_s + grace_s:
                poller.join(0.1)
    finally:
        _end(pollers, ended)
    total = reduce(add, (poller.total for poller in pollers), DeliveredFiles())
    if total.refused and not total.written and not stop.is_set() and not may_be_empty:
        faults = "; ".join(f"{name}: {fault}" for name, fault in total.refused.items())
        raise CollectionError(f"nothing collected ({faults}): check rest_url under [clusters.<name>], then the cluster")
    return total


def _end(pollers: Sequence[_Poller], ended: threading.Event) -> None:
    """Wait for pollers that are done; stop those that are not, and what they wait for."""
    alive = [poller for poller in pollers if poller.is_alive()]
    if alive:
        ended.set()
    for poller in alive:
        poller.source.stop()
    deadline = time.monotonic() + _STOP_WITHIN_S
    for poller in pollers:
        poller.join(max(0.0, deadline - time.monotonic()))
        if poller.is_alive():
            log.error("cluster %s: its poll does not end; it is left behind", poller.name)
        poller.source.close()


class _Poller(threading.Thread):
    """Polls one source of a cluster; a daemon, so that a name server that hangs cannot hold the process."""

    def __init__(
        self,
        settings: Settings,
        cluster: str,
        source: LiveSource,
        clock: Callable[[], float],
        *,
        ended: threading.Event,
        on_records: OnRecords | None,
        until_s: float,
    ) -> None:
        super().__init__(name=cluster, daemon=True)
        self.source = source
        self.total = DeliveredFiles()
        self._every_s = settings.clusters[cluster].poll_every_s
        self._raw_root = place(settings.paths.raw)
        self._clock, self._ended, self._on_records, self._until_s = clock, ended, on_records, until_s

    def run(self) -> None:
        """Poll on the cluster's own grid: a slow poll is followed by the next turn still to come."""
        turn_s = time.monotonic()
        while True:
            try:
                self._take_turn()
            except Exception as error:
                log.exception("cluster %s: a poll ended in an error of Tidewise", self.name)
                self._refuse(f"{type(error).__name__} in a poll; the log has more")
            turn_s += self._every_s * max(1, -(-(time.monotonic() - turn_s) // self._every_s))
            if turn_s > self._until_s or self._ended.wait(max(0.0, turn_s - time.monotonic())):
                return

    def _take_turn(self) -> None:
        try:
            poll = self.source.poll()
        except FlinkError as error:
            log.error("cluster %s: nothing collected: %s", self.name, error)
            self._refuse(str(error))
            return
        if not self._ended.is_set():
            self._report(poll)
        self._hand_over(poll)
        try:
            self.total += self.source.write(poll, self._raw_root, self._clock())
        except OSError as error:
            log.error("cluster %s: %d replies were not written: %s", self.name, len(poll.records), error)
            self._refuse(f"not written: {error}")

    def _report(self, poll: Poll) -> None:
        for fault in poll.faults[:_FAULTS_SHOWN]:
            log.error("cluster %s: %s", self.name, fault)
        excluded = len(poll.faults) - _FAULTS_SHOWN
        if excluded > 0:
            log.error("cluster %s: %d more faults of this kind in one poll", self.name, excluded)
        if poll.faults and not poll.records:
            self._refuse(poll.faults[0])

    def _hand_over(self, poll: Poll) -> None:
        if self._on_records is None or not poll.records:
            return
        try:
            self._on_records(self.name, poll.records)
        except Exception:
            log.exception("cluster %s: the records of a poll were not taken in", self.name)

    def _refuse(self, fault: str) -> None:
        self.total += DeliveredFiles(refused={self.name: fault})
