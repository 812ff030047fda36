"""The names by which every table knows jobs and operators, unique where Flink's are not.

The names of operators are those of :func:`models.polling.job_layout.name_operators`.
"""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from include.flink.job_states import ENDING_STATES

_SHORT = 8  # digits of an id that tell namesakes apart
_JOB_HOUR = ("cluster", "job", "job_hour")


def operators_of(vertices: Column) -> Column:
    """Return the operators of a ``job`` reply as ``ARRAY<STRUCT<vertex_id, parallelism, operator>>``, sorted by id.

    An operator has the vertex's name; where that is missing or several bear it, a piece of the id is appended, and the
    whole id where even that is not unique.
    """
    names = vertices.getField("name")
    are_own = F.size(F.array_distinct(F.array_remove(F.array_compact(names), ""))) == F.size(names)  # nearly always
    plain = F.transform(vertices, lambda v: _operator(v["id"], v["parallelism"], v["name"]))
    return F.sort_array(F.when(are_own, plain).otherwise(_tell_apart(vertices)))


def _operator(vertex_id: Column, parallelism: Column, name: Column) -> Column:
    return F.struct(vertex_id.alias("vertex_id"), parallelism.alias("parallelism"), name.alias("operator"))


def _tell_apart(vertices: Column) -> Column:
    named = F.transform(
        vertices,
        lambda v: F.struct(
            v["id"].alias("vertex_id"),
            v["parallelism"].alias("parallelism"),
            F.coalesce(v["name"], F.lit("")).alias("name"),
        ),
    )
    short = _where_alike(
        named, lambda v: v["name"], lambda v: _with_id(v["name"], F.left(v["vertex_id"], F.lit(_SHORT)))
    )
    whole = _where_alike(short, lambda v: v["operator"], lambda v: _with_id(v["name"], v["vertex_id"]))
    texts = whole.getField("operator")
    every = F.transform(named, lambda v: _entry(v, _with_id(v["name"], v["vertex_id"])))
    chosen = F.when(F.size(F.array_distinct(texts)) == F.size(texts), whole).otherwise(every)
    return F.transform(chosen, lambda v: _operator(v["vertex_id"], v["parallelism"], v["operator"]))


def _where_alike(entries: Column, text: Callable[[Column], Column], longer: Callable[[Column], Column]) -> Column:
    """Give every entry its text as ``operator``, a longer one where it is empty or another entry has the same."""
    texts = F.transform(entries, text)

    def choose(v: Column) -> Column:
        is_own = (text(v) != "") & (F.size(F.filter(texts, lambda other: other == text(v))) == 1)
        return _entry(v, F.when(is_own, text(v)).otherwise(longer(v)))

    return F.transform(entries, choose)


def _entry(v: Column, operator: Column) -> Column:
    retained = (v[name].alias(name) for name in ("vertex_id", "parallelism", "name"))
    return F.struct(*retained, operator.alias("operator"))


def _with_id(name: Column, piece: Column) -> Column:
    return F.ltrim(F.concat(name, F.lit(" ("), piece, F.lit(")")))


def name_jobs(polls: DataFrame) -> DataFrame:
    """Tell jobs of one name on a cluster apart that run side by side: ``job`` becomes ``job (id)`` for each of them.

    They do when, within an hour, each was polled between two polls of the other.  A job that follows another of its
    name keeps it.  An hour at a time, so that the names do not depend on which hours are looked at together.
    """
    dated = polls.withColumn("job_hour", F.date_trunc("hour", "observed_at"))
    alive = dated.where(~F.col("state").isin(*ENDING_STATES))
    spans = alive.groupBy(*_JOB_HOUR, "job_id").agg(F.min("observed_at").alias("a"), F.max("observed_at").alias("b"))
    together = spans.groupBy(*_JOB_HOUR).agg(F.collect_list(F.struct("job_id", "a", "b")).alias("spans"))
    meets = F.filter(
        "spans",
        lambda one: F.exists(
            "spans",
            lambda other: (one["job_id"] != other["job_id"]) & (one["a"] < other["b"]) & (other["a"] < one["b"]),
        ),
    )
    several = together.where(F.size("spans") > 1).select(*_JOB_HOUR, meets.getField("job_id").alias("namesakes"))
    result = dated.join(F.broadcast(several), list(_JOB_HOUR), "left")
    alike = F.size(F.filter("namesakes", lambda one: F.left(one, F.lit(_SHORT)) == F.left("job_id", F.lit(_SHORT))))
    piece = F.when(alike > 1, F.col("job_id")).otherwise(F.left("job_id", F.lit(_SHORT)))
    is_namesake = F.coalesce(F.array_contains("namesakes", F.col("job_id")), F.lit(False))
    named = F.when(is_namesake, _with_id(F.col("job"), piece)).otherwise(F.col("job"))
    return result.withColumn("job", named).drop("job_hour", "namesakes")


def name_operators(polls: DataFrame) -> DataFrame:
    """Return ``cluster, job_id, vertex_id`` -> ``job, operator``, the names that tables are keyed by, in periods.

    A reply's names hold until the next one: ``named_from`` and ``named_until`` (exclusive) are null where no other
    names were seen before or after.
    """
    by_job = Window.partitionBy("cluster", "job_id").orderBy("observed_at", "job")
    shown = F.struct("job", "operators.vertex_id", "operators.operator")
    named = polls.where(F.size("operators") > 0).withColumns({"shown": shown, "before": F.lag(shown).over(by_job)})
    changed = named.where("before IS NULL OR before <> shown")
    periods = changed.withColumns(
        {
            "named_from": F.when(F.col("before").isNotNull(), F.col("observed_at")),
            "named_until": F.lead("observed_at").over(by_job),
        }
    )
    vertices = periods.withColumn("vertex", F.explode("operators"))
    return vertices.select(
        "cluster", "job", "job_id", "vertex.vertex_id", "vertex.operator", "named_from", "named_until"
    )


def is_named_at(timestamp: Column) -> Column:
    """Whether a name of :func:`name_operators` holds at a time."""
    return (F.col("named_from").isNull() | (timestamp >= F.col("named_from"))) & (
        F.col("named_until").isNull() | (timestamp < F.col("named_until"))
    )
