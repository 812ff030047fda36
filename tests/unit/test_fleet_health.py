"""Each fault of the fleet's health is reported beyond its threshold, and no longer below it."""

from __future__ import annotations

import shutil
from dataclasses import replace

import pytest

from fleet.disks import read_free_shares
from fleet.facts import ClusterStatus, DecisionFact, HealthFact, HoldFact, JobStatus, ModelFacts, WaitingFact
from fleet.health import (
    Fault,
    judge_cluster,
    judge_disks,
    judge_jobs,
    judge_models,
    judge_raw_folder,
    judge_stages,
    leave_at_rest,
)
from include.settings import Health, Paths
from include.stage_states import StageState

NOW_S = 1_795_000_000.0
HOUR_S = 3600.0
LIMITS = Health()
WELL = ClusterStatus("prod", "auto", "here:1", NOW_S - 10, NOW_S - HOUR_S, NOW_S - HOUR_S, 1000, 10, 0)
MODELS = ModelFacts(NOW_S - HOUR_S, "m1", "passed", NOW_S - HOUR_S)
JOB = JobStatus("prod", "orders", "auto", "RUNNING", 4, None, None, "planned", "", NOW_S - HOUR_S)
LEFT = DecisionFact(
    *("prod", "orders", NOW_S - HOUR_S, "wait", "concurrent_rescales", "14 others are being rescaled", "", "reactive"),
    *("step", "auto", False, "RUNNING", 4, 8, {}, {}),
)
WAITING = WaitingFact("approval", "prod", "orders", "step-1", NOW_S, "2 -> 4", "tidewise approve")
CHANGED = HoldFact(
    "change", "prod/orders", "", "somebody else changed the job", NOW_S, NOW_S + HOUR_S, "tidewise release"
)


def faults(facts: list[HealthFact]) -> set[str]:
    return {one.name for one in facts if one.needs_person}


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({}, None),
        ({"ticked_at_s": NOW_S - 179}, None),
        ({"ticked_at_s": NOW_S - 181}, Fault.CONTROLLER_LATE),
        ({"ticked_at_s": None}, Fault.CONTROLLER_LATE),
        ({"controller": ""}, Fault.CONTROLLER_LATE),
        ({"controller": "", "mode": "off"}, None),
        ({"plan_as_of_s": NOW_S - 2 * HOUR_S + 1}, None),
        ({"plan_as_of_s": NOW_S - 2 * HOUR_S - 1}, Fault.PLAN_OLD),
        ({"plan_as_of_s": None}, Fault.PLAN_OLD),
        ({"metrics_until_s": NOW_S - 3 * HOUR_S - 1}, Fault.METRICS_OLD),
        ({"silent_s": 179.0}, None),
        ({"silent_s": 181.0}, Fault.CLUSTER_SILENT),
        ({"silent_s": 181.0, "mode": "off", "controller": ""}, Fault.CLUSTER_SILENT),
        ({"quarantined": 11}, Fault.QUARANTINE_RISING),
        ({"lines": 0, "quarantined": 0}, None),
        ({"quarantined_files": 1}, Fault.FILES_REFUSED),
    ],
)
def test_a_cluster(change: dict[str, object], fault: str | None) -> None:
    facts = judge_cluster(replace(WELL, **change), LIMITS, NOW_S)  # type: ignore[arg-type]
    assert faults(facts) == ({fault} if fault else set())
    assert all(one.scope == "prod" and one.detail and one.remedy for one in facts)


def test_thresholds_come_from_the_settings() -> None:
    late = replace(WELL, ticked_at_s=NOW_S - 600)
    assert faults(judge_cluster(late, LIMITS, NOW_S)) == {Fault.CONTROLLER_LATE}
    assert faults(judge_cluster(late, Health(controller_late_s=601), NOW_S)) == set()


def test_what_is_no_part_of_a_set_up_needs_nobody() -> None:
    limits = Health(plan_old_h=0, metrics_old_h=0, models_old_h=0)
    facts = judge_cluster(replace(WELL, plan_as_of_s=None, metrics_until_s=None), limits, NOW_S)
    facts += judge_models(ModelFacts(), limits, NOW_S)
    assert faults(facts) == set()
    mine = [one.detail for one in facts if one.name in {Fault.PLAN_OLD, Fault.METRICS_OLD, Fault.MODELS_OLD}]
    assert mine == ["not part of this set-up"] * 3


def test_a_lake_that_nobody_operates_waits_for_nothing_new() -> None:
    old = replace(WELL, ticked_at_s=None, plan_as_of_s=0.0, metrics_until_s=0.0, quarantined=11)
    facts = [*judge_cluster(old, LIMITS, NOW_S), *judge_models(replace(MODELS, trained_at_s=0.0), LIMITS, NOW_S)]
    assert faults(facts) - faults(leave_at_rest(facts)) == {
        *(Fault.CONTROLLER_LATE, Fault.PLAN_OLD, Fault.METRICS_OLD, Fault.MODELS_OLD)
    }
    assert faults(leave_at_rest(facts)) == {Fault.QUARANTINE_RISING}


@pytest.mark.parametrize(
    ("models", "expected"),
    [
        (MODELS, set()),
        (replace(MODELS, trained_at_s=NOW_S - 50 * HOUR_S), {Fault.MODELS_OLD}),
        (replace(MODELS, gate="failed"), {Fault.CHAMPION_REFUSED}),
        (replace(MODELS, gate="kept"), {Fault.CHAMPION_REFUSED}),
        (ModelFacts(), {Fault.MODELS_OLD}),
        (replace(MODELS, errors={"recovery": 0.99, "latency": None}), set()),
        (replace(MODELS, errors={"recovery": 3.99, "latency": None}), {Fault.MODELS_OFF}),
    ],
)
def test_models(models: ModelFacts, expected: set[str]) -> None:
    assert faults(judge_models(models, LIMITS, NOW_S)) == expected


