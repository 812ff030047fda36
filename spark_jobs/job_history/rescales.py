"""silver.rescales: each rescale and restart found in the data, with its downtime and its catch-up.

A job that stopped and runs again bears a new RUNNING time in its ``job`` replies; Flink seldom shows the stop itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from include.settings import Ingest
from include.tables import RESCALES
from include.utc import Interval
from models.observing.catch_ups import LOAD_AFTER_WINDOWS, EventSpan, SourcePolls, find_effects
from models.observing.samples import LONGEST_GAP_WINDOWS
from spark_jobs.arrow_schema import arrow_schema
from spark_jobs.job_history.arrow_rows import micros, times_in_ms, to_table
from spark_jobs.lake import date_hour_columns

_EVENT_KEY = ("cluster", "job", "started_at")
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
_EFFECTS_OF = ", ".join(f"{name} {RESCALES.columns[name]}" for name in (*_EVENT_KEY, *_EFFECTS)) + ", is_whole BOOLEAN"
_MEASURED = ("since_last_s", "age_s", "target_per_s", "taken_total", "pending")
_NEAR = ("running_at", "until", "operator", "window_s", "observed_at", *_MEASURED)


def build_rescales(
    events: DataFrame, sources: DataFrame, earlier: DataFrame, rules: Ingest, hours: Interval
) -> DataFrame:
    """Return the rows of silver.rescales of events that came to an end.

    Args:
        events: from :func:`spark_jobs.job_history.restarts.find_stops`.
        sources: from :func:`spark_jobs.job_history.observations.select_source_samples`, of the hours that this run
            looks at.
        earlier: rows of silver.rescales already there. Of events that this run does not see whole, because they began
            before its hours or their catch-up goes beyond them, what was found stands, and what was missing is filled
            in.
        rules: the settings of ingestion.
        hours: whose samples this run looks at.
    """
    result = _with_effects(events, sources, rules, hours)
    retained = earlier.select(*_EVENT_KEY, *[F.col(c).alias(f"earlier_{c}") for c in _EFFECTS])
    known = result.join(F.broadcast(retained), list(_EVENT_KEY), "left")
    is_whole = F.coalesce("is_whole", F.lit(False))
    chosen = {c: F.when(is_whole, F.col(c)).otherwise(F.coalesce(f"earlier_{c}", c)) for c in _EFFECTS}
    completed = known.withColumns(chosen).withColumns(_durations())
    named = completed.withColumns(
        {f"parallelism_{side}": _by_operator(f"vector_{side}") for side in ("before", "after")}
    )
    return named.select("*", *date_hour_columns("started_at")).select(*RESCALES.columns)


def _seconds_between(start: str, end: str) -> Column:
    return (F.unix_micros(end) - F.unix_micros(start)) / F.lit(1e6)


def _durations() -> dict[str, Column]:
    return {
        "downtime_s": _seconds_between("started_at", "running_at"),
        "catch_up_s": _seconds_between("running_at", "caught_up_at"),
        "checkpoint_age_s": _seconds_between("checkpoint_at", "started_at"),
    }


def _with_effects(events: DataFrame, sources: DataFrame, rules: Ingest, hours: Interval) -> DataFrame:
    """Add the _EFFECTS to closed events, and whether these hours hold all that they come from.

    They are looked for until ``late_allowance_h`` hours after the event's hour: so far do later runs look back.
    """
    last_hour = F.date_trunc("hour", "started_at") + F.make_dt_interval(hours=F.lit(rules.late_allowance_h + 1))
    closed = events.where("NOT is_open").withColumn("until", F.least("next_started_at", last_hour))
    # By hour, so that a sample meets the few events of its hour; the hour before a stop tells the load.
    reach = F.sequence(
        F.date_trunc("hour", F.col("started_at") - F.expr("INTERVAL 2 HOURS")),
        F.date_trunc("hour", F.coalesce("until", last_hour)),
        F.expr("INTERVAL 1 HOUR"),
    )
    spans = closed.select(*_EVENT_KEY, "running_at", "until", F.explode(reach).alias("seen_hour"))
    dated = sources.withColumn("seen_hour", F.date_trunc("hour", "observed_at"))
    near = dated.join(F.broadcast(spans), ["cluster", "job", "seen_hour"]).select(*_EVENT_KEY, *_NEAR)
    at_event = near.withColumn("started_ms", F.unix_millis("started_at")).drop("started_at")
    in_ms = times_in_ms(at_event)
    effects = in_ms.groupBy("cluster", "job", "started_ms").applyInArrow(
        _effects_by_event(arrow_schema(_EFFECTS_OF), rules.caught_up_lag_s, hours), _EFFECTS_OF
    )
    return closed.join(effects, list(_EVENT_KEY), "left")


def _effects_by_event(schema: pa.Schema, caught_up_lag_s: float, hours: Interval) -> Callable[[pa.Table], pa.Table]:
    """Return what gives the effects of an event from the samples of sources near it."""
    start_ms, end_ms = (round(1000 * at.timestamp()) for at in (hours.start, hours.end))

    def find(table: pa.Table) -> pa.Table:
        samples = table.sort_by([("operator", "ascending"), ("observed_at", "ascending")])
        event = samples.slice(0, 1).to_pylist()[0]
        span = EventSpan(
            started_ms=event["started_ms"],
            running_ms=event["running_at"],
            until_ms=event["until"],
            window_s=event["window_s"],
            longest_gap_s=LONGEST_GAP_WINDOWS * event["window_s"],
        )
        effects = find_effects(span, _polls_by_source(samples), caught_up_lag_s)
        row = {name: _known(getattr(effects, name)) for name in _EFFECTS if name != "caught_up_at"}
        row |= {"cluster": event["cluster"], "job": event["job"], "started_at": micros(span.started_ms)}
        row["caught_up_at"] = micros(effects.caught_up_ms)
        known_ms = None if span.running_ms is None else span.running_ms + 1000 * LOAD_AFTER_WINDOWS * span.window_s
        is_measured = effects.caught_up_ms is not None and known_ms is not None and known_ms <= end_ms
        row["is_whole"] = is_measured and span.started_ms >= start_ms
        row["source_load_per_s"] = list(effects.source_load_per_s.items()) or None
        return to_table([row], schema)

    return find


def _polls_by_source(samples: pa.Table) -> dict[str, SourcePolls]:
    """Return the samples of each source, which are in the order of sources and time."""
    names = samples["operator"].to_numpy()
    begins = [0, *(np.flatnonzero(names[1:] != names[:-1]) + 1).tolist(), len(names)]
    at_ms, *values = (samples[name].to_numpy() for name in ("observed_at", *_MEASURED))
    return {
        str(names[begin]): SourcePolls(at_ms[begin:end], *(each[begin:end] for each in values))
        for begin, end in pairwise(begins)
    }


def _known(value: object) -> object:
    return None if isinstance(value, float) and math.isnan(value) else value


def _by_operator(vector: str) -> Column:
    """Return parallelism by operator."""
    return F.map_from_entries(F.transform(vector, lambda pair: F.struct(pair["operator"], pair["parallelism"])))
