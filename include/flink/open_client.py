"""A client of a cluster of the settings."""

from __future__ import annotations

from collections.abc import Callable

from include.flink.client import FlinkClient
from include.settings import Settings


def open_client(settings: Settings, cluster: str, may_change: Callable[[], bool] | None = None) -> FlinkClient:
    """Return a client of a cluster, connected as the settings say.

    Raises:
        KeyError: the cluster has no REST address.
    """
    own = settings.clusters[cluster]
    if own.rest_url is None:
        raise KeyError(cluster)
    return FlinkClient(own.rest_url, cluster=cluster, connection=own.connection, may_change=may_change)
