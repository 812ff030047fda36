"""Range queries to a server with Prometheus' HTTP API."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import urlencode

import numpy as np
import numpy.typing as npt

from include.flink.faults import FlinkError, FlinkUnreachableError
from include.flink.transport import MIB, Reply, Transport
from include.settings.sources import Prometheus

Floats = npt.NDArray[np.float64]
_T = TypeVar("_T")
MOST_POINTS = 11_000
"""Prometheus refuses a query that would give more points in a series."""
_LARGEST_REPLY = 1024 * MIB
# Thanos and VictoriaMetrics are asked for whole answers or none; other servers pass over what they do not know.
WHOLE_ONLY = {"partial_response": "false", "deny_partial_response": 1}
_PARTIAL_TRIES = 3
_PARTIAL_PAUSE_S = 1.0
_IS_NOTE = re.compile(r"PromQL info:", re.IGNORECASE)
# Servers put notes on the query into ``infos``; only those that speak of missing samples make an answer partial.
_SPEAKS_OF_LOSS = re.compile(
    r"partial|incomplete|truncat|limit|exceed|time[d ]*out|deadline|unavailab|unreachab|missing|fail|dropped|refused",
    re.IGNORECASE,
)
_LONGEST_WARNING = 300


class PrometheusError(FlinkError):
    """A Prometheus-compatible server did not give what was asked for; the message names the cluster and the remedy."""


class PrometheusUnreachableError(PrometheusError, FlinkUnreachableError):
    """No usable reply came."""

    def __init__(self, place: str, cause: str) -> None:
        FlinkError.__init__(self, f"{place}: no usable reply ({cause}); check url, prefix and connection there")


class PrometheusRefusedError(PrometheusError, FlinkUnreachableError):
    """The server replied, and refused the query; carries its own message."""

    def __init__(self, place: str, status: int, message: str) -> None:
        FlinkError.__init__(self, f"{place}: refused with {status}: {message}")
        self.status = status


class PrometheusPartialError(PrometheusRefusedError):
    """The server replied, and its answer says itself, or shows, that samples are missing."""

    def __init__(self, place: str, warning: str) -> None:
        FlinkError.__init__(
            self,
            f"{place}: the answer is partial ({warning[:_LONGEST_WARNING]}), and nothing is written from it; bring "
            "back what the server names, and ask again",
        )
        self.status = 200


class PrometheusTimesUnknownError(PrometheusError):
    """The server's ``timestamp()`` gives no times of samples."""

    def __init__(self, place: str) -> None:
        FlinkError.__init__(
            self,
            f"{place}: timestamp() gives no times at which samples were scraped (0, say), so nothing is written; use "
            "the server's Prometheus engine (Thanos: --query.promql-engine=prometheus), or another server",
        )


@dataclass(frozen=True, slots=True)
class QueryRange:
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

    def __init__(self, cluster: str, server: Prometheus, sleep: Callable[[float], object] = time.sleep) -> None:
        if server.url is None:
            raise PrometheusError(f"cluster {cluster} has no Prometheus: write [clusters.{cluster}.prometheus] url")
        self.place = f"[clusters.{cluster}.prometheus] {server.url}{server.prefix}"
        self._prefix, self._sleep = server.prefix, sleep
        self._transport = Transport(
            server.url,
            cluster=cluster,
            connection=server.connection,
            read_timeout_s=server.timeout_s,
            total_timeout_s=server.timeout_s,
            largest_bytes=_LARGEST_REPLY,
            headers={} if server.tenant is None else {"X-Scope-OrgID": server.tenant},
        )

    def query_range(self, query: str, grid: QueryRange) -> list[Series]:
        """Return the series that a query selects; a partial answer is asked for again, a few times.

        Raises:
            PrometheusPartialError: the answer stayed partial.
            PrometheusError: no reply, a refusal, or a reply that holds no series.
            ValueError: more points than the server gives.
        """
        if grid.steps >= MOST_POINTS:
            raise ValueError(f"{grid.steps} points in a series are more than the {MOST_POINTS} of one query")
        # VictoriaMetrics would otherwise move the times to those that it has in its cache.
        options = {"query": query, "start": grid.start_s, "end": grid.end_s, "step": grid.step_s, "nocache": 1}
        path = f"{self._prefix}/api/v1/query_range?{urlencode(options | WHOLE_ONLY)}"
        return [_on_grid(result, grid) for result in self.ask_again(lambda: self._ask(path))]

    def ask_again(self, ask: Callable[[], _T]) -> _T:
        """Return what ``ask`` returns, which is called again where its answer is partial.

        Raises:
            PrometheusPartialError: all answers were.
        """
        for _ in range(_PARTIAL_TRIES - 1):
            try:
                return ask()
            except PrometheusPartialError:
                self._sleep(_PARTIAL_PAUSE_S)
        return ask()

    def _ask(self, path: str) -> list[dict[str, Any]]:
        try:
            reply = self._transport.get(path)
        except FlinkError as error:
            raise PrometheusUnreachableError(self.place, str(error).partition("; check")[0]) from error
        return self._matrix(reply)

    def stop(self) -> None:
        """Give up what is under way; for another thread."""
        self._transport.stop()

    def close(self) -> None:
        """Close the pooled connections."""
        self._transport.close()

    def _matrix(self, reply: Reply) -> list[dict[str, Any]]:
        try:
            result = json.loads(reply.body)
            if not reply.ok or result["status"] != "success":
                raise PrometheusRefusedError(self.place, reply.status, str(result.get("error", reply.body[:300])))
            data = result["data"]
            if data["resultType"] != "matrix" or not isinstance(data["result"], list):
                raise PrometheusUnreachableError(self.place, f"resultType {data['resultType']!r}")
            if (warning := find_partial(result)) is not None:
                raise PrometheusPartialError(self.place, warning)
            return data["result"]
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            if not reply.ok:
                raise PrometheusRefusedError(self.place, reply.status, reply.body[:300]) from error
            raise PrometheusUnreachableError(self.place, f"not Prometheus' JSON: {reply.body[:120]!r}") from error


def find_partial(reply: Mapping[str, Any]) -> str | None:
    """Return what a successful reply says of samples that it lacks; None when it says nothing of the kind.

    Thanos, Mimir and Prometheus with remote reads list ``warnings``; VictoriaMetrics' clusters write ``isPartial``.
    """
    reported = [text for text in _texts(reply.get("warnings")) if not _IS_NOTE.match(text)]
    reported += [
        text for text in _texts(reply.get("infos")) if not _IS_NOTE.match(text) and _SPEAKS_OF_LOSS.search(text)
    ]
    data = reply.get("data")
    marks = [
        f"{key}: true"
        for place in (reply, data if isinstance(data, Mapping) else {})
        for key in ("isPartial", "partial", "partialResponse")
        if place.get(key) is True or str(place.get(key)).lower() == "true"
    ]
    return "; ".join(reported + marks) or None


def _texts(value: object) -> list[str]:
    several = value if isinstance(value, list) else [value]
    return [" ".join(str(one).split()) for one in several if one]


def _on_grid(result: Mapping[str, Any], grid: QueryRange) -> Series:
    values = np.full(grid.steps, np.nan)
    points = result.get("values") or []
    if points:
        times, numbers = zip(*points, strict=True)
        place = np.rint((np.array(times, np.float64) - grid.start_s) / grid.step_s).astype(np.int64)
        inside = (place >= 0) & (place < grid.steps)
        values[place[inside]] = np.array(numbers, np.float64)[inside]  # "NaN", "+Inf" are read as what they say
    return Series(dict(result.get("metric") or {}), np.where(np.isfinite(values), values, np.nan))
