"""When jobs stopped and ran again, told from their replies by the rules of ``models/observing/stops.py``.

Spark sums replies up, and brings together those of each job that may have stopped: few rows of few jobs.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from include.flink.job_states import BATCH, ENDED_WITHOUT_FAILURE, RUNNING
from models.observing import stop_kinds, stops
from models.observing.clocks import find_ahead_ms
from models.observing.job_ends import JobLifetime
from models.observing.stops import Checkpoint, JobRun, RunHistory, Stop, Vertices
from spark_jobs.arrow_schema import arrow_schema
from spark_jobs.job_history.arrow_rows import micros, times_in_ms, to_table

_JOB = ("cluster", "job")
_ID = ("cluster", "job_id")
_LISTS = ("vector", "stopped_ms")
_VERTICES = "ARRAY<STRUCT<vertex_id: STRING, parallelism: INT, operator: STRING>>"
_STOPS = f"""cluster STRING, job STRING, job_id STRING, job_id_before STRING, started_at TIMESTAMP,
    running_at TIMESTAMP, ended_at TIMESTAMP, is_open BOOLEAN, detected_at TIMESTAMP, kind STRING, cause STRING,
    cause_kind STRING, vector_before {_VERTICES}, vector_after {_VERTICES}, checkpoint_at TIMESTAMP,
    state_size_bytes DOUBLE, next_started_at TIMESTAMP, ahead_ms BIGINT"""
_Row = Mapping[str, Any]
_Rows = Sequence[_Row]


def find_stops(polls: DataFrame, failures: DataFrame, checkpoints: DataFrame, state_moves: DataFrame) -> DataFrame:
    """Return one row per stop of a job; a job that came to its end did not stop.

    Columns: ``cluster, job, job_id, job_id_before, started_at``; ``running_at`` (null when the job failed again before
    it was seen running); ``ended_at`` (the same, or the next stop; null while it is down); ``is_open`` (not running
    yet); ``detected_at`` (the reply that showed it); ``kind, cause, cause_kind``; ``vector_before, vector_after``;
    ``checkpoint_at, state_size_bytes`` (of the last checkpoint completed before the stop); ``next_started_at``;
    ``ahead_ms`` (by how much the JobManager's clock is ahead: all times here are by the clock of the polls).
    """
    summed = _sum_up(polls)  # used twice: what is shuffled for it is shuffled once
    names = _find_candidates(summed).hint("shuffle_hash")  # a broadcast would be a job of its own
    replies = summed.withColumnRenamed("job", "named").withColumn("what", F.lit("polls"))
    # Spark asks Arrow after each row how much it holds, which goes through all rows since the last list that was not
    # null: with lists in each row three weeks of 18 jobs take 4 s of processor time here instead of 29 s.
    no_lists = {name: F.array().cast(replies.schema[name].dataType) for name in _LISTS}
    for what, rows in (("failure", failures), ("checkpoint", checkpoints), ("state", state_moves)):
        other = rows.withColumns({"what": F.lit(what), **no_lists})
        replies = replies.unionByName(other, allowMissingColumns=True)
    of_job = times_in_ms(replies.join(names, list(_ID)))
    return of_job.groupBy(*_JOB).applyInArrow(_stops_by_job(arrow_schema(_STOPS)), _STOPS)


def _sum_up(polls: DataFrame) -> DataFrame:
    """Return what the polls of a job id tell together that show the same state and the same time of RUNNING."""
    return polls.groupBy(*_JOB, "job_id", "state", "running_at").agg(
        F.min("observed_at").alias("first_seen"),
        F.max("observed_at").alias("last_seen"),
        F.max_by("vector", "observed_at").alias("vector"),
        F.median("ahead_ms").alias("ahead_ms"),
        F.array_distinct(F.flatten(F.collect_set(F.transform("stopped_at", F.unix_millis)))).alias("stopped_ms"),
        F.min("ended_at").alias("ended_at"),
        F.coalesce(F.max(F.col("job_type") == BATCH), F.lit(False)).alias("is_batch"),
    )


def _find_candidates(summed: DataFrame) -> DataFrame:
    """Return ``cluster, job, job_id`` of the jobs that may have stopped: seen in more than one run, or not running."""
    has_run = (F.col("state") == RUNNING) & F.col("running_at").isNotNull()
    by_job = summed.groupBy(*_JOB).agg(
        F.collect_set("job_id").alias("job_ids"),
        F.count_if(has_run).alias("runs"),
        F.max(F.col("state") != RUNNING).alias("was_down"),
    )
    return by_job.where("runs > 1 OR was_down").select(*_JOB, F.explode("job_ids").alias("job_id"))


def _stops_by_job(schema: pa.Schema) -> Callable[[pa.Table], pa.Table]:
    """Return what gives the stops of the jobs of one name from their replies."""

    def find(table: pa.Table) -> pa.Table:
        rows = table.to_pylist()
        by_kind: defaultdict[str, list[_Row]] = defaultdict(list)
        for row in rows:
            by_kind[row["what"]].append(row)
        # An id may have borne another name: what it was polled under that tells of its end alone.
        polls = [row for row in by_kind["polls"] if row["named"] == row["job"]]
        ahead_ms = find_ahead_ms([row["ahead_ms"] for row in by_kind["polls"] if row["ahead_ms"] is not None])
        history = RunHistory(
            runs=list(_read_runs(polls)),
            stopped_ms={at for row in polls for at in row["stopped_ms"] if at is not None},
            failures=_read_failures(by_kind["failure"]),
            checkpoints=_read_checkpoints(by_kind["checkpoint"]),
            facts=_read_facts(by_kind["polls"], by_kind["state"]),
            ahead_ms=ahead_ms,
        )
        own = {name: rows[0][name] for name in _JOB}
        result = [*_closed_rows(stops.find_stops(history)), *_open_rows(polls)]
        return to_table([{**own, **row, "ahead_ms": ahead_ms} for row in result], schema)

    return find


def _read_runs(polls: _Rows) -> Iterator[JobRun]:
    for row in polls:
        if row["state"] == RUNNING and row["running_at"] is not None:
            yield JobRun(
                row["running_at"], row["first_seen"], row["last_seen"], row["job_id"], _read_vertices(row["vector"])
            )


def _read_vertices(vector: _Rows | None) -> Vertices | None:
    return None if vector is None else tuple((one["vertex_id"], one["parallelism"], one["operator"]) for one in vector)


def _read_failures(rows: _Rows) -> dict[int, str]:
    causes: dict[int, str] = {}
    for row in rows:
        at_ms, cause = row["failed_at"], row["cause"] or ""
        if at_ms is not None:
            causes[at_ms] = min(cause, causes.get(at_ms, cause))
    return causes


def _read_checkpoints(rows: _Rows) -> dict[str, list[Checkpoint]]:
    result: defaultdict[str, list[Checkpoint]] = defaultdict(list)
    known = (row for row in rows if row["completed_at"] is not None)
    for row in sorted(known, key=lambda one: (one["completed_at"], one["triggered_at"] or 0)):
        result[row["job_id"]].append(Checkpoint(row["completed_at"], row["triggered_at"], row["state_size_bytes"]))
    return dict(result)


def _read_facts(polls: _Rows, states: _Rows) -> dict[str, JobLifetime]:
    reported = {row["job_id"]: row for row in states}
    return {job_id: _read_facts_of(rows, reported.get(job_id, {})) for job_id, rows in _by_id(polls)}


def _read_facts_of(polls: _Rows, state: _Row) -> JobLifetime:
    ends = [row for row in polls if row["state"] in ENDED_WITHOUT_FAILURE]
    return JobLifetime(
        is_batch=any(row["is_batch"] for row in polls),
        end_state=max(ends, key=lambda row: row["last_seen"])["state"] if ends else None,
        ended_ms=min((row["ended_at"] for row in ends if row["ended_at"] is not None), default=None),
        is_restored=state.get("is_restored"),
        savepoint_ms=state.get("savepoint_at"),
    )


def _by_id(polls: _Rows) -> Iterable[tuple[str, _Rows]]:
    result: defaultdict[str, list[_Row]] = defaultdict(list)
    for row in polls:
        result[row["job_id"]].append(row)
    return result.items()


def _closed_rows(result: Iterable[Stop]) -> Iterator[_Row]:
    in_order = sorted(result, key=lambda stop: stop.started_ms)
    for stop, following in zip(in_order, [*in_order[1:], None], strict=False):
        before, after, checkpoint = stop.before, stop.after, stop.checkpoint
        if before is None or after is None:
            continue
        yield {
            "job_id": after.job_id,
            "job_id_before": before.job_id,
            "started_at": micros(stop.started_ms),
            "running_at": None if stop.is_followed else micros(after.running_ms),
            "ended_at": micros(stop.ended_ms),
            "is_open": False,
            "detected_at": micros(after.first_seen_ms),
            "kind": stop_kinds.event_kind(stop),
            "cause": stop.cause,
            "cause_kind": stop_kinds.cause_kind(stop),
            "vector_before": _vertex_rows(before),
            "vector_after": _vertex_rows(before if stop.is_followed else after),
            "checkpoint_at": None if checkpoint is None else micros(checkpoint.triggered_ms),
            "state_size_bytes": None if checkpoint is None else checkpoint.state_bytes,
            "next_started_at": None if following is None else micros(following.started_ms),
        }


def _vertex_rows(run: JobRun) -> list[_Row] | None:
    if run.vertices is None:
        return None
    return [dict(zip(("vertex_id", "parallelism", "operator"), one, strict=True)) for one in run.vertices]


def _open_rows(polls: _Rows) -> Iterator[_Row]:
    for job_id, rows in _by_id(polls):
        last = max(rows, key=lambda row: row["last_seen"])
        ran_ms = max((row["last_seen"] for row in rows if row["state"] == RUNNING), default=None)
        stop = stops.find_open_stop(last["state"], ran_ms)
        if stop is not None:
            started_at, detected_at = micros(stop.started_ms), micros(last["last_seen"])
            yield {"job_id": job_id, "started_at": started_at, "is_open": True, "detected_at": detected_at}
