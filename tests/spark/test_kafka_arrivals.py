"""What arrives in Kafka as demand of sources: several topics and clusters, missing partitions, a job that is down.

One ingestion for all situations, each of which is a cluster of its own.
"""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from pyspark.sql import functions as F

from include.tables import JOB_GRAPHS, OBSERVATIONS
from spark_jobs.plan_inputs.windows_of_jobs import read_observed_until
from tests.spark.ingested_lake import IngestedLake
from tests.spark.kafka_topics import HOUR, SITUATIONS, START
from tests.spark.raw_builders import SINK, SOURCE, VERTEX_IDS, WORK
from tests.spark.situations import Situations

pytestmark = pytest.mark.spark


@dataclass(frozen=True)
class Ingested(IngestedLake):
    """What one run made of all situations."""

    def targets(self, cluster: str, operator: str = SOURCE) -> dict[int, float | None]:
        """Minute -> target data rate."""
        rows = self.select(OBSERVATIONS, cluster).where(F.col("operator") == operator).collect()
        return {row["window_start"].minute: row["target_data_rate_per_s"] for row in rows}


@pytest.fixture(scope="module")
def ingested(situations: Situations) -> Ingested:
    return Ingested(situations.lake, situations.summary)


def test_what_arrives_stands_in_the_place_of_the_backlogs_growth(ingested: Ingested) -> None:
    assert {cluster: reasons for cluster in SITUATIONS if (reasons := ingested.reasons(cluster))} == {}
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
    of_topics = ingested.lake.read(OBSERVATIONS).where(F.col("cluster").isin(*SITUATIONS))
    assert of_topics.where("samples > 0").count() == 3 * (12 + 12 + 4 + 12 + 24 + 12)
    result = ingested.targets("down")
    assert result.keys() == {*range(0, 60, 5)}
    assert {result[minute] for minute in range(5, 60, 5)} == {200.0}
    rows = observations.where("samples = 0").collect()
    assert {row["window_start"].minute for row in rows} == {*range(20, 60, 5)}
    for row in rows:
        assert (row["disturbed"], row["is_source"], row["parallelism"], row["busy_share"]) == (True, True, None, None)
        assert row["vertex_id"] == VERTEX_IDS[SOURCE]
    assert ingested.quality("down")["missing_windows"] == 0
    observed = read_observed_until(ingested.lake.few(OBSERVATIONS), START + HOUR)["down", "orders"]
    assert observed["observed_until_s"] % 3600 == 20 * 60  # nothing of the job itself was seen since


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
