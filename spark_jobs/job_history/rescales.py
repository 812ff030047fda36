"""silver.rescales: each rescale and restart found in the data, with its downtime and its catch-up.

A job that stopped and runs again bears a new RUNNING time in its ``job`` replies; Flink seldom shows the stop itself.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from include.domain.finished_operators import RESTORING
from include.settings import Ingest, Settings
from include.tables import RESCALES
from models.observing.samples import LONGEST_GAP_WINDOWS
from spark_jobs.job_history.samples import window_length_s
from spark_jobs.lake import date_hour_columns
from spark_jobs.raw_parsing.reply_schema import RUNNING

_EVENT_KEY = ("cluster", "job", "started_at")
# Replies about metrics may be a second old: right after a restart they still show the tasks that are gone.
_STALE_REPLY_S = 2.0
# Windows before the stop over which the load is averaged.
_LOAD_WINDOWS = 2
# A job that came to run this shortly before its first reply started then.
_FRESH_START_S = 60
# Windows after a job runs again over which the load is averaged; the first difference of its counters needs a second.
_LOAD_AFTER_WINDOWS = 2
# The replies about the sources of a job, at one poll of it, come within so long.
_ROUND_S = 5.0
_EFFECTS = (
    "caught_up_at",
    "unseen_s",
    "emitted_records",
    "pending_records",
    "pending_before_records",
    "load_per_s",
    "load_after_per_s",
    "source_load_per_s",
)
EARLIEST = datetime(1970, 1, 1, tzinfo=UTC)


def build_rescales(events: DataFrame, sources: DataFrame, earlier: DataFrame, rules: Ingest) -> DataFrame:
    """Return the rows of silver.rescales of events that came to an end.

    Args:
        events: from :func:`spark_jobs.job_history.restarts.find_stops`.
        sources: from :func:`spark_jobs.job_history.samples.select_source_samples`, of the hours that this run looks at.
        earlier: rows of silver.rescales already there, for events whose first hours this run no longer looks at: what
            was found of them stands, what was missing (a catch-up that ended after their hour) is filled in.
        rules: the settings of ingestion.
    """
    result = _with_effects(events, sources, rules)
    retained = earlier.select(*_EVENT_KEY, *[F.col(c).alias(f"earlier_{c}") for c in _EFFECTS])
    known = result.join(F.broadcast(retained), list(_EVENT_KEY), "left")
    completed = known.withColumns({c: F.coalesce(f"earlier_{c}", c) for c in _EFFECTS}).withColumns(_durations())
    named = completed.withColumns(
        {f"parallelism_{side}": _by_operator(f"vector_{side}") for side in ("before", "after")}
    )
    return named.select("*", *date_hour_columns("started_at")).select(*RESCALES.columns)


def find_job_starts(polls: DataFrame) -> DataFrame:
    """Return the first start of each job seen, as an event from its submission until it ran.

    Only a job that had not run for long when it was first polled has one: the others started before the data do.
    """
    first = polls.where("running_at IS NOT NULL").groupBy("cluster", "job_id")
    started = first.agg(F.min("running_at").alias("ended_at"), F.min("observed_at").alias("polled_at"))
    fresh = F.unix_seconds("polled_at") - F.unix_seconds("ended_at") <= _FRESH_START_S
    return started.where(fresh).select("cluster", "job_id", F.col("ended_at").alias("started_at"), "ended_at")


def find_restores(polls: DataFrame) -> DataFrame:
    """Return when a running job's tasks did not work yet, as events that last until the next reply."""
    by_job = Window.partitionBy("cluster", "job_id").orderBy("observed_at")
    is_restoring = F.exists("vertices", lambda vertex: vertex["status"].isin(*sorted(RESTORING)))
    shown = polls.select("cluster", "job_id", "observed_at", "state", is_restoring.alias("is_restoring"))
    followed = shown.withColumn("ended_at", F.coalesce(F.lead("observed_at").over(by_job), "observed_at"))
    restoring = followed.where((F.col("state") == RUNNING) & F.col("is_restoring"))
    return restoring.select("cluster", "job_id", F.col("observed_at").alias("started_at"), "ended_at")


