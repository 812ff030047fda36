"""What arrives in Kafka as demand of sources: several topics and clusters, missing partitions, a job that is down."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from include.flink.raw_format import Kind
from include.settings import Cluster, Settings
from include.settings.sources import Kafka
from include.stages import Stage, StageRequest
from include.tables import OBSERVATIONS, QUALITY
from spark_jobs.ingest import stage as ingest
from spark_jobs.job_inputs.newest_rows import observed_until
from tests.spark.raw_builders import SOURCE, VERTEX_IDS, WORK, PolledJob, record, utc, write

pytestmark = pytest.mark.spark
START = utc("2026-11-20T10:00")
HOUR = timedelta(hours=1)
STEP = timedelta(minutes=5)
CLUSTER = "c5m"


def with_topics(settings: Settings, **kafka: dict[str, tuple[str, ...]]) -> Settings:
    sections = {name: Kafka(bootstrap_servers="b:9092", topics=topics) for name, topics in kafka.items()}
    return settings.model_copy(update={"clusters": {CLUSTER: Cluster(window_s=300, kafka=sections)}})


def offsets(at: datetime, kafka: str, ends: dict[str, list[int | None]]) -> str:
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
    return record(at, Kind.KAFKA_OFFSETS, {"kafka": kafka, "topics": topics}, cluster=CLUSTER, job_id=None)


def polls(kafka: str, ends, *, shift_ms: int = 0) -> list[str]:
    """One line every 5 minutes, 20 s before the end of each; ``ends`` of the step's number."""
    ats = [START + (step + 1) * STEP - timedelta(seconds=20) + timedelta(milliseconds=shift_ms) for step in range(12)]
    return [offsets(at, kafka, ends(step)) for step, at in enumerate(ats)]


def run(spark, settings: Settings, lines: list[str]) -> dict[str, object]:
    write(Path(settings.paths.raw), START, lines, cluster=CLUSTER)
    return ingest.run(spark, settings, StageRequest(Stage.INGEST, START + HOUR, START, START + HOUR))


def targets(lake, operator: str = SOURCE) -> dict[int, float | None]:
    """Minute -> target data rate."""
    rows = lake.read(OBSERVATIONS).where(f"operator = '{operator}'").collect()
    return {row["window_start"].minute: row["target_data_rate_per_s"] for row in rows}


def test_what_arrives_stands_in_the_place_of_the_backlogs_growth(spark, settings, lake):
    """100 records/s are emitted, 130 arrive: 300 s x 130 = 39,000 a step over two partitions."""
    settings = with_topics(settings, main={f"orders/{SOURCE}": ("orders",)})
    job = PolledJob(running_at=START - HOUR).hour(START)
    counts = run(spark, settings, job + polls("main", lambda step: {"orders": [19_500 * step, 19_500 * step]}))
    assert (counts["quarantined"], counts["missing_windows"]) == (0, 0)
    found = targets(lake)
    assert found.pop(0) is None  # no poll before: nothing is known of what arrived
    assert set(found.values()) == {130.0}
    assert targets(lake, WORK).keys() == {*range(0, 60, 5)}
    assert set(targets(lake, WORK).values()) == {None}


def test_a_source_is_named_by_its_vertex_id_as_well(spark, settings, lake):
    settings = with_topics(settings, main={f"orders/{VERTEX_IDS[SOURCE]}": ("orders",)})
    job = PolledJob(running_at=START - HOUR).hour(START)
    run(spark, settings, job + polls("main", lambda step: {"orders": [30_000 * step]}))
    assert targets(lake)[30] == pytest.approx(100.0)
    assert len(targets(lake)) == 12


def test_demand_goes_on_while_the_job_is_down(spark, settings, lake):
    """The job is seen until 10:20 only: windows after that have a demand, no samples, and hide no missing window."""
    settings = with_topics(settings, main={f"orders/{SOURCE}": ("orders",)})
    down_at = START + timedelta(minutes=20)
    job = [
        line
        for line in PolledJob(running_at=START - HOUR).hour(START)
        if json.loads(line)["observed_at_ms"] < down_at.timestamp() * 1000
    ]
    counts = run(spark, settings, job + polls("main", lambda step: {"orders": [60_000 * step]}))
    assert counts["observations"] == 3 * 4
    found = targets(lake)
    assert found.keys() == {*range(0, 60, 5)}
    assert {found[minute] for minute in range(5, 60, 5)} == {200.0}
    rows = lake.read(OBSERVATIONS).where("samples = 0").collect()
    assert {row["window_start"].minute for row in rows} == {*range(20, 60, 5)}
    for row in rows:
        assert (row["disturbed"], row["is_source"], row["parallelism"], row["busy_share"]) == (True, True, None, None)
        assert row["vertex_id"] == VERTEX_IDS[SOURCE]
    assert lake.read(QUALITY).first()["missing_windows"] == 0
    (seen,) = observed_until(lake.read(OBSERVATIONS), START + HOUR).collect()
    assert seen["observed_until"].minute == 20  # nothing of the job itself was seen since


def test_several_topics_and_kafka_clusters_are_summed_and_partial_is_not_told(spark, settings, lake):
    settings = with_topics(
        settings, near={f"orders/{SOURCE}": ("orders", "returns")}, far={f"orders/{SOURCE}": ("orders",)}
    )
    job = PolledJob(running_at=START - HOUR).hour(START)

    def near(step):  # from 10:25 to 10:30 a partition has no leader
        return {"orders": [3_000 * step, None if step == 5 else 3_000 * step], "returns": [600 * step]}

    def far(step):  # the topic is made again at 10:40
        return {"orders": [1_500 * (step if step < 8 else step - 8)]}

    run(spark, settings, job + polls("near", near) + polls("far", far, shift_ms=1))
    found = targets(lake)
    whole = (6_000 + 600 + 1_500) / 300
    assert found[5] == found[50] == pytest.approx(whole)
    for minute in (25, 30, 40):  # without one of the parts the job's own figures stand
        assert found[minute] == pytest.approx(100.0)
    assert found[35] == found[45] == pytest.approx(whole)


def test_an_idle_topic_is_a_demand_of_zero(spark, settings, lake):
    settings = with_topics(settings, main={f"orders/{SOURCE}": ("orders",)})
    run(spark, settings, polls("main", lambda step: {"orders": [7, 7, 7]}))  # the job was never seen
    assert set(targets(lake).values()) == {0.0}
    assert len(targets(lake)) == 11
