"""What arrives in Kafka as demand of sources: several topics and clusters, missing partitions, a job that is down.

One ingestion for all situations, each of which is a cluster of its own.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from include.flink.raw_format import Kind
from include.settings import Cluster, Settings
from include.settings.sources import Kafka
from include.stages import Stage, StageRequest
from include.tables import JOB_GRAPHS, OBSERVATIONS
from spark_jobs.ingest import stage as ingest
from spark_jobs.job_inputs.newest_rows import observed_until
from spark_jobs.lake import Lake
from tests.spark.ingested_lake import IngestedLake
from tests.spark.raw_builders import JOB_ID, SINK, SOURCE, VERTEX_IDS, WORK, PolledJob, record, utc, write

pytestmark = pytest.mark.spark
START = utc("2026-11-20T10:00")
HOUR = timedelta(hours=1)
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
    return record(at, Kind.KAFKA_OFFSETS, {"kafka": kafka, "topics": topics}, cluster=cluster, job_id=None)


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
        lines.append(record(at, Kind.KAFKA_OFFSETS, body, cluster=cluster, job_id=None))
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


@dataclass(frozen=True)
class Ingested(IngestedLake):
    """What one run made of all situations."""

    def targets(self, cluster: str, operator: str = SOURCE) -> dict[int, float | None]:
        """Minute -> target data rate."""
        rows = self.select(OBSERVATIONS, cluster).where(F.col("operator") == operator).collect()
        return {row["window_start"].minute: row["target_data_rate_per_s"] for row in rows}


@pytest.fixture(scope="module")
def ingested(spark: SparkSession, shared_settings: Settings, shared_lake: Lake) -> Ingested:
    situations = {cluster: make(cluster) for cluster, make in SITUATIONS.items()}
    clusters = {cluster: situation.settings() for cluster, situation in situations.items()}
    settings = shared_settings.model_copy(update={"clusters": clusters})
    for cluster, situation in situations.items():
        write(Path(settings.paths.raw), START, situation.lines, cluster=cluster)
    summary = ingest.run(spark, settings, StageRequest(Stage.INGEST, START + HOUR, START, START + HOUR))
    return Ingested(shared_lake, summary)


def test_what_arrives_stands_in_the_place_of_the_backlogs_growth(ingested: Ingested) -> None:
    assert ingested.summary["quarantined"] == 0
    quality = ingested.quality("arriving")
    assert (quality["quarantined"], quality["missing_windows"]) == (0, 0)
    result = ingested.targets("arriving")
    assert result.pop(0) is None  # no poll before: nothing is known of what arrived
    assert set(result.values()) == {130.0}
    of_work = ingested.targets("arriving", WORK)
    assert of_work.keys() == {*range(0, 60, 5)}
    assert set(of_work.values()) == {None}


def test_a_source_is_named_by_its_vertex_id_as_well(ingested: Ingested) -> None:
    result = ingested.targets("by_vertex_id")
    assert result[30] == pytest.approx(100.0)
    assert len(result) == 12


def test_demand_goes_on_while_the_job_is_down(ingested: Ingested) -> None:
    """Windows after the job was last seen have a demand, no samples, and hide no missing window."""
    observations = ingested.select(OBSERVATIONS, "down")
    assert observations.where("samples > 0").count() == 3 * 4
    measured = ingested.lake.read(OBSERVATIONS).where("samples > 0").count()
    assert ingested.summary["observations"] == measured == 3 * (12 + 12 + 4 + 12 + 24 + 12)
    result = ingested.targets("down")
    assert result.keys() == {*range(0, 60, 5)}
    assert {result[minute] for minute in range(5, 60, 5)} == {200.0}
    rows = observations.where("samples = 0").collect()
    assert {row["window_start"].minute for row in rows} == {*range(20, 60, 5)}
    for row in rows:
        assert (row["disturbed"], row["is_source"], row["parallelism"], row["busy_share"]) == (True, True, None, None)
        assert row["vertex_id"] == VERTEX_IDS[SOURCE]
    assert ingested.quality("down")["missing_windows"] == 0
    (observed,) = observed_until(observations, START + HOUR).collect()
    assert observed["observed_until"].minute == 20  # nothing of the job itself was seen since


def test_several_topics_and_kafka_clusters_are_summed_and_partial_is_not_told(ingested: Ingested) -> None:
    result = ingested.targets("several")
    whole = (6_000 + 600 + 1_500) / 300
    assert result[5] == result[50] == pytest.approx(whole)
    for minute in (25, 40):  # without one of the parts the job's own figures stand
        assert result[minute] == pytest.approx(100.0)
    assert result[30] == result[35] == result[45] == pytest.approx(whole)  # at 10:30 one grew for ten minutes


def test_an_idle_topic_is_a_demand_of_zero(ingested: Ingested) -> None:
    result = ingested.targets("idle")
    assert set(result.values()) == {0.0}
    assert len(result) == 11


def test_a_job_with_a_slash_in_its_name_has_its_own_arrivals_and_no_other_job_comes(ingested: Ingested) -> None:
    observations = ingested.select(OBSERVATIONS, "slashed")
    rows = observations.where("is_source").select("job", "operator", "window_start", "target_data_rate_per_s").collect()
    assert {(row["job"], row["operator"]) for row in rows} == {("orders", SOURCE), ("team-a/orders", SOURCE)}
    reported = {(row["job"], row["window_start"].minute): row["target_data_rate_per_s"] for row in rows}
    for job in ("orders", "team-a/orders"):
        assert {reported[job, minute] for minute in range(5, 60, 5)} == {400.0}


def test_a_poll_without_a_known_partition_tells_nothing_and_the_next_one_is_whole(ingested: Ingested) -> None:
    result = ingested.targets("lacking")
    assert result[25] == pytest.approx(100.0)  # the job's own figure
    assert result[20] == result[30] == result[35] == pytest.approx(300.0)


def test_a_partition_counts_from_when_it_came(ingested: Ingested) -> None:
    """Of the poll that shows it first nobody knows since when its records came."""
    result = ingested.targets("lacking")
    assert (result[40], result[45], result[50]) == (pytest.approx(300.0), pytest.approx(100.0), pytest.approx(400.0))


def test_the_partitions_of_a_source_stand_in_its_graph(ingested: Ingested) -> None:
    def partitions(cluster: str, job: str = "orders") -> dict[str, int | None]:
        rows = ingested.select(JOB_GRAPHS, cluster).where(F.col("job") == job).collect()
        return {row["operator"]: row["partitions"] for row in rows}

    assert partitions("lacking") == {SOURCE: 3, WORK: None, SINK: None}
    assert partitions("several")[SOURCE] == 2 + 1 + 1
    assert partitions("by_vertex_id")[SOURCE] == 1
    assert partitions("slashed", "team-a/orders")[SOURCE] == 2
