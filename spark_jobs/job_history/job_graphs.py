"""silver.job_graphs: each job's operators and edges as last seen in each hour; silver.jobs: its state."""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from include.flink.job_states import RUNNING
from include.tables import JOB_GRAPHS, JOBS
from spark_jobs.lake import date_hour_columns


def build_graphs(polls: DataFrame, plans: DataFrame) -> DataFrame:
    """Join the last ``job`` reply of every hour and job id with the plan in force at that time.

    ``rank`` tells those of one name in an hour (a resubmission) apart: the one seen last is 1, and stands in
    silver.job_graphs. A plan, polled about once an hour, holds until the next.
    """
    running = polls.where(F.col("state") == RUNNING)
    hourly = _last_of_hour(running, "job", "vertices", "operators").withColumnRenamed("seen", "seen_at")
    of_job = Window.partitionBy("cluster", "job_id").orderBy("date", "hour").rowsBetween(Window.unboundedPreceding, 0)
    joined = hourly.join(_last_of_hour(plans, "nodes").drop("seen"), ["cluster", "job_id", "date", "hour"], "full")
    held = joined.withColumn("nodes", F.last("nodes", ignorenulls=True).over(of_job))
    of_name = Window.partitionBy("cluster", "job", "date", "hour").orderBy(F.desc("seen_at"), "job_id")
    current = held.where("job IS NOT NULL AND nodes IS NOT NULL").withColumn("rank", F.row_number().over(of_name))
    deep = current.withColumn("depths", F.expr(_DEPTHS))
    vertices = deep.withColumn("node", F.explode(F.expr(_POSITIONED)))
    return _name_vertices(vertices).select(*JOB_GRAPHS.columns, "rank")


def build_jobs(polls: DataFrame, plans: DataFrame) -> DataFrame:
    """Return the rows of silver.jobs: of several ids of one name in an hour one that runs, else the one seen last."""
    hourly = _last_of_hour(polls, "job", "state", "job_type", "ended_at", "running_at")
    of_plan = plans.groupBy("cluster", "job_id").agg(F.max("plan_type").alias("plan_type"))
    typed = hourly.join(of_plan.hint("shuffle_hash"), ["cluster", "job_id"], "left")
    of_name = Window.partitionBy("cluster", "job", "date", "hour").orderBy(
        F.col("ended_at").isNotNull(), F.desc("seen"), F.desc("running_at"), "job_id"
    )
    current = typed.withColumn("rank", F.row_number().over(of_name)).where("rank = 1")
    named = current.withColumns({"job_type": F.coalesce("job_type", "plan_type"), "observed_at": F.col("seen")})
    return named.select(*JOBS.columns)


def add_partitions(graphs: DataFrame, partitions: DataFrame) -> DataFrame:
    """Return the graphs with the partitions that sources read: ``cluster, job, vertex_id, date, hour, partitions``."""
    reported = graphs.drop("partitions").join(partitions, ["cluster", "job", "vertex_id", "date", "hour"], "left")
    return reported.select(*JOB_GRAPHS.columns)


def find_sources(plans: DataFrame) -> DataFrame:
    """Return ``cluster, job_id, vertex_id, is_source, feeders`` (vertex ids) of every vertex that a plan shows."""
    nodes = (
        plans.select("cluster", "job_id", "nodes").distinct().select("cluster", "job_id", F.explode("nodes").alias("n"))
    )
    # A source has no `inputs` at all.
    return nodes.groupBy("cluster", "job_id", F.col("n.id").alias("vertex_id")).agg(
        F.max(F.coalesce(F.size("n.inputs"), F.lit(0)) <= 0).alias("is_source"),
        F.max(F.array_sort(F.array_distinct(F.coalesce("n.inputs.id", F.array())))).alias("feeders"),
    )


def _last_of_hour(replies: DataFrame, *columns: str) -> DataFrame:
    dated = replies.select("*", *date_hour_columns("observed_at"))
    last = F.max_by(F.struct("observed_at", *columns), "observed_at").alias("last")
    result = dated.groupBy("cluster", "job_id", "date", "hour").agg(last)
    return result.select(
        *("cluster", "job_id", "date", "hour", F.col("last.observed_at").alias("seen")),
        *(F.col(f"last.{column}") for column in columns),
    )


def _name_vertices(vertices: DataFrame) -> DataFrame:
    """Name the vertices as the last reply does; one that it does not name is left out."""
    result = F.filter("vertices", lambda vertex: vertex["id"] == F.col("node.id"))
    name_of = F.map_from_arrays("operators.vertex_id", "operators.operator")
    inputs = F.coalesce("node.inputs", F.array())
    named = vertices.withColumns({"name_of": name_of, "vertex": F.get(result, F.lit(0))}).where("vertex IS NOT NULL")
    return named.select(
        "cluster",
        "job",
        "job_id",
        F.col("name_of")[F.col("node.id")].alias("operator"),
        F.col("node.id").alias("vertex_id"),
        F.col("node.position").alias("position"),
        F.transform(inputs, lambda edge: F.col("name_of")[edge["id"]]).alias("upstream"),
        F.transform(inputs, lambda edge: edge["ship_strategy"]).alias("ship_strategies"),
        "vertex.parallelism",
        F.col("vertex.maxParallelism").alias("max_parallelism"),
        F.lit(None).cast("int").alias("partitions"),
        F.col("vertex.status").alias("status"),
        F.col("vertex.slotSharingGroupId").alias("slot_sharing_group"),
        F.col("seen_at").alias("observed_at"),
        "date",
        "hour",
        "rank",
    )


# Depths grow by relaxation: after as many rounds as there are nodes, every node stands one deeper than the deepest node
# that feeds it. Sorted by depth, every upstream stands before what it feeds; ties go by id, as the order in Flink's
# replies is not stable.
_DEPTHS = """
aggregate(
  nodes,
  map_from_entries(transform(nodes, n -> struct(n.id, 0))),
  (depths, round) -> map_from_entries(transform(nodes, n -> struct(
    n.id,
    coalesce(array_max(transform(n.inputs, i -> least(coalesce(depths[i.id], -1) + 1, size(nodes)))), 0)
  )))
)
"""
_SORTED = "array_sort(transform(nodes, n -> struct(depths[n.id] AS depth, n.id AS id, n.inputs AS inputs)))"
_POSITIONED = f"transform({_SORTED}, (n, i) -> struct(n.id AS id, n.inputs AS inputs, i AS position))"
