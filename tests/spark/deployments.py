"""Jobs that initialise, end, come again or are deployed under other names, polled every minute for three hours."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from include.flink.raw_format import Endpoint
from include.settings import Cluster
from tests.spark.raw_builders import (
    START,
    metric,
    ms,
    record,
    write,
)

HOURS = 3
IDS = {letter: letter * 32 for letter in "123456"}
NAMES = {"1": "Source: orders", "2": "enrich", "3": "Sink: out"}
UPSTREAM = {"1": (), "2": ("1",), "3": ("2",)}


@dataclass
class Run:
    """A run of a job, polled every minute; vertices by the first letter of their ids.

    Attributes:
        finished: vertex -> minute from which it is FINISHED.
        end: state in which it ends at its last minute; None where no reply shows an end.
        restored, savepoint: what its checkpoints tell; None for no such reply.
    """

    cluster: str
    job_id: str
    first: int
    last: int
    names: dict[str, str]
    upstream: dict[str, tuple[str, ...]]
    finished: dict[str, int]
    end: str | None = None
    restored: bool | None = None
    savepoint: bool = False
    job_type: str = "STREAMING"
    plan_replies: bool = True
    job: str = "orders"
    initialising: int = 0
    restoring: range = range(0)

    def lines(self) -> list[tuple[int, str]]:
        result: list[tuple[int, str]] = []
        began = START + timedelta(minutes=self.first)
        for minute in range(self.first, self.last + 1):
            at = START + timedelta(minutes=minute, seconds=5)
            result += [(minute, line) for line in self._poll(minute, at, began)]
        return result

    def _poll(self, minute, at, began):
        ended = self.end if minute == self.last else None
        vertices = [
            {"id": IDS[one], "name": name, "parallelism": 1, "maxParallelism": 128, "status": self._status(one, minute)}
            for one, name in self.names.items()
        ]
        nodes = [
            {"id": IDS[one], "inputs": [{"id": IDS[f], "ship_strategy": "HASH"} for f in feeders]}
            for one, feeders in self.upstream.items()
        ]
        plan = {"jid": self.job_id, "name": self.job, "type": self.job_type, "nodes": nodes}
        body = {
            "jid": self.job_id,
            "name": self.job,
            "state": ended or "RUNNING",
            "job-type": self.job_type,
            "timestamps": {"RUNNING": ms(began), **({ended: ms(at) - 2000} if ended else {})},
            "vertices": vertices,
            "plan": plan,
        }
        if minute - self.first < self.initialising:
            body |= {"state": "INITIALIZING", "vertices": [], "plan": {"jid": "", "nodes": []}}
        yield self._line(at, Endpoint.JOB, body)
        empty = {"plan": {"jid": "", "name": "", "type": "", "nodes": []}}
        if minute == self.first:
            yield self._line(at, Endpoint.PLAN, {"plan": plan} if self.plan_replies else empty)
        if self.restored is not None:
            restored = {"id": 1, "restore_timestamp": ms(began)} if self.restored else None
            saved = {
                "id": 9,
                "status": "COMPLETED",
                "trigger_timestamp": ms(at) - 4000,
                "latest_ack_timestamp": ms(at) - 3000,
            }
            latest = {"completed": None, "savepoint": saved if self.savepoint and ended else None, "restored": restored}
            yield self._line(at, Endpoint.CHECKPOINTS, {"counts": {}, "latest": latest, "history": []})
        if ended or minute - self.first < self.initialising:
            return
        ran_s = (at - began).total_seconds()
        for one in self.names:
            if self._status(one, minute) == "RUNNING":
                yield record(
                    at, Endpoint.VERTEX_METRICS, self._metrics(one, ran_s), cluster=self.cluster, job_id=self.job_id,
                    vertex_id=IDS[one],
                )  # fmt: skip

    def _status(self, one, minute):
        if minute in self.restoring and one == "2":
            return "INITIALIZING"
        return "FINISHED" if minute >= self.finished.get(one, 10**9) else "RUNNING"

    def _metrics(self, one, ran_s):
        is_source = not self.upstream[one]
        result = [metric("numRecordsIn", 0.0 if is_source else 100.0 * ran_s), metric("numRecordsOut", 100.0 * ran_s)]
        result += [metric("busyTimeMsPerSecond", 500.0), metric("idleTimeMsPerSecond", 500.0)]
        return [*result, metric("Source__orders.pendingRecords", 20.0)] if is_source else result

    def _line(self, at, kind, body):
        return record(at, kind, body, cluster=self.cluster, job_id=self.job_id)


def run(cluster, job_id, first, last, *, names=NAMES, upstream=UPSTREAM, finished=None, **more) -> Run:
    return Run(cluster, job_id * 32, first, last, names, upstream, finished or {}, **more)


BEFORE = {"1": "Source: bids[1]", "2": "Calc[2]", "3": "Calc[3]"}
AFTER = {"1": "Source: bids[2]", "2": "Calc[3]", "3": "Calc[4]"}
LAST = 60 * HOURS - 1
RUNS = [
    # the numbers of a session cluster, within an hour and by chance over another operator's former name
    run("numbered", "a", 0, 129, names=BEFORE),
    run("numbered", "b", 131, LAST, names=AFTER),
    run("initialises", "a", 150, LAST, plan_replies=False, initialising=2),
    run("no_graph", "a", 175, LAST, plan_replies=False, initialising=60),
    run("batch", "a", 0, 12, end="FINISHED"),
    run("batch", "b", 60, 72, end="FINISHED"),
    run("batch", "c", 120, 132, end="FINISHED"),
    run("quick_batch", "a", 0, 30, end="FINISHED", restored=False),
    run("quick_batch", "b", 31, 60, end="FINISHED", restored=False),
    run("savepoint", "a", 0, 60, end="FINISHED", restored=False, savepoint=True),
    run("savepoint", "b", 62, LAST, restored=True),
    run("untold", "a", 0, 60, end="FINISHED"),
    run("untold", "b", 62, LAST),
    run("cancelled", "a", 0, 60, end="CANCELED"),
    run("cancelled", "b", 62, LAST),
    run("given_up", "a", 0, 60, end="CANCELED"),
    run("given_up", "b", 110, LAST),
    run("vanished", "a", 0, 60),
    run("vanished", "b", 110, LAST),
    run("typed", "a", 0, LAST, job_type="BATCH"),
    run(
        "snapshot", "a", 0, LAST, names={**NAMES, "4": "Source: snapshot"}, finished={"4": 60},
        upstream={"1": (), "4": (), "2": ("1", "4"), "3": ("2",)},
    ),
    run("plain", "a", 0, LAST),
    run("restoring", "a", 0, LAST, restoring=range(120, 125)),
]  # fmt: skip


def write_deployments(raw: Path) -> dict[str, Cluster]:
    """Write every run below ``raw``; returns the clusters."""
    clusters = {one.cluster: Cluster(window_s=60) for one in RUNS}
    for hour in range(HOURS):
        for cluster in clusters:
            lines = [line for one in RUNS if one.cluster == cluster for at, line in one.lines() if at // 60 == hour]
            if lines:
                write(raw, START + timedelta(hours=hour), lines, cluster=cluster)
    return clusters
