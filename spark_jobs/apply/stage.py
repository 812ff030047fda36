"""Apply stage: due steps of ``gold.plans`` -> ``gold.applied_steps``, and in mode auto to Flink.

Where the watch stage evaluated a job at the same time, its row in ``gold.looks`` decides: the plan's step goes out, one
of the controller's own, or none.
A dry run judges the steps and records what it would have done.  Every step has one row, whatever became of it; a step
with a row is not considered again, except a claim without an outcome, which the next run finishes.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timedelta

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from include import tables
from include.control.agenda import read_agenda, write_done
from include.control.step_guard import guard
from include.settings import Settings
from include.stages import StageRequest
from spark_jobs.apply.auto import AutoApplier
from spark_jobs.apply.cases import DueCase
from spark_jobs.apply.claims import Ledger, Row
from spark_jobs.apply.flink import Clock, Outcome
from spark_jobs.apply.inputs import due_steps, looks_now, net_steps, open_claims, with_surroundings
from spark_jobs.lake import Lake


class NoPlanError(RuntimeError):
    """There is no plan to apply; the message says what to run."""


def stage_clock(request: StageRequest) -> Clock:
    """Return the time at which something is sent: when the application began, and what has passed since then."""
    began = request.started_at or request.as_of
    started_s = time.monotonic() if request.started_on_s is None else request.started_on_s
    return lambda: began + timedelta(seconds=time.monotonic() - started_s)


def due_cases(lake: Lake, settings: Settings, as_of: datetime) -> tuple[list[DueCase], int]:
    """Return the steps to deal with, and how many the reactive controller holds back; only they come to the driver."""
    plans, applied, looks = lake.read(tables.PLANS), lake.read(tables.APPLIED_STEPS), lake.read(tables.LOOKS)
    now = looks_now(looks, as_of)
    new = due_steps(plans, applied, looks, as_of).unionByName(net_steps(now, applied))
    dated = new.withColumn("decided_at_s", F.lit(None).cast("double"))
    steps = dated.unionByName(open_claims(plans, applied, looks, as_of)).cache()
    try:
        counts = {row["held"]: row["count"] for row in steps.groupBy("held").count().collect()}
        if not counts.get(False):
            return [], counts.get(True, 0)
        rows = with_surroundings(steps.where("NOT held"), lake, now, as_of).orderBy("cluster", "job", "step_id")
        return [DueCase.of(row, settings) for row in rows.collect()], counts.get(True, 0)
    finally:
        steps.unpersist()


def dry_run(cases: Sequence[DueCase], settings: Settings, as_of: datetime) -> list[Row]:
    """Return the rows of steps that are judged and not sent."""
    rows = []
    for case in cases:
        around = case.surroundings(as_of, settings, running=case.row["running"])
        verdict = guard(case.step, around, settings)
        if verdict is None:
            rows.append(case.outcome_row(Outcome("dry_run", "would be applied; nothing was sent"), as_of))
        else:
            rows.append(case.outcome_row(Outcome("refused", verdict[1]), as_of, str(verdict[0])))
    return rows


def run(
    spark: SparkSession, settings: Settings, request: StageRequest, clock: Clock | None = None
) -> dict[str, object]:
    """Deal with every step that is due as of ``request.as_of``.

    Raises:
        NoPlanError: nothing was ever planned.
    """
    lake, as_of = Lake(spark, settings.paths.lake), request.as_of
    if not lake.exists(tables.PLANS):
        raise NoPlanError(f"there is no gold.plans below {settings.paths.lake}; run the plan stage first")
    agenda = read_agenda(settings)  # before the tables: what is planned meanwhile stays due
    ledger = Ledger(lake)
    cases, held = due_cases(lake, settings, as_of)
    judged = dry_run([case for case in cases if case.mode == "dry-run" and case.claimed_at is None], settings, as_of)
    ledger.record(judged)
    live = [case for case in cases if case.mode == "auto" or case.claimed_at is not None]
    told = [str(row["status"]) for row in judged] + ["waiting"] * held
    if live:
        told += AutoApplier(settings, ledger, clock or stage_clock(request)).apply(live)
    found = Counter(told)
    if agenda is not None and not found["waiting"]:
        write_done(settings, agenda.as_of, as_of)
    counts = {status: found[status] for status in ("dry_run", "confirmed", "refused", "failed", "waiting")}
    return {"due": len(cases) + held, **counts}
