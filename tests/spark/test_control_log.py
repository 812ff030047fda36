"""``ops.control_log`` is written by deltalake and read by Spark, which may append beside it; the report shows it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest
from control_entries import FOUR, NOW_S, TWO, entry_for, plain_case
from pyspark.sql import functions as F

from benchmarks.pipeline.spark_jobs import count_jobs
from controller.log.control_log import LogEntry, Provenance
from controller.log.delta_log import DeltaControlLog, open_control_log
from controller.log.log_codec import action_of, case_of
from controller.view.plan_tables import PlanTables
from fleet.log_tables import LogTables
from include import tables
from include.settings import Settings
from include.stage_names import Stage
from include.stage_request import StageRequest
from models.control.case import OutcomeCheck
from models.control.history import end_unsent_request
from models.control.limits import Limits
from models.control.readiness import Checkpoints, Failure, MemoryUsage, Readiness
from models.control.reconcile import reconcile
from models.control.state import Mode, ObservedJob, Origin
from spark_jobs.lake import Lake, rows_of
from spark_jobs.report import stage as report
from spark_jobs.report.carried_out import count_carried_out
from spark_jobs.report.control_log import step_outcomes
from spark_jobs.report.step_results import due_steps

pytestmark = pytest.mark.spark

NOW = datetime.fromtimestamp(NOW_S, UTC)
DAY = timedelta(days=1)
RUNS_TWO = ObservedJob("j", "RUNNING", TWO, TWO, free_slots=8)
WAITS = Readiness(Checkpoints(60.0, NOW_S, state_bytes=1), MemoryUsage(0.5, 0.0), (), checkpoint_wait_s=180.0)
RUNS_FOUR = ObservedJob("j", "RUNNING", FOUR, FOUR, free_slots=8)
NAMES = Provenance({"a": "Source: orders", "b": "enrich"})


class Lease:
    number = first_number = 1

    def check(self) -> None:
        pass


def write(lake: Lake, *entries: LogEntry) -> None:
    log = DeltaControlLog(open_control_log(lake.root), "live", Lease(), lambda: NOW_S)
    log.append_all([replace(entry, provenance=NAMES) for entry in entries])


def answered(entry: LogEntry, answer: str) -> LogEntry:
    return replace(entry, answer=answer, answered_at_s=entry.case.now_s + 1)


def entries_of_steps() -> list[LogEntry]:
    """Return entries of steps that end in every way, each of a job of that name."""

    def sent(job: str, **changes: object) -> LogEntry:
        return entry_for(plain_case(step_id=job, **changes), job=f"live/{job}")

    def next_one(before: LogEntry, **changes: object) -> LogEntry:
        after_s = before.case.now_s + 200
        step_id = before.case.desired.step_id
        return entry_for(plain_case(after_s, step_id, history=before.history, **changes), job=before.job)

    confirmed, worse, lost, unfilled, foreign = (
        sent(job) for job in ("confirmed", "worse", "lost", "unfilled", "foreign")
    )
    runs = next_one(worse, observed=RUNS_FOUR)
    back = next_one(runs, observed=RUNS_FOUR, outcome=OutcomeCheck(True, "records wait"))
    returned = next_one(back, observed=ObservedJob("j", "RUNNING", TWO, TWO, free_slots=8))
    stays = sent("stays")
    no_way_back = next_one(
        next_one(stays, observed=RUNS_FOUR), observed=RUNS_FOUR, outcome=OutcomeCheck(True, "records wait")
    )
    half = ObservedJob("j", "RUNNING", TWO, FOUR, free_slots=8)
    withdrawn = sent("withdrawn")
    breaks, postponed = sent("breaks"), sent("postponed", observed=replace(RUNS_TWO, readiness=WAITS))
    failures = tuple(Failure(NOW_S + second, "c.D: no reader", "c.D") for second in (9, 19))
    broken = next_one(breaks, observed=ObservedJob("j", "RESTARTING", {}, FOUR, free_slots=8, failures=failures))
    saved = replace(WAITS, checkpoints=replace(WAITS.checkpoints, savepoints=1))
    spared = next_one(postponed, observed=replace(RUNS_TWO, requested=FOUR, readiness=saved))
    return [
        breaks,
        broken,
        next_one(broken, observed=RUNS_TWO),
        postponed,
        spared,
        next_one(spared, observed=RUNS_TWO),
        confirmed,
        answered(confirmed, "accepted"),
        next_one(confirmed, observed=RUNS_FOUR),
        next_one(next_one(confirmed, observed=RUNS_FOUR), observed=RUNS_FOUR, limits=Limits(is_held=True)),
        worse,
        runs,
        back,
        returned,
        stays,
        next_one(stays, observed=RUNS_FOUR),
        no_way_back,
        answered(no_way_back, "withdrawn before sending: blackout"),
        lost,
        answered(lost, "no reply: timed out"),
        next_one(lost),
        unfilled,
        next_one(unfilled, observed=half, limits=Limits(mode=Mode.AUTO)),
        foreign,
        next_one(foreign, observed=ObservedJob("j", "RUNNING", {"a": 3, "b": 3}, {"a": 3, "b": 3}, free_slots=8)),
        sent("sent"),
        sent("refused"),
        answered(sent("refused"), "refused: 409"),
        withdrawn,
        answered(replace(withdrawn, history=end_unsent_request(withdrawn.case)), "withdrawn before sending: on_hold"),
        sent("dry", limits=Limits()),
        sent("held", limits=Limits(mode=Mode.AUTO, is_held=True)),
        sent("waits", limits=Limits(mode=Mode.APPROVE)),
    ]


OUTCOMES = {
    "confirmed": "confirmed",
    "worse": "rolled_back",
    "stays": "confirmed",
    "lost": "failed: not_received",
    "unfilled": "failed: not_filled",
    "foreign": "failed: foreign_change",
    "sent": "sent",
    "refused": "refused: refused_by_flink",
    "withdrawn": "refused: withdrawn_before_sending",
    "dry": "dry_run",
    "held": "refused: on_hold",
    "waits": "waiting: needs_approval",
    "breaks": "failed: job_fails",
    "postponed": "refused: savepoint_in_progress",
}


def test_spark_reads_what_deltalake_wrote_and_appends_beside_it(lake: Lake) -> None:
    write(lake, entry_for(plain_case(), job="live/orders"))
    (row,) = lake.read(tables.CONTROL_LOG).collect()
    assert (row["verb"], row["at"].timestamp(), row["parallelism_to"]) == (
        "rescale",
        NOW_S,
        {"Source: orders": 4, "enrich": 4},
    )
    assert reconcile(case_of(row.asDict())) == action_of(row.asDict())
    changes = {"entry": F.lit(2).cast("bigint"), "answer": F.lit("accepted")}
    again = lake.read(tables.CONTROL_LOG).withColumns(changes)
    again.write.format("delta").mode("append").save(lake.path(tables.CONTROL_LOG))
    write(lake, entry_for(plain_case(NOW_S + 60, "step-2", mode=Mode.DRY_RUN), job="live/orders"))
    result = LogTables(lake.root).read_lines(NOW - DAY, NOW + DAY, "job = 'orders'")
    assert [(one["entry"], one["answer"], one["step_id"]) for one in result] == [
        (1, None, "step-1"),
        (2, "accepted", "step-1"),
        (3, None, "step-2"),
    ]
    assert lake.read(tables.CONTROL_LOG).count() == 3
    bad = again.withColumn("verb", F.lit("dance"))
    with pytest.raises(Exception, match="verb_known"):
        bad.write.format("delta").mode("append").save(lake.path(tables.CONTROL_LOG))


def test_the_controller_appends_to_tables_that_spark_made(lake: Lake) -> None:
    for table in tables.CONTROLLED:
        lake.ensure(table)
    write(lake, entry_for(plain_case(), job="live/orders"))
    assert lake.read(tables.CONTROL_LOG).count() == 1


def plan_rows(lake: Lake, job: str) -> dict[str, object]:
    return {
        "as_of": NOW - timedelta(hours=1),
        "step_id": job,
        "cluster": "live",
        "job": job,
        "job_id": "j",
        "step_index": 0,
        "status": "planned",
        "apply_at": NOW - timedelta(minutes=1),
        "effective_at": NOW,
        "valid_until": NOW + timedelta(hours=1),
        "slots_from": 2,
        "slots": 4,
        "slot_hours_saved": 1.0,
        "reason": "load rises",
        "policy": "planner",
        "forecast_version": "f1",
        "date": NOW.date(),
    }


def write_plans(lake: Lake, jobs: list[str]) -> None:
    frame = rows_of(lake.spark, tables.PLANS.columns, [plan_rows(lake, job) for job in jobs])
    counts = F.create_map(F.lit("enrich"), F.lit(4))
    frame = frame.withColumns({"parallelism_from": counts, "parallelism_to": counts})
    lake.replace(tables.PLANS, frame, f"date = '{NOW.date()}'")


@dataclass(frozen=True)
class Logged:
    """Steps that end in every way, with their plans; and a step of two days before."""

    settings: Settings
    lake: Lake


@pytest.fixture(scope="module")
def logged(shared_settings: Settings, shared_lake: Lake) -> Logged:
    settings, lake = shared_settings, shared_lake
    write(lake, entry_for(plain_case(NOW_S - 2 * 86_400, "old"), job="live/confirmed"))
    write(lake, *entries_of_steps())
    write_plans(lake, list(OUTCOMES))
    return Logged(settings, lake)


def test_the_controller_reads_plans_that_spark_wrote(logged: Logged) -> None:
    plans = PlanTables(logged.lake.root).read_plans(NOW_S)
    assert set(plans) == {("live", job) for job in OUTCOMES}
    (step,) = plans["live", "confirmed"].steps
    assert (step.apply_at_s, step.parallelism_to) == (NOW_S - 60, {"enrich": 4})
    assert plans["live", "confirmed"].as_of_s == NOW_S - 3600


def test_every_step_has_the_outcome_that_the_controller_found(logged: Logged) -> None:
    log, plans = logged.lake.read(tables.CONTROL_LOG), logged.lake.read(tables.PLANS)
    result = step_outcomes(log, NOW.date() - DAY, NOW.date() + DAY).collect()
    assert {row["step_id"]: row["outcome"] for row in result} == OUTCOMES
    assert {row["final_status"] for row in result} == {outcome.split(":")[0] for outcome in OUTCOMES.values()}
    (confirmed,) = [row for row in result if row["step_id"] == "confirmed"]
    assert confirmed["decided_at"].timestamp() == NOW_S
    shown = due_steps(plans, log, NOW - DAY, NOW + timedelta(hours=1)).collect()
    assert {row["job"]: row["outcome"] for row in shown} == OUTCOMES
    assert step_outcomes(log, NOW.date() - 9 * DAY, NOW.date() - 8 * DAY).collect() == []
    sent = {"confirmed", "sent", "dry_run"}
    counts = count_carried_out(plans, log, NOW - DAY, NOW + timedelta(hours=1)).collect()
    assert {row["job"]: (row["due"], row["as_planned"]) for row in counts} == {
        job: (1, int(outcome.split(":")[0] in sent)) for job, outcome in OUTCOMES.items()
    }


def test_steps_of_no_plan_are_shown_as_whose_they_are(lake: Lake) -> None:
    reactive = replace(plain_case().desired, origin=Origin.REACTIVE, step_id="now")
    pinned = Limits(mode=Mode.AUTO, pin=FOUR)
    write(
        lake,
        entry_for(plain_case(desired=reactive, mode=Mode.DRY_RUN), job="live/orders"),
        entry_for(plain_case(limits=pinned), job="live/pinned"),
        entry_for(plain_case(limits=pinned), job="live/also pinned"),
    )
    plans, log = lake.read(tables.PLANS), lake.read(tables.CONTROL_LOG)
    shown = due_steps(plans, log, NOW - DAY, NOW + timedelta(hours=1)).collect()
    assert {row["job"]: (row["origin"], row["outcome"], row["slots_from"], row["slots"]) for row in shown} == {
        "orders": ("reactive", "dry_run", 2, 4),
        "pinned": ("pin", "sent", 2, 4),
        "also pinned": ("pin", "sent", 2, 4),
    }


def test_results_of_steps_are_written_and_the_page_shows_them(logged: Logged) -> None:
    request = StageRequest(Stage.REPORT, NOW + timedelta(hours=1))
    first = report.run(logged.lake.spark, logged.settings, request)
    assert first["step_results"] == len(OUTCOMES)
    rows = logged.lake.few(tables.STEP_RESULTS).read(["job", "outcome", "status"], date.min, date.max).to_pylist()
    assert {row["job"]: row["outcome"] for row in rows} == OUTCOMES
    page = (Path(logged.settings.paths.out) / "report.html").read_text(encoding="utf-8")
    assert page.count("Decisions of the last day") == len(OUTCOMES)
    assert "withdrawn before sending: on_hold" in page
    # twice has the same result
    begun = count_jobs(logged.lake.spark)
    assert report.run(logged.lake.spark, logged.settings, request) == first
    assert count_jobs(logged.lake.spark) - begun == 2  # all is counted, the results are written; no day has a window
    again = logged.lake.few(tables.STEP_RESULTS).read(["job", "outcome", "status"], date.min, date.max).to_pylist()
    assert sorted(map(str, again)) == sorted(map(str, rows))
