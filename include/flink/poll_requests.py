"""The requests of one poll of a cluster: what came of them and what did not."""

from __future__ import annotations

from collections.abc import Callable

from include.flink.client import FlinkClient
from include.flink.faults import FlinkError, FlinkUnreachableError
from include.flink.raw_format import Endpoint, RawRecord
from include.flink.transport import Reply

MOST_SILENT = 16
"""Requests of one poll without a reply, after which the cluster counts as gone."""


class PollRequests:
    """The requests of one poll that follow each other: what came of them and what did not."""

    def __init__(
        self, client: FlinkClient, cluster: str, clock: Callable[[], float], silent: list[str] | None = None
    ) -> None:
        self._client, self._cluster, self._clock = client, cluster, clock
        self.records: list[RawRecord] = []
        self.faults: list[str] = []
        self.silent: list[str] = [] if silent is None else silent  # shared by all parts of a poll

    def ask(self, path: str) -> Reply | None:
        """Return a reply, None when there is none."""
        if len(self.silent) >= MOST_SILENT:
            return None
        try:
            return self._client.transport.get(path)
        except FlinkError as error:
            if isinstance(error, FlinkUnreachableError):
                self.silent.append(path)
            self.faults.append(f"{path.partition('?')[0]}: {error}")
            return None

    def keep(self, kind: Endpoint, path: str, job_id: str | None = None, vertex_id: str | None = None) -> Reply | None:
        """Ask, and keep the reply as a record."""
        reply = self.ask(path)
        if reply is not None:
            at_ms = round(self._clock() * 1000)
            last = self.records[-1] if self.records else None
            if last is not None and (last.kind, last.job_id, last.vertex_id) == (kind, job_id, vertex_id):
                at_ms = max(at_ms, last.observed_at_ms + 1)  # time is all that tells the two apart in bronze
            record = RawRecord(at_ms, self._cluster, str(kind), reply.path, job_id, vertex_id, reply.status, reply.body)
            self.records.append(record)
        return reply

    def try_to_ask(self, path: str) -> Reply | None:
        """Return a reply to what not every cluster can be asked; None, and no fault, when there is none."""
        before = len(self.faults)
        reply = self.ask(path)
        del self.faults[before:]
        return reply
