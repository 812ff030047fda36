"""Jobs as clusters from elsewhere report them, at constant rates: chained, filtering, fanning, partly measured."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import count

from include.flink.raw_format import Endpoint, RawRecord

EVERY_S = 20
CLUSTER = "cases"
CUT = "Source__" + "x" * 72  # 80 characters, as many as Flink leaves of an operator's name
SECONDS = 900


@dataclass(frozen=True)
class Vertex:
    """A vertex.

    Attributes:
        name: with its chain.
        counters: metric -> records/s, of all subtasks.
        busy: share of its time; the rest is idle.
        inputs: names of what feeds it.
        gauges: metric -> (value at the start, growth per s).
        missing: from second to second one subtask is missing in its replies.
        standing: metric -> a count that does not change.
    """

    name: str
    counters: Mapping[str, float]
    busy: float = 0.5
    inputs: tuple[str, ...] = ()
    gauges: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    parallelism: int = 2
    missing: tuple[int, int] = (0, 0)
    standing: Mapping[str, float] = field(default_factory=dict)

    def metrics(self, ran_s: float, second: int) -> list[dict[str, object]]:
        p = self.parallelism - (self.missing[0] <= second < self.missing[1])
        share = p / self.parallelism
        sums = {name: share * rate * ran_s for name, rate in self.counters.items()}
        sums |= {name: share * value for name, value in self.standing.items()}
        sums |= {name: begin + growth * second for name, (begin, growth) in self.gauges.items()}
        times = {"Busy": self.busy, "Idle": 1.0 - self.busy, "BackPressured": 0.0}
        sums |= {f"accumulate{name}TimeMs": 1000.0 * part * ran_s * p for name, part in times.items()}
        return [
            {"id": name, "min": value / p, "max": value / p, "avg": value / p, "sum": value}
            for name, value in sums.items()
        ]


def source(name: str, **options: object) -> Vertex:
    gauges = {"Source__orders.pendingRecords": (20.0, 0.0)}
    return Vertex(name, **{"gauges": gauges, **options})  # type: ignore[arg-type]


ENRICH = Vertex("enrich", {"numRecordsIn": 1000.0, "numRecordsOut": 0.0}, inputs=("Source: orders",))
CHAIN = "Source: orders -> Filter -> Sink: Writer"
COUNTS_NOTHING = {"numRecordsIn": 0.0, "numRecordsOut": 0.0}
JOBS: dict[str, tuple[Vertex, ...]] = {
    "task_counts": (source(CHAIN, counters={"numRecordsIn": 1000.0, "numRecordsOut": 0.0}),),
    "operator_counts_in": (
        source(CHAIN, counters={**COUNTS_NOTHING, "Source__orders.numRecordsIn": 1000.0, "Filter.numRecordsIn": 9e3}),
    ),
    "operator_counts_out": (source(CHAIN, counters={**COUNTS_NOTHING, "Source__orders.numRecordsOut": 1000.0}),),
    "task_stands_still": (
        source(
            CHAIN,
            counters={"numRecordsOut": 0.0, "Source__orders.numRecordsOut": 1000.0},
            standing={"numRecordsIn": 7.0},
        ),
    ),
    "nothing_counts": (source(CHAIN, counters=COUNTS_NOTHING),),
    "no_counter": (source(CHAIN, counters={}),),
    "cut_name": (source(CHAIN, counters={**COUNTS_NOTHING, f"{CUT}.numRecordsOut": 1000.0}),),
    "two_sources": (
        source(
            "Source: a, Source: b -> Sink: Writer",
            counters={**COUNTS_NOTHING, "Source__a.numRecordsOut": 300.0, "Source__b.numRecordsOut": 700.0},
        ),
    ),
    "batches": (
        source("Source: orders", counters={"numRecordsIn": 10.0, "numRecordsOut": 1000.0}),
        ENRICH,
    ),
    "filter": (
        source(
            "Source: orders -> one in ten",
            counters={"numRecordsIn": 1290.0, "numRecordsOut": 129.0},
            gauges={"Source__orders.pendingRecords": (1000.0, 300.0)},
        ),
        Vertex("enrich", {"numRecordsIn": 129.0, "numRecordsOut": 0.0}, inputs=("Source: orders -> one in ten",)),
    ),
    "idle": (source(CHAIN, counters={**COUNTS_NOTHING, "Source__orders.numRecordsOut": 0.0}, busy=0.0),),
    "several_backlogs": (
        source(
            "Source: orders",
            counters={"numRecordsIn": 0.0, "numRecordsOut": 1000.0},
            gauges={
                "Source__orders.kafkaCluster.east.pendingRecords": (10_000.0, 0.0),
                "Source__orders.kafkaCluster.west.pendingRecords": (500_000.0, 0.0),
            },
        ),
        ENRICH,
    ),
    "one_subtask_missing": (
        source("Source: orders", counters={"numRecordsIn": 0.0, "numRecordsOut": 1000.0}, parallelism=4,
               missing=(300, 360)),
        ENRICH,
    ),
    "waits_in_reader": (
        source("Source: orders", counters={"numRecordsIn": 600.0, "numRecordsOut": 600.0}, busy=1.0),
        Vertex("enrich", {"numRecordsIn": 600.0}, busy=0.2, inputs=("Source: orders",)),
    ),
    "waits_without_backlog": (
        source("Source: orders", counters={"numRecordsIn": 600.0, "numRecordsOut": 600.0}, busy=1.0, gauges={}),
        Vertex("enrich", {"numRecordsIn": 600.0}, busy=0.2, inputs=("Source: orders",)),
    ),
    "works_off": (
        source(
            "Source: orders",
            counters={"numRecordsIn": 1000.0, "numRecordsOut": 1000.0},
            gauges={"Source__orders.pendingRecords": (900_000.0, -500.0)},
        ),
        ENRICH,
    ),
    "saturated": (
        source(
            "Source: orders",
            counters={"numRecordsIn": 1000.0, "numRecordsOut": 1000.0},
            busy=1.0,
            gauges={"Source__orders.pendingRecords": (0.0, 25.0)},
        ),
        ENRICH,
    ),
    "backlog_stays": (  # of an open transaction, say
        source(
            "Source: orders",
            counters={"numRecordsIn": 1000.0, "numRecordsOut": 1000.0},
            busy=0.125,
            gauges={"Source__orders.pendingRecords": (300_000.0, 0.0)},
        ),
        ENRICH,
    ),
    "works_off_a_little": (
        source(
            "Source: orders",
            counters={"numRecordsIn": 1000.0, "numRecordsOut": 1000.0},
            busy=1.0,
            gauges={"Source__orders.pendingRecords": (25_000.0, -25.0)},
        ),
        ENRICH,
    ),
    "fan_out": (
        source("Source: orders", counters={"numRecordsIn": 1000.0, "numRecordsOut": 1000.0}),
        Vertex("route", {"numRecordsIn": 1000.0, "numRecordsOut": 1000.0}, inputs=("Source: orders",)),
        Vertex("big", {"numRecordsIn": 900.0, "numRecordsOut": 900.0}, inputs=("route",)),
        Vertex("small", {"numRecordsIn": 100.0, "numRecordsOut": 100.0}, inputs=("route",)),
    ),
}  # fmt: skip


def records(start: datetime) -> Iterator[RawRecord]:
    """Yield the replies of polls from ``start`` on; the jobs have run for an hour."""
    numbers = count(1)
    for number, (job, vertices) in enumerate(JOBS.items(), 1):
        job_id = f"{number:032x}"
        ids = {vertex.name: f"{next(numbers) + 1000:032x}" for vertex in vertices}
        for second in range(0, SECONDS, EVERY_S):
            yield from _poll(start, second, job_id, job, vertices, ids)


def _poll(
    start: datetime, second: int, job_id: str, job: str, vertices: tuple[Vertex, ...], ids: Mapping[str, str]
) -> Iterator[RawRecord]:
    at_ms = round(1000 * (start + timedelta(seconds=second + 5)).timestamp())
    running_ms = round(1000 * (start - timedelta(hours=1)).timestamp())

    def record(kind: Endpoint, body: object, vertex_id: str | None = None) -> RawRecord:
        return RawRecord(at_ms, CLUSTER, str(kind), f"/{kind}", job_id, vertex_id, 200, json.dumps(body))

    shown = [
        {"id": ids[one.name], "name": one.name, "parallelism": one.parallelism, "maxParallelism": 128,
         "status": "RUNNING"}
        for one in vertices
    ]  # fmt: skip
    times = {"RUNNING": running_ms}
    yield record(Endpoint.JOB, {"jid": job_id, "name": job, "state": "RUNNING", "timestamps": times, "vertices": shown})
    if not second:
        nodes = [
            {"id": ids[one.name], **({"inputs": [{"id": ids[name], "ship_strategy": "HASH"} for name in one.inputs]}
                                     if one.inputs else {})}
            for one in vertices
        ]  # fmt: skip
        yield record(Endpoint.PLAN, {"plan": {"jid": job_id, "name": job, "nodes": nodes}})
    for one in vertices:
        yield record(Endpoint.VERTEX_METRICS, one.metrics(3600.0 + second, second), ids[one.name])
