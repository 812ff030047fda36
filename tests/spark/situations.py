"""One ingestion of bad input, topics, deployments and rescales: each case is a cluster, and harms no other."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession

from include.settings import Cluster, Settings
from include.stage_names import Stage
from include.stage_request import StageRequest
from spark_jobs.ingest import stage as ingest
from spark_jobs.lake import Lake
from tests.spark.deployments import HOURS, write_deployments
from tests.spark.hostile_input import write_hostile_input
from tests.spark.ingested_lake import IngestedLake
from tests.spark.kafka_topics import write_topics
from tests.spark.raw_builders import HOUR, START
from tests.spark.told_rescales import write_rescales


@dataclass(frozen=True)
class Situations(IngestedLake):
    """The lake after one run over all of them."""

    settings: Settings


def ingest_situations(spark: SparkSession, settings: Settings) -> Situations:
    """Write and ingest them below the paths of ``settings``."""
    raw, end = Path(settings.paths.raw), START + HOURS * HOUR
    clusters: dict[str, Cluster] = {}
    for write_raw in (write_hostile_input, write_deployments, write_topics, write_rescales):
        clusters |= write_raw(raw)
    settings = settings.model_copy(update={"clusters": clusters})
    summary = ingest.run(spark, settings, StageRequest(Stage.INGEST, end, START, end))
    return Situations(Lake(spark, settings.paths.lake), summary, settings)