def find_unsettled_windows(
    stops: DataFrame, polls: DataFrame, settings: Settings, horizon: datetime, since: datetime = EARLIEST
) -> DataFrame:
    """Return ``cluster, job_id, window_start`` of the windows in which a job stopped or started, or restored tasks.

    A task that starts counts as busy, and its gauges show their first value: no measurement of its work.

    Args:
        stops: from :func:`spark_jobs.job_history.restarts.find_stops`.
        polls: from :func:`spark_jobs.job_history.job_replies.select_polls`.
        settings: of clusters and ingestion.
        horizon: end of the data.
        since: windows before it are not wanted.
    """
    events = stops.select("cluster", "job_id", "started_at", "ended_at").unionByName(find_job_starts(polls))
    events = events.unionByName(find_restores(polls))
    return find_disturbed_windows(
        events, window_length_s(settings.clusters), (since, horizon), settings.ingest.settle_s
    )


def find_disturbed_windows(
    events: DataFrame, window_s: Column, bounds: tuple[datetime, datetime], settle_s: int
) -> DataFrame:
    """Return ``cluster, job_id, window_start`` of every window from a stop until ``settle_s`` after the job runs again.

    A job that does not run yet is disturbed until the end of the data.

    Args:
        events: ``cluster, job_id, started_at, ended_at``.
        window_s: length of the windows of a row's cluster.
        bounds: of the data; whatever an event says of its time, there are no windows outside.
        settle_s: how long after a start the windows still count as disturbed.
    """
    since_s, horizon_s = (int(bound.timestamp()) for bound in bounds)
    ended = F.coalesce(F.unix_seconds("ended_at") + settle_s, F.lit(horizon_s))
    dated = events.withColumns(
        {
            "window_s": window_s,
            "first_s": F.greatest(F.unix_seconds("started_at"), F.lit(since_s)),
            "last_s": F.least(ended, F.lit(horizon_s)),
        }
    )
    inside = dated.where((F.col("first_s") <= horizon_s) & ((F.col("last_s") >= since_s) | F.col("last_s").isNull()))
    starts = F.sequence(
        F.col("first_s") - F.col("first_s") % F.col("window_s"),
        F.greatest("first_s", "last_s"),
        F.col("window_s").cast("BIGINT"),
    )
    spread = inside.select("cluster", "job_id", F.explode(starts).alias("window_start_s"))
    return spread.select("cluster", "job_id", F.timestamp_seconds("window_start_s").alias("window_start")).distinct()


def _seconds_between(start: str, end: str) -> Column:
    return (F.unix_micros(end) - F.unix_micros(start)) / F.lit(1e6)


def _durations() -> dict[str, Column]:
    return {
        "downtime_s": _seconds_between("started_at", "running_at"),
        "catch_up_s": _seconds_between("running_at", "caught_up_at"),
        "checkpoint_age_s": _seconds_between("checkpoint_at", "started_at"),
    }


