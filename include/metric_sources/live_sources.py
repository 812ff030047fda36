"""Which sources live collecting polls for each cluster: its REST API or its Prometheus, and its Kafka brokers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol

from include.flink.client import FlinkClient
from include.flink.poller import DeliveredFiles, Poll, RestSource, deliver
from include.metric_sources.kafka.source import KafkaSource
from include.metric_sources.prometheus.client import PrometheusClient
from include.metric_sources.prometheus.source import LivePrometheusSource, open_graphs
from include.place import place
from include.settings import Cluster, Settings


class LiveSource(Protocol):
    """What is polled turn by turn."""

    def poll(self) -> Poll:
        """Return what is new; raises FlinkError when nothing came at all."""
        ...

    def write(self, poll: Poll, raw_root: Path, now_s: float) -> DeliveredFiles:
        """Write a poll's records below the raw root; raises OSError when they cannot be written."""
        ...

    def stop(self) -> None:
        """Give up what is under way; for another thread."""
        ...

    def close(self) -> None:
        """Close connections."""
        ...


class LiveRest:
    """A cluster's REST API."""

    def __init__(
        self, client: FlinkClient, cluster: str, clock: Callable[[], float], sleep: Callable[[float], object]
    ) -> None:
        self._client, self._cluster = client, cluster
        self._source = RestSource(client, cluster, clock, sleep=sleep)

    def poll(self) -> Poll:
        """Return the replies of all endpoints."""
        return self._source.poll()

    def write(self, poll: Poll, raw_root: Path, now_s: float) -> DeliveredFiles:
        """Write one file into the directory of the present hour."""
        return deliver(poll, self._cluster, raw_root, now_s)

    def stop(self) -> None:
        """Give up the requests under way."""
        self._client.stop()

    def close(self) -> None:
        """Close the pooled connections."""
        self._client.close()


def reads_prometheus(cluster: Cluster) -> bool:
    """Whether live collecting reads a cluster's Prometheus in the place of its REST API."""
    server = cluster.prometheus
    if server.url is None:
        return False
    return server.live if server.live is not None else cluster.rest_url is None


def observed_clusters(settings: Settings) -> list[str]:
    """Return the clusters that have something to poll."""
    return [
        name
        for name, one in settings.clusters.items()
        if one.rest_url is not None or reads_prometheus(one) or one.kafka
    ]


def open_sources(
    settings: Settings, name: str, clock: Callable[[], float], sleep: Callable[[float], object]
) -> Iterator[LiveSource]:
    """Yield the sources of a cluster.

    Raises:
        SavedGraphError: a saved graph cannot be used.
    """
    cluster = settings.clusters[name]
    if reads_prometheus(cluster):
        client = PrometheusClient(name, cluster.prometheus)
        raw_root = place(settings.paths.raw)
        book = open_graphs(cluster, name)
        yield LivePrometheusSource(client, name, cluster, book, clock=clock, raw_root=raw_root)
    elif cluster.rest_url is not None:
        rest = FlinkClient(cluster.rest_url, cluster=name, connection=cluster.connection)
        yield LiveRest(rest, name, clock, sleep)
    if cluster.kafka:
        yield KafkaSource(name, cluster.kafka, clock)
