"""What arrives in the topics of sources, from ``kafka_offsets`` lines, and its place in silver.observations.

The rate at which end offsets grow is what producers write: it goes on while a job is down, does not depend on what the
job commits, and is there for idle topics, too.  A source of several topics, of several Kafka clusters perhaps, has the
sum; when a partition of one of them is missing, nothing is told of that time rather than too little.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from include.domain.reply_limits import HEX_ID
from include.flink.raw_format import Endpoint
from include.settings import Cluster
from include.tables import OBSERVATIONS
from include.utc import Interval
from models.observing.samples import LONGEST_GAP_WINDOWS
from spark_jobs.job_history.operator_names import is_named_at
from spark_jobs.job_history.sample_placement import window_length_s, window_start
from spark_jobs.job_history.topic_sources import TopicSources
from spark_jobs.lake import date_hour_columns
from spark_jobs.raw_parsing.event_bodies import select_bodies

_BODY = "kafka STRING, topics ARRAY<STRUCT<topic: STRING, partitions: ARRAY<STRUCT<partition: INT, end: BIGINT>>>>"
_TOPIC = ("cluster", "kafka", "topic")
_SOURCE = ("cluster", "job", "source")


def read_ends(events: DataFrame) -> DataFrame:
    """Return ``cluster, kafka, topic, observed_at, partition, end`` of every partition; null where it is not told."""
    body = F.from_json("body", _BODY)
    read = select_bodies(events, Endpoint.KAFKA_OFFSETS).select("cluster", "observed_at", body.alias("body"))
    topics = read.select("cluster", "observed_at", "body.kafka", F.explode("body.topics").alias("one"))
    return topics.select(
        "cluster", "kafka", F.col("one.topic").alias("topic"), "observed_at", F.explode("one.partitions").alias("part")
    ).select(*_TOPIC, "observed_at", "part.partition", "part.end")


def find_arrivals(
    ends: DataFrame | None, sources: TopicSources | None, clusters: Mapping[str, Cluster]
) -> DataFrame | None:
    """Return ``cluster, job, source, is_known, window_start, window_s, arrival_per_s``; None when no topics are named.

    ``source`` is an operator's name or its vertex id, as the settings have it.
    """
    if sources is None or ends is None:
        return None
    rates = _rates(
        ends.withColumn("window_s", window_length_s(clusters)),
        longest_gap_s=LONGEST_GAP_WINDOWS * max(cluster.window_s for cluster in clusters.values()),
    )
    topics = sources.rows.groupBy(*_SOURCE, "is_known").agg(F.count(F.lit(1)).alias("topics"))
    joined = rates.join(F.broadcast(sources.rows), list(_TOPIC))
    summed = joined.groupBy(*_SOURCE, "window_start", "window_s").agg(
        F.sum("per_s").alias("arrival_per_s"), F.count("per_s").alias("told")
    )
    whole = summed.join(F.broadcast(topics), list(_SOURCE)).where("told = topics")
    return whole.select(*_SOURCE, "is_known", "window_start", "window_s", "arrival_per_s")


def count_partitions(ends: DataFrame | None, sources: TopicSources | None) -> DataFrame | None:
    """Return ``cluster, job, vertex_id, date, hour, partitions`` of sources, by all lines of each hour.

    The partitions of all topics of a source together, those without a leader and those that a line lacks included; an
    hour in which a topic was not told has no row.  None when no topics are named.
    """
    if sources is None or ends is None:
        return None
    dated = ends.select("*", *date_hour_columns("observed_at"))
    counted = dated.groupBy(*_TOPIC, "date", "hour").agg(F.countDistinct("partition").alias("partitions"))
    topics = sources.rows.groupBy(*_SOURCE).agg(F.count(F.lit(1)).alias("topics"))
    summed = (
        counted.join(F.broadcast(sources.rows), list(_TOPIC))
        .groupBy(*_SOURCE, "date", "hour")
        .agg(F.sum("partitions").cast("int").alias("partitions"), F.count(F.lit(1)).alias("told"))
    )
    whole = summed.join(F.broadcast(topics), list(_SOURCE)).where("told = topics")
    named = sources.operators.select("cluster", "job", "vertex_id", "operator").distinct()
    is_meant = (F.col("a.source") == F.col("n.operator")) | (F.col("a.source") == F.col("n.vertex_id"))
    same = (F.col("a.cluster") == F.col("n.cluster")) & (F.col("a.job") == F.col("n.job")) & is_meant
    result = whole.alias("a").join(F.broadcast(named.alias("n")), same)
    return result.groupBy("a.cluster", "a.job", "n.vertex_id", "date", "hour").agg(
        F.max("partitions").alias("partitions")
    )


def add_arrivals(
    observations: DataFrame, arrivals: DataFrame | None, sources: TopicSources | None, hours: Interval
) -> DataFrame:
    """Take the arrival rate of a source as its target data rate, and add the windows in which its job was not measured.

    An added window has no samples, is disturbed, and tells nothing but the target data rate.
    """
    if arrivals is None or sources is None:
        return observations
    named = sources.operators
    is_meant = (F.col("a.source") == F.col("n.operator")) | (F.col("a.source") == F.col("n.vertex_id"))
    is_same_job = (F.col("a.cluster") == F.col("n.cluster")) & (F.col("a.job") == F.col("n.job"))
    same = is_same_job & is_meant & is_named_at(F.col("a.window_start"))
    located = arrivals.alias("a").join(F.broadcast(named.alias("n")), same, "left")
    is_vertex_id = F.col("a.source").rlike(HEX_ID)
    # Of a cluster of which no job was seen yet, the name in the settings is all there is.
    is_located = F.col("n.operator").isNotNull() | (~F.col("a.is_known") & ~is_vertex_id)
    known = located.where(is_located).select(
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
    unique = (
        known.where(in_hours)
        .groupBy("cluster", "job", "operator", "window_start")
        .agg(*[F.max(column).alias(column) for column in ("arrival_vertex_id", "arrival_window_s", "arrival_per_s")])
    )
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


def _rates(ends: DataFrame, longest_gap_s: int) -> DataFrame:
    """Return ``cluster, kafka, topic, window_start, window_s, per_s``: growth between polls that end in a window.

    Each partition's growth counts over its own time, since it was told last.  A poll tells nothing of the topic when it
    lacks a partition that was told not long ago (of topics that were made again the others go on), when a partition is
    new, so that nobody knows when it came, or when an offset fell: the topic was made again.
    """
    by_partition = Window.partitionBy(*_TOPIC, "partition").orderBy("observed_at")
    earlier = by_partition.rowsBetween(Window.unboundedPreceding, -1)
    reported = F.when(F.col("end").isNotNull(), F.struct("observed_at", "end"))
    differing = ends.withColumn("before", F.last(reported, ignorenulls=True).over(earlier)).withColumns(
        {
            "grown": F.col("end") - F.col("before.end"),
            "elapsed_s": (F.unix_micros("observed_at") - F.unix_micros("before.observed_at")) / F.lit(1e6),
        }
    )
    polls = differing.groupBy(*_TOPIC, "observed_at", "window_s").agg(
        F.every(F.coalesce(_is_usable(F.col("elapsed_s")), F.lit(False))).alias("is_usable"),
        F.sum(F.col("grown") / F.col("elapsed_s")).alias("per_s"),
        F.min("elapsed_s").alias("elapsed_s"),
        F.collect_set("partition").alias("told"),
    )
    at_micros = F.unix_micros("observed_at")
    lately = Window.partitionBy(*_TOPIC).orderBy(at_micros).rangeBetween(-1_000_000 * longest_gap_s, -1)
    gap_micros = 1_000_000 * LONGEST_GAP_WINDOWS * F.col("window_s")
    recent = F.filter("polled", lambda one: one["at_micros"] >= at_micros - gap_micros)
    known = F.flatten(F.transform(recent, lambda one: one["told"]))
    whole = polls.withColumn(
        "polled", F.collect_list(F.struct(at_micros.alias("at_micros"), "told")).over(lately)
    ).where(F.col("is_usable") & (F.size(F.array_except(known, "told")) == 0))
    windows = whole.withColumn("window_start", window_start("observed_at"))
    rate = F.sum(F.col("per_s") * F.col("elapsed_s")) / F.sum("elapsed_s")
    return windows.groupBy(*_TOPIC, "window_start", "window_s").agg(rate.alias("per_s"))


def _is_usable(elapsed_s: Column) -> Column:
    return (F.col("grown") >= 0) & (elapsed_s > 0) & (elapsed_s <= LONGEST_GAP_WINDOWS * F.col("window_s"))
