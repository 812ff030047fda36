"""Range queries to a server with Prometheus' HTTP API."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

import numpy as np
import numpy.typing as npt

from include.flink.transport import MIB, FlinkError, FlinkUnreachable, Reply, Transport
from include.settings.sources import Prometheus

Floats = npt.NDArray[np.float64]
MOST_POINTS = 11_000
"""Prometheus refuses a query that would give more points in a series."""
_LARGEST_REPLY = 1024 * MIB


class PrometheusError(FlinkError):
    """A Prometheus-compatible server did not give what was asked for; the message names the cluster and the remedy."""


class PrometheusUnreachable(PrometheusError, FlinkUnreachable):  # noqa: N818 - reads as what happened
    """No usable reply came."""

    def __init__(self, place: str, cause: str) -> None:
        FlinkError.__init__(self, f"{place}: no usable reply ({cause}); check url, prefix and connection there")


class PrometheusRefused(PrometheusError, FlinkUnreachable):  # noqa: N818 - reads as what happened
    """The server replied, and refused the query; carries its own message."""

    def __init__(self, place: str, status: int, message: str) -> None:
        FlinkError.__init__(self, f"{place}: refused with {status}: {message}")
        self.status = status


@dataclass(frozen=True, slots=True)
class Grid:
    """The times of a range query, epoch seconds: ``start_s``, then every ``step_s`` up to ``end_s``."""

    start_s: int
    end_s: int
    step_s: int

    @property
    def steps(self) -> int:
        """Return how many times there are."""
        return (self.end_s - self.start_s) // self.step_s + 1

    @property
    def times_s(self) -> Floats:
        """Return (steps,) the times."""
        return self.start_s + self.step_s * np.arange(self.steps, dtype=np.float64)


@dataclass(frozen=True, slots=True)
class Series:
    """One series on a grid.

    Attributes:
        labels: with ``__name__`` where the query keeps it.
        values: (steps,) NaN where there is no sample, or one that is no number.
    """

    labels: Mapping[str, str]
    values: Floats


class PrometheusClient:
    """One cluster's server; every method raises PrometheusError."""

    def __init__(self, cluster: str, server: Prometheus) -> None:
        if server.url is None:
            raise PrometheusError(f"cluster {cluster} has no Prometheus: write [clusters.{cluster}.prometheus] url")
        self.place = f"[clusters.{cluster}.prometheus] {server.url}{server.prefix}"
        self._prefix = server.prefix
        self._transport = Transport(
            server.url,
            cluster=cluster,
            connection=server.connection,
            read_timeout_s=server.timeout_s,
            total_timeout_s=server.timeout_s,
            largest_bytes=_LARGEST_REPLY,
            headers={} if server.tenant is None else {"X-Scope-OrgID": server.tenant},
        )

    def query_range(self, query: str, grid: Grid) -> list[Series]:
        """Return the series that a query selects.

        Raises:
            PrometheusError: no reply, a refusal, or a reply that holds no series.
            ValueError: more points than the server gives.
        """
        if grid.steps >= MOST_POINTS:
            raise ValueError(f"{grid.steps} points in a series are more than the {MOST_POINTS} of one query")
        # VictoriaMetrics would otherwise move the times to those that it has in its cache.
        options = {"query": query, "start": grid.start_s, "end": grid.end_s, "step": grid.step_s, "nocache": 1}
        path = f"{self._prefix}/api/v1/query_range?{urlencode(options)}"
        try:
            reply = self._transport.get(path)
        except FlinkError as error:
            raise PrometheusUnreachable(self.place, str(error).partition("; check")[0]) from error
        return [_on_grid(found, grid) for found in self._matrix(reply)]

    def stop(self) -> None:
        """Give up what is under way; for another thread."""
        self._transport.stop()

    def close(self) -> None:
        """Close the pooled connections."""
        self._transport.close()

    def _matrix(self, reply: Reply) -> list[dict[str, Any]]:
        try:
            found = json.loads(reply.body)
            if not reply.ok or found["status"] != "success":
                raise PrometheusRefused(self.place, reply.status, str(found.get("error", reply.body[:300])))
            data = found["data"]
            if data["resultType"] != "matrix" or not isinstance(data["result"], list):
                raise PrometheusUnreachable(self.place, f"resultType {data['resultType']!r}")
            return data["result"]
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            if not reply.ok:
                raise PrometheusRefused(self.place, reply.status, reply.body[:300]) from error
            raise PrometheusUnreachable(self.place, f"not Prometheus' JSON: {reply.body[:120]!r}") from error


def _on_grid(found: Mapping[str, Any], grid: Grid) -> Series:
    values = np.full(grid.steps, np.nan)
    points = found.get("values") or []
    if points:
        times, numbers = zip(*points, strict=True)
        place = np.rint((np.array(times, np.float64) - grid.start_s) / grid.step_s).astype(np.int64)
        inside = (place >= 0) & (place < grid.steps)
        values[place[inside]] = np.array(numbers, np.float64)[inside]  # "NaN", "+Inf" are read as what they say
    return Series(dict(found.get("metric") or {}), np.where(np.isfinite(values), values, np.nan))
