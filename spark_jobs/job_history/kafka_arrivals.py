"""What arrives in the topics of sources, from ``kafka_offsets`` lines, and its place in silver.observations.

The rate at which end offsets grow is what producers write: it goes on while a job is down, does not depend on what the
job commits, and is there for idle topics, too.  A source of several topics, of several Kafka clusters perhaps, has the
sum; when a partition of one of them is missing, nothing is told of that time rather than too little.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from include.flink.raw_format import Kind
from include.settings import Cluster
from include.tables import OBSERVATIONS
from include.utc import Interval
from spark_jobs.job_history.samples import LONGEST_GAP_WINDOWS, window_length_s, window_start
from spark_jobs.lake import date_hour_columns, rows_of

_BODY = "kafka STRING, topics ARRAY<STRUCT<topic: STRING, partitions: ARRAY<STRUCT<partition: INT, end: BIGINT>>>>"
_MAPPING = {"cluster": "STRING", "kafka": "STRING", "topic": "STRING", "job": "STRING", "source": "STRING"}
_TOPIC = ("cluster", "kafka", "topic")
_SOURCE = ("cluster", "job", "source")


def find_arrivals(events: DataFrame, clusters: Mapping[str, Cluster]) -> DataFrame | None:
    """Return ``cluster, job, source, window_start, window_s, arrival_per_s``; None when no cluster names topics.

    ``source`` is an operator's name or its vertex id, as the settings have it.

    Args:
        events: rows of bronze.job_events.
        clusters: the settings of the clusters.
    """
    mapping = [
        {
            "cluster": cluster,
            "kafka": kafka,
            "topic": topic,
            "job": key.partition("/")[0],
            "source": key.partition("/")[2],
        }
        for cluster, settings in clusters.items()
        for kafka, brokers in settings.kafka.items()
        for key, topics in brokers.topics.items()
        for topic in topics
    ]
    if not mapping:
        return None
    sources = rows_of(events.sparkSession, _MAPPING, mapping).distinct()
    rates = _rates(_ends(events).withColumn("window_s", window_length_s(clusters)))
    topics = sources.groupBy(*_SOURCE).agg(F.count(F.lit(1)).alias("topics"))
    joined = rates.join(F.broadcast(sources), list(_TOPIC))
    summed = joined.groupBy(*_SOURCE, "window_start", "window_s").agg(
        F.sum("per_s").alias("arrival_per_s"), F.count("per_s").alias("told")
    )
    whole = summed.join(F.broadcast(topics), list(_SOURCE)).where("told = topics")
    return whole.select(*_SOURCE, "window_start", "window_s", "arrival_per_s")


def add_arrivals(
    observations: DataFrame, arrivals: DataFrame | None, operators: DataFrame, hours: Interval
) -> DataFrame:
    """Take the arrival rate of a source as its target data rate, and add the windows in which its job was not measured.

    An added window has no samples, is disturbed, and tells nothing but the target data rate.

    Args:
        observations: rows of silver.observations.
        arrivals: from :func:`find_arrivals`.
        operators: ``cluster, job_id, vertex_id`` -> ``job, operator``.
        hours: those that are written.
    """
    if arrivals is None:
        return observations
    named = operators.select("cluster", "job", "vertex_id", "operator").distinct()
    is_meant = (F.col("a.source") == F.col("n.operator")) | (F.col("a.source") == F.col("n.vertex_id"))
    same = (F.col("a.cluster") == F.col("n.cluster")) & (F.col("a.job") == F.col("n.job")) & is_meant
    located = arrivals.alias("a").join(F.broadcast(named.alias("n")), same, "left")
    is_vertex_id = F.col("a.source").rlike("^[0-9a-f]{32}$")
    known = located.where(F.col("n.operator").isNotNull() | ~is_vertex_id).select(
        "a.cluster",
        "a.job",
        F.coalesce("n.operator", "a.source").alias("operator"),
        F.col("n.vertex_id").alias("arrival_vertex_id"),
        "a.window_start",
        F.col("a.window_s").alias("arrival_window_s"),
        "a.arrival_per_s",
    )
    in_hours = (F.col("window_start") >= F.lit(hours.start)) & (F.col("window_start") < F.lit(hours.end))
    # Of a job submitted again with other vertices, the two have one name: each window once.
    unique = known.where(in_hours).dropDuplicates(["cluster", "job", "operator", "window_start"])
    joined = observations.join(unique, ["cluster", "job", "operator", "window_start"], "full")
    is_added = F.col("window_s").isNull()
    filled = joined.withColumns(
        {
            "target_data_rate_per_s": F.coalesce("arrival_per_s", "target_data_rate_per_s"),
            "target_is_lower_bound": F.col("arrival_per_s").isNull() & F.col("target_is_lower_bound"),
            "vertex_id": F.coalesce("vertex_id", "arrival_vertex_id"),
            "window_s": F.coalesce("window_s", "arrival_window_s"),
            "is_source": F.when(is_added, True).otherwise(F.col("is_source")),
            "samples": F.when(is_added, 0).otherwise(F.col("samples")),
            "disturbed": F.when(is_added, True).otherwise(F.col("disturbed")),
        }
    )
    dated = dict(zip(("date", "hour"), date_hour_columns("window_start"), strict=True))
    return filled.drop("date", "hour").select("*", *dated.values()).select(*OBSERVATIONS.columns)


def _ends(events: DataFrame) -> DataFrame:
    """Return ``cluster, kafka, topic, observed_at, partition, end`` of every partition; null where it is not told."""
    body = F.from_json("body", _BODY)
    read = events.where(F.col("kind") == Kind.KAFKA_OFFSETS).select("cluster", "observed_at", body.alias("body"))
    topics = read.select("cluster", "observed_at", "body.kafka", F.explode("body.topics").alias("one"))
    return topics.select(
        "cluster", "kafka", F.col("one.topic").alias("topic"), "observed_at", F.explode("one.partitions").alias("part")
    ).select(*_TOPIC, "observed_at", "part.partition", "part.end")


def _rates(ends: DataFrame) -> DataFrame:
    """Return ``cluster, kafka, topic, window_start, window_s, per_s``: growth between polls that end in a window."""
    by_partition = Window.partitionBy(*_TOPIC, "partition").orderBy("observed_at")
    before = F.lag(F.struct("observed_at", "end")).over(by_partition)
    differing = ends.withColumn("before", before).withColumn("grown", F.col("end") - F.col("before.end"))
    elapsed_s = (F.unix_micros("observed_at") - F.unix_micros("before.observed_at")) / F.lit(1e6)
    # Of a topic that was made again the offsets fall; a poll that lacks a partition tells nothing of the topic.
    is_usable = _is_usable(elapsed_s)
    polls = differing.groupBy(*_TOPIC, "observed_at", "window_s").agg(
        F.every(F.coalesce(is_usable, F.lit(False))).alias("is_usable"),
        F.sum("grown").alias("grown"),
        F.max(elapsed_s).alias("elapsed_s"),
    )
    windows = polls.where("is_usable").withColumn("window_start", window_start("observed_at"))
    return windows.groupBy(*_TOPIC, "window_start", "window_s").agg(
        (F.sum("grown") / F.sum("elapsed_s")).alias("per_s")
    )


def _is_usable(elapsed_s: Column) -> Column:
    return (F.col("grown") >= 0) & (elapsed_s > 0) & (elapsed_s <= LONGEST_GAP_WINDOWS * F.col("window_s"))