@pytest.mark.parametrize(
    ("job", "holds", "expected"),
    [
        (JOB, [], set()),
        (replace(JOB, refusals=5), [], set()),
        (replace(JOB, refusals=6), [], {Fault.STEPS_REFUSED}),
        (replace(JOB, roll_backs=1), [], {Fault.STEPS_ROLLED_BACK}),
        (replace(JOB, waiting=(WAITING,)), [], {Fault.WAITS_FOR_PERSON}),
        (JOB, [CHANGED], {Fault.FOREIGN_CHANGE}),
        (replace(JOB, last_decision=LEFT), [], set()),
        (replace(JOB, last_decision=replace(LEFT, late_since_s=NOW_S - 900)), [], set()),
        (replace(JOB, last_decision=replace(LEFT, late_since_s=NOW_S - 901)), [], {Fault.JOB_LATE}),
        (replace(JOB, last_decision=replace(LEFT, down_since_s=NOW_S - 300)), [], set()),
        (replace(JOB, last_decision=replace(LEFT, down_since_s=NOW_S - 301)), [], {Fault.JOB_DOWN}),
        # Nothing was said of it for as long: it is gone.
        (
            replace(JOB, last_decision=replace(LEFT, at_s=NOW_S - 8 * HOUR_S, down_since_s=NOW_S - 9 * HOUR_S)),
            [],
            set(),
        ),
        (JOB, [replace(CHANGED, kind="person")], set()),
    ],
)
def test_jobs(job: JobStatus, holds: list[HoldFact], expected: set[str]) -> None:
    assert faults(judge_jobs([job], holds, LIMITS, NOW_S)) == expected


def test_why_nothing_is_done_for_a_late_job_is_told() -> None:
    late = replace(LEFT, late_since_s=NOW_S - 1500)
    (fact,) = judge_jobs([replace(JOB, last_decision=late)], [], LIMITS, NOW_S)
    assert fact.detail == "job late for 25 min; controller: wait, concurrent_rescales: 14 others are being rescaled"
    assert (fact.value, fact.threshold, fact.remedy) == (1500.0, 900.0, "tidewise why prod/orders")


def test_the_raw_folder() -> None:
    assert faults([judge_raw_folder("/mnt/raw", False)]) == {Fault.RAW_FOLDER_GONE}
    assert faults([judge_raw_folder("/mnt/raw", True)]) == set()


@pytest.mark.parametrize(
    ("share", "expected"),
    [(None, set()), (0.9, set()), (0.81, set()), (0.99, set()), (0.79, {Fault.COVERAGE_OFF})],
)
def test_the_bands_of_a_cluster(share: float | None, expected: set[str]) -> None:
    assert faults(judge_cluster(replace(WELL, coverage_q90=share), LIMITS, NOW_S)) == expected


def test_bands_that_are_too_wide_need_a_person_only_where_the_settings_are_that_strict() -> None:
    wide = replace(WELL, coverage_q90=0.99)
    (fact,) = [one for one in judge_cluster(wide, Health(coverage_off_max=0.05), NOW_S) if one.needs_person]
    assert "too wide" in fact.remedy


FAILED = StageState("tidewise_plan.plan", NOW_S - 60, "spark-submit ended with 1")
LOST = StageState("tidewise_plan.plan", NOW_S - 60, lost=["version 2 cannot be used"])
EMPTY = StageState("tidewise_ingest.ingest", NOW_S - 60, empty=["ingest"])


@pytest.mark.parametrize(
    ("states", "expected"),
    [
        ([], set()),
        ([StageState("tidewise_plan.plan", NOW_S - 60)], set()),
        ([LOST], {Fault.MODELS_LOST}),
        ([FAILED], {Fault.STAGE_FAILING}),
        ([replace(FAILED, at_s=NOW_S + 1)], set()),  # an earlier time is asked about
        ([replace(FAILED, at_s=NOW_S - 30 * HOUR_S)], {Fault.STAGE_FAILING}),
        ([replace(FAILED, at_s=NOW_S - 30 * HOUR_S, is_scheduled=False)], set()),
        ([EMPTY], {Fault.STAGE_EMPTY}),
    ],
)
def test_tasks(states: list[StageState], expected: set[str]) -> None:
    facts = judge_stages(states, NOW_S)
    assert faults(facts) == expected
    assert all(one.subject in one.detail for one in facts)


def test_disks() -> None:
    facts = judge_disks({"/lake": 0.04, "/raw": 0.06}, LIMITS)
    assert [one.subject for one in facts if one.needs_person] == ["/lake"]


def test_the_disk_of_a_folder_is_asked_once_and_what_is_no_folder_never(tmp_path) -> None:
    (tmp_path / "lake").mkdir()
    (tmp_path / "raw").mkdir()
    paths = Paths(lake=str(tmp_path / "lake"), raw=str(tmp_path / "raw"), out=str(tmp_path / "out"))
    (free,) = read_free_shares(paths).values()
    usage = shutil.disk_usage(tmp_path)
    assert free == pytest.approx(usage.free / usage.total, abs=0.01)
    assert read_free_shares(Paths(lake="s3://bucket/x", raw="/nowhere", out="/nowhere")) == {}
