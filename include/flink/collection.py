"""Polling the running clusters for a stretch of time, each at its own pace."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

from include.flink.client import FlinkClient, FlinkUnreachable
from include.flink.poller import Delivery, RestSource
from include.settings import Settings

log = logging.getLogger(__name__)


class CollectionError(RuntimeError):
    """Not one cluster could be reached; the message names each with its fault."""


def live_clusters(settings: Settings) -> dict[str, str]:
    """Return the clusters that have a REST address, with it."""
    return {name: cluster.rest_url for name, cluster in settings.clusters.items() if cluster.rest_url is not None}


def collect_for(
    settings: Settings, seconds: float, clock: Callable[[], float], sleep: Callable[[float], None]
) -> Delivery:
    """Poll every live cluster at once and then every ``poll_every_s`` until ``seconds`` have passed.

    An unreachable cluster does not stop the others and is tried again at its next turn.  Every poll is a file of its
    own, so stopping at any time loses nothing that was received.

    Raises:
        CollectionError: there are live clusters and nothing was received from any of them.
    """
    clients = {name: FlinkClient(url) for name, url in live_clusters(settings).items()}
    sources = {name: RestSource(client, name, clock) for name, client in clients.items()}
    started = clock()
    turns = dict.fromkeys(sources, started)
    total = Delivery()
    try:
        while turns and min(turns.values()) <= started + seconds:
            name = min(turns, key=lambda key: turns[key])
            sleep(max(0.0, turns[name] - clock()))
            total += _poll(name, sources[name], Path(settings.paths.raw))
            # The next turn on the cluster's own grid: a slow poll is followed by the next turn still to come.
            every_s = settings.clusters[name].poll_every_s
            turns[name] += every_s * max(1, -(-(clock() - turns[name]) // every_s))
    finally:
        for client in clients.values():
            client.close()
    if total.refused and not total.written:
        faults = "; ".join(f"{name}: {fault}" for name, fault in total.refused.items())
        raise CollectionError(f"nothing collected ({faults}): check rest_url under [clusters.<name>], then the cluster")
    return total


def _poll(name: str, source: RestSource, raw_root: Path) -> Delivery:
    try:
        return source.deliver(raw_root)
    except FlinkUnreachable as error:
        log.error("cluster %s: nothing collected: %s", name, error)
        return Delivery(refused={name: str(error)})
