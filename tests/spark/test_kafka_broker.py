"""A real broker: its end offsets as demand against the producer's own counts, without any consumer."""

from __future__ import annotations

import gzip
import json
import time
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
from local_kafka import running_kafka

from include.flink.raw_format import Endpoint
from include.metric_sources.kafka.source import KafkaSource
from include.settings import Cluster
from include.settings.sources import Kafka
from include.stage_names import Stage
from include.stage_request import StageRequest
from include.tables import OBSERVATIONS
from include.utc import ceil_hour, floor_hour
from spark_jobs.ingest import stage as ingest

WINDOW_S, PER_TURN = 4, 150
SHORT_S, LONG_S = 4, 26
SOURCES = {"orders/Source: orders": ("orders",), "orders/Source: clicks": ("clicks",), "orders/Source: gone": ("gone",)}


def produce(work, seconds):
    """Return raw files of polls of a real broker, and what the producer counted: (time, records)."""
    counted = []
    with running_kafka(work / "broker") as kafka:
        kafka.create("orders", 3)
        kafka.create("clicks", 1)  # idle
        brokers = Kafka(bootstrap_servers=kafka.servers, topics=SOURCES, timeout_s=5)
        source = KafkaSource("k", {"main": brokers}, time.time)
        started, turn = time.time(), 0
        while time.time() - started < seconds:
            kafka.send("orders", PER_TURN)
            poll = source.poll()
            assert (poll.faults, len(poll.records)) == ((), 1)
            source.write(poll, work / "raw", time.time())
            counted.append((time.time(), kafka.delivered["orders"]))
            turn += 1
            time.sleep(max(0.0, started + 0.5 * turn - time.time()))
        groups = kafka.admin.list_consumer_groups().result(10).valid
    assert groups == []  # nobody commits an offset
    dead = KafkaSource("k", {"main": brokers.model_copy(update={"timeout_s": 1.0})}, time.time)
    return work / "raw", counted, brokers, dead.poll()


@pytest.fixture(scope="module")
def produced(tmp_path_factory):
    return produce(tmp_path_factory.mktemp("kafka"), SHORT_S)


def test_a_broker_that_is_gone_is_named(produced):
    poll = produced[3]
    assert poll.records == ()
    assert "[clusters.k.kafka.main]" in poll.faults[0]


@pytest.mark.long  # tests/spark/test_kafka_arrivals.py has the ingestion of such lines
@pytest.mark.spark
def test_demand_is_what_the_producer_counted(spark, settings, lake, tmp_path):
    raw, counted, brokers, _ = produce(tmp_path, LONG_S)
    paths = settings.paths.model_copy(update={"raw": str(raw)})
    own = settings.model_copy(
        update={"paths": paths, "clusters": {"k": Cluster(window_s=WINDOW_S, kafka={"main": brokers})}}
    )
    times, totals = np.array(counted).T
    first, last = (datetime.fromtimestamp(at, UTC) for at in (times[0], times[-1]))
    start, end = floor_hour(first), ceil_hour(last)
    summary = ingest.run(spark, own, StageRequest(Stage.INGEST, end, start, end))
    assert (summary["quarantined"], summary["rows"]) == (0, len(counted))
    rows = lake.read(OBSERVATIONS).collect()
    result = {}
    for row in rows:
        at_s = row["window_start"].replace(tzinfo=UTC).timestamp()
        if times[0] <= at_s and at_s + WINDOW_S <= times[-1]:
            result.setdefault(row["operator"], {})[at_s] = row["target_data_rate_per_s"]
    assert result.keys() == {"Source: orders", "Source: clicks"}  # a topic that is not there tells nothing
    windows = sorted(result["Source: orders"])
    assert len(windows) >= 4
    assert set(result["Source: clicks"].values()) == {0.0}
    reported = WINDOW_S * sum(result["Source: orders"].values())
    begin, stop = np.interp([windows[0], windows[-1] + WINDOW_S], times, totals)
    assert reported == pytest.approx(stop - begin, rel=0.02)


def test_the_lines_are_what_the_broker_said(produced):
    raw = produced[0]
    lines = [json.loads(line) for path in sorted(Path(raw).rglob("*.gz")) for line in _lines(path)]
    assert {line["kind"] for line in lines} == {str(Endpoint.KAFKA_OFFSETS)}
    ends = [
        sum(
            one["end"]
            for topic in json.loads(line["body"])["topics"]
            if topic["topic"] == "orders"
            for one in topic["partitions"]
        )
        for line in lines
    ]
    assert ends == [total for _, total in produced[1]]
    gone = next(topic for topic in json.loads(lines[0]["body"])["topics"] if topic["topic"] == "gone")
    assert (gone["partitions"], gone["error"]) == ([], "UNKNOWN_TOPIC_OR_PART")


def _lines(path: Path) -> list[str]:
    return gzip.decompress(path.read_bytes()).decode().splitlines()