def _with_effects(events: DataFrame, sources: DataFrame, rules: Ingest) -> DataFrame:
    """Add the _EFFECTS to closed events: loads before the stop and after it, and when the last source has caught up.

    A catch-up is looked for until ``late_allowance_h`` hours after the event's hour: so far do later runs look back.
    One that came while a running job was not measured has no known time and is left out.  It ended at most
    ``unseen_s`` before the sample that shows it; what all sources emitted since the job ran, and what was pending at
    that poll and before the stop, tells more (models/recovery_labels.py).
    """
    last_hour = F.date_trunc("hour", "started_at") + F.make_dt_interval(hours=F.lit(rules.late_allowance_h + 1))
    closed = events.where("NOT is_open").withColumn("until", F.least("next_started_at", last_hour))
    # By hour, so that a sample meets the few events of its hour; the hour before a stop tells the load.
    reach = F.sequence(
        F.date_trunc("hour", F.col("started_at") - F.expr("INTERVAL 2 HOURS")),
        F.date_trunc("hour", F.coalesce("until", last_hour)),
        F.expr("INTERVAL 1 HOUR"),
    )
    spans = closed.select("cluster", "job", "started_at", "running_at", "until", F.explode(reach).alias("seen_hour"))
    load_span_s = F.col("window_s") * _LOAD_WINDOWS
    micros, started = F.unix_micros("observed_at"), F.unix_micros("started_at")
    in_reach = (F.col("observed_at") < F.col("until")) & (micros >= started - load_span_s * 1_000_000)
    dated = sources.withColumn("seen_hour", F.date_trunc("hour", "observed_at"))
    near = dated.join(F.broadcast(spans), ["cluster", "job", "seen_hour"]).where(in_reach)
    running_for_s = (micros - F.unix_micros("running_at")) / F.lit(1e6)
    # The first sample of a run has none before it: its counter began with the run, and tells the mean rate since.
    mean_per_s = F.col("taken_total") / running_for_s
    lag_s = F.coalesce("lag_s", F.when((running_for_s > 0) & (mean_per_s > 0), F.col("pending") / mean_per_s))
    has_caught_up = (running_for_s > _STALE_REPLY_S) & (lag_s < rules.caught_up_lag_s)
    unseen_s = F.least("since_last_s", running_for_s)
    is_dated = unseen_s <= LONGEST_GAP_WINDOWS * F.col("window_s")
    shown = F.struct("observed_at", is_dated.alias("is_dated"), unseen_s.alias("unseen_s"))
    is_before = F.col("observed_at") <= F.col("started_at")
    is_after = (running_for_s > F.col("since_last_s")) & (running_for_s <= F.col("window_s") * _LOAD_AFTER_WINDOWS)
    totals = F.when(running_for_s > _STALE_REPLY_S, F.struct("observed_at", "taken_total", "pending"))
    first = near.groupBy(*_EVENT_KEY, "operator").agg(
        F.avg(F.when(is_before, F.col("target_per_s"))).alias("load_per_s"),
        F.avg(F.when(is_after, F.col("target_per_s"))).alias("load_after_per_s"),
        F.max_by("pending", F.when(is_before, F.col("observed_at"))).alias("pending_before"),
        F.min(F.when(has_caught_up, shown)).alias("first"),
        F.collect_list(totals).alias("totals"),
    )
    before, after = F.col("load_per_s"), F.col("load_after_per_s")
    per_source = first.withColumns(
        {
            "caught_up_at": F.when(F.col("first.is_dated"), F.col("first.observed_at")),
            "around_per_s": (F.coalesce(before, after) + F.coalesce(after, before)) / F.lit(2.0),
            "source_count": F.lit(1),
        }
    )
    all_caught_up = _is_of_all("caught_up_at")
    at_sources = F.struct("operator", "around_per_s")
    effects = per_source.groupBy(*_EVENT_KEY).agg(
        F.sum("load_per_s").alias("load_per_s"),
        F.when(_is_of_all("load_after_per_s"), F.sum("load_after_per_s")).alias("load_after_per_s"),
        F.when(_is_of_all("pending_before"), F.sum("pending_before")).alias("pending_before_records"),
        F.when(_is_of_all("around_per_s"), F.map_from_entries(F.sort_array(F.collect_list(at_sources)))).alias(
            "source_load_per_s"
        ),
        F.when(all_caught_up, F.max("caught_up_at")).alias("caught_up_at"),
        F.when(all_caught_up, F.max("first.unseen_s")).alias("unseen_s"),
        F.collect_list("totals").alias("totals"),
    )
    at_moment = effects.withColumn("at_moment", F.transform("totals", _nearest_to("caught_up_at")))
    is_one_poll = F.forall("at_moment", lambda one: one["away_s"] <= _ROUND_S)
    summed = at_moment.withColumns(
        {
            f"{name}_records": F.when(is_one_poll, F.aggregate(f"at_moment.{column}", F.lit(0.0), lambda a, b: a + b))
            for name, column in (("emitted", "taken_total"), ("pending", "pending"))
        }
    )
    return closed.join(summed.select(*_EVENT_KEY, *_EFFECTS), list(_EVENT_KEY), "left")


def _is_of_all(column: str) -> Column:
    """Whether every source of an event has a value."""
    return F.count(column) == F.count("source_count")


def _nearest_to(moment: str) -> Callable[[Column], Column]:
    """Return what finds in a source's samples the one nearest to a moment, with ``away_s``; null without samples."""

    def nearest(samples: Column) -> Column:
        def away(one: Column) -> Column:
            seconds = F.abs(F.unix_micros(one["observed_at"]) - F.unix_micros(moment)) / F.lit(1e6)
            return F.struct(
                seconds.alias("away_s"), one["taken_total"].alias("taken_total"), one["pending"].alias("pending")
            )

        return F.array_min(F.transform(samples, away))

    return nearest


def _by_operator(vector: str) -> Column:
    """Return parallelism by operator."""
    return F.map_from_entries(F.transform(vector, lambda pair: F.struct(pair["operator"], pair["parallelism"])))
