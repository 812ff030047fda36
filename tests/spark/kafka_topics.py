"""What brokers told of topics while jobs read them, or did not: each case is a cluster."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from include.flink.raw_format import Endpoint
from include.settings import Cluster
from include.settings.sources import Kafka
from tests.spark.raw_builders import (
    HOUR,
    JOB_ID,
    SOURCE,
    START,
    VERTEX_IDS,
    PolledJob,
    record,
    write,
)

STEP = timedelta(minutes=5)
Ends = dict[str, list[int | None]]
"""Topic -> end offsets of its partitions; None for one without a leader."""


@dataclass(frozen=True)
class Situation:
    """A cluster: per Kafka cluster its topics, the lines of its hour, and of what its brokers told."""

    kafka: dict[str, dict[str, tuple[str, ...]]]
    lines: list[str]

    def settings(self) -> Cluster:
        sections = {name: Kafka(bootstrap_servers="b:9092", topics=topics) for name, topics in self.kafka.items()}
        return Cluster(window_s=300, kafka=sections)


def offsets(at: datetime, cluster: str, kafka: str, ends: Ends) -> str:
    topics = [
        {
            "topic": topic,
            "partitions": [
                {"partition": number, **({"error": "LEADER_NOT_AVAILABLE"} if end is None else {"end": end})}
                for number, end in enumerate(values)
            ],
        }
        for topic, values in ends.items()
    ]
    return record(at, Endpoint.KAFKA_OFFSETS, {"kafka": kafka, "topics": topics}, cluster=cluster, job_id=None)


def polls(cluster: str, kafka: str, ends: Callable[[int], Ends], *, shift_ms: int = 0) -> list[str]:
    """One line every 5 minutes, 20 s before the end of each; ``ends`` of the step's number."""
    ats = [START + (step + 1) * STEP - timedelta(seconds=20) + timedelta(milliseconds=shift_ms) for step in range(12)]
    return [offsets(at, cluster, kafka, ends(step)) for step, at in enumerate(ats)]


def job_lines(cluster: str) -> list[str]:
    return PolledJob(running_at=START - HOUR, cluster=cluster).hour(START)


def arriving(cluster: str) -> Situation:
    """100 records/s are emitted, 130 arrive: 300 s x 130 = 39,000 a step over two partitions."""
    reported = polls(cluster, "main", lambda step: {"orders": [19_500 * step, 19_500 * step]})
    return Situation({"main": {f"orders/{SOURCE}": ("orders",)}}, job_lines(cluster) + reported)


def by_vertex_id(cluster: str) -> Situation:
    reported = polls(cluster, "main", lambda step: {"orders": [30_000 * step]})
    return Situation({"main": {f"orders/{VERTEX_IDS[SOURCE]}": ("orders",)}}, job_lines(cluster) + reported)


def down(cluster: str) -> Situation:
    """The job is seen until 10:20 only."""
    down_at = START + timedelta(minutes=20)
    job = [line for line in job_lines(cluster) if json.loads(line)["observed_at_ms"] < down_at.timestamp() * 1000]
    reported = polls(cluster, "main", lambda step: {"orders": [60_000 * step]})
    return Situation({"main": {f"orders/{SOURCE}": ("orders",)}}, job + reported)


def several(cluster: str) -> Situation:
    def near(step: int) -> Ends:  # from 10:25 to 10:30 a partition has no leader
        return {"orders": [3_000 * step, None if step == 5 else 3_000 * step], "returns": [600 * step]}

    def far(step: int) -> Ends:  # the topic is made again at 10:40
        return {"orders": [1_500 * (step if step < 8 else step - 8)]}

    reported = polls(cluster, "near", near) + polls(cluster, "far", far, shift_ms=1)
    topics = {"near": {f"orders/{SOURCE}": ("orders", "returns")}, "far": {f"orders/{SOURCE}": ("orders",)}}
    return Situation(topics, job_lines(cluster) + reported)


def idle(cluster: str) -> Situation:
    """The job was never seen."""
    reported = polls(cluster, "main", lambda step: {"orders": [7, 7, 7]})
    return Situation({"main": {f"orders/{SOURCE}": ("orders",)}}, reported)


def slashed(cluster: str) -> Situation:
    """Two jobs read one topic, "orders" and "team-a/orders"; a third key means nobody."""
    twin = [line.replace(JOB_ID, "b" * 32) for line in job_lines(cluster)]
    twin = [line.replace('\\"name\\": \\"orders\\"', '\\"name\\": \\"team-a/orders\\"') for line in twin]
    reported = polls(cluster, "main", lambda step: {"orders": [30_000 * step, 90_000 * step]})
    keys = (f"orders/{SOURCE}", f"team-a/orders/{SOURCE}", "orders/Source: order", f"oders/{SOURCE}")
    return Situation({"main": dict.fromkeys(keys, ("orders",))}, job_lines(cluster) + twin + reported)


def lacking(cluster: str) -> Situation:
    """From 10:25 to 10:30 the listing lacks partition 1; a third partition comes at 10:45."""

    def ends(step: int) -> list[dict[str, int]]:
        reported = {0: 30_000 * step, 1: 60_000 * step} | ({2: 1_000_000 + 30_000 * step} if step >= 9 else {})
        return [{"partition": number, "end": end} for number, end in reported.items() if (step, number) != (5, 1)]

    lines = []
    for step in range(12):
        at = START + (step + 1) * STEP - timedelta(seconds=20)
        body = {"kafka": "main", "topics": [{"topic": "orders", "partitions": ends(step)}]}
        lines.append(record(at, Endpoint.KAFKA_OFFSETS, body, cluster=cluster, job_id=None))
    return Situation({"main": {f"orders/{SOURCE}": ("orders",)}}, job_lines(cluster) + lines)


SITUATIONS = {
    "slashed": slashed,
    "lacking": lacking,
    "arriving": arriving,
    "by_vertex_id": by_vertex_id,
    "down": down,
    "several": several,
    "idle": idle,
}


def write_topics(raw: Path) -> dict[str, Cluster]:
    """Write every situation below ``raw``; returns the clusters."""
    situations = {cluster: make(cluster) for cluster, make in SITUATIONS.items()}
    for cluster, situation in situations.items():
        write(raw, START, situation.lines, cluster=cluster)
    return {cluster: situation.settings() for cluster, situation in situations.items()}
