"""Each fault of the fleet's health is reported beyond its threshold, and no longer below it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fleet.facts import ClusterFacts, HealthFact, HoldFact, JobFacts, ModelFacts, WaitingFact
from fleet.health import Fault, judge_cluster, judge_jobs, judge_models, judge_raw_folder
from include.settings import Health

NOW_S = 1_795_000_000.0
HOUR_S = 3600.0
LIMITS = Health()
WELL = ClusterFacts("prod", "auto", "here:1", NOW_S - 10, NOW_S - HOUR_S, NOW_S - HOUR_S, 1000, 10, 0)
MODELS = ModelFacts(NOW_S - HOUR_S, "m1", "passed", NOW_S - HOUR_S)
JOB = JobFacts("prod", "orders", "auto", "RUNNING", 4, None, None, "planned", "", NOW_S - HOUR_S)
WAITING = WaitingFact("approval", "prod", "orders", "step-1", NOW_S, "2 -> 4", "make approve")
CHANGED = HoldFact("change", "prod/orders", "", "somebody else changed the job", NOW_S, NOW_S + HOUR_S, "make release")


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


@pytest.mark.parametrize(
    ("models", "expected"),
    [
        (MODELS, set()),
        (replace(MODELS, trained_at_s=NOW_S - 50 * HOUR_S), {Fault.MODELS_OLD}),
        (replace(MODELS, gate="failed"), {Fault.CHAMPION_REFUSED}),
        (replace(MODELS, gate="kept"), {Fault.CHAMPION_REFUSED}),
        (ModelFacts(), {Fault.MODELS_OLD}),
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
        (JOB, [replace(CHANGED, kind="person")], set()),
    ],
)
def test_jobs(job: JobFacts, holds: list[HoldFact], expected: set[str]) -> None:
    assert faults(judge_jobs([job], holds, LIMITS)) == expected


def test_the_raw_folder() -> None:
    assert faults([judge_raw_folder("/mnt/raw", False)]) == {Fault.RAW_FOLDER_GONE}
    assert faults([judge_raw_folder("/mnt/raw", True)]) == set()
