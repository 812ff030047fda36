"""The guard: every refusal by name, its edge, and a step that passes them all."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from include.control.step_guard import RULES, DueStep, Refusal, Surroundings, added_slots, guard, mode_of
from include.settings import Apply, Cluster, ClusterLimits, FleetLimits, Planner, Settings

NOW = datetime(2026, 11, 20, 18, tzinfo=UTC)
STEP = DueStep(
    step_id="s",
    plan_as_of=NOW - timedelta(minutes=20),
    cluster="live",
    job="clicks",
    job_id="0" * 32,
    apply_at=NOW - timedelta(minutes=1),
    valid_until=NOW + timedelta(hours=2),
    parallelism_from={"src": 1, "map": 3},
    parallelism_to={"src": 1, "map": 5},
    expected_recovery_s=90.0,
)
AROUND = Surroundings(
    now=NOW,
    mode="auto",
    has_rest_url=True,
    running={"src": 1, "map": 3},
    observed_until=NOW - timedelta(minutes=30),
    load_per_s=100.0,
    forecast_q50_per_s=100.0,
    forecast_q90_per_s=120.0,
    last_rescale_at=NOW - timedelta(hours=1),
    slots_max=8,
    free_slots=4,
)
OPTIONS = {
    "apply": Apply(max_plan_age_h=2, load_band=0.5),
    "limits": FleetLimits(cooldown_s=300),
    "planner": Planner(max_input_age_h=3),
}


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.setenv("TIDEWISE_SETTINGS", str(tmp_path / "none.toml"))
    return Settings(**OPTIONS)


def test_a_step_that_breaks_no_rule_passes(settings: Settings) -> None:
    assert guard(STEP, AROUND, settings) is None


CASES: list[tuple[Refusal, dict[str, Any], dict[str, Any]]] = [
    (Refusal.SUPERSEDED, {"superseded": True}, {}),
    (Refusal.EXPIRED, {"valid_until": NOW - timedelta(seconds=1)}, {}),
    (Refusal.STALE_PLAN, {"plan_as_of": NOW - timedelta(hours=2, seconds=1)}, {}),
    (Refusal.STALE_METRICS, {}, {"observed_until": NOW - timedelta(hours=3, seconds=1)}),
    (Refusal.STALE_METRICS, {}, {"observed_until": None}),
    (Refusal.NO_REST_URL, {}, {"has_rest_url": False}),
    (Refusal.UNKNOWN_JOB, {}, {"running": None}),
    (Refusal.NOT_RUNNING, {}, {"running": {}}),
    (Refusal.NOT_RUNNING, {"of_net": True}, {"running": {}}),
    (Refusal.NOT_RUNNING, {}, {"restarting": True}),
    (Refusal.NOT_RUNNING, {"of_net": True, "parallelism_to": {"src": 1, "map": 2}}, {"restarting": True}),
    (Refusal.EXCEEDS_SLOTS, {"of_net": True}, {"restarting": True, "free_slots": 1}),
    (Refusal.UNKNOWN_OPERATOR, {}, {"running": {"src": 1, "mapper": 3}}),
    (Refusal.UNKNOWN_OPERATOR, {}, {"running": {"src": 1, "map": 3, "sink": 1}}),
    (Refusal.PARALLELISM_CHANGED, {}, {"running": {"src": 1, "map": 4}}),
    (Refusal.EXCEEDS_SLOTS, {"parallelism_to": {"src": 1, "map": 9}}, {"free_slots": 99}),
    (Refusal.EXCEEDS_SLOTS, {}, {"free_slots": 1}),
    (Refusal.EXCEEDS_SLOTS, {}, {"free_slots": -1}),
    (Refusal.EXCEEDS_SLOTS, {"parallelism_to": {"src": 1, "map": 4}}, {"free_slots": 0}),
    (Refusal.EXCEEDS_SLOTS, {"parallelism_to": {"src": 1, "map": 4}}, {"free_slots": -1}),
    (Refusal.COOLDOWN, {}, {"last_rescale_at": NOW - timedelta(seconds=299)}),
    (Refusal.LOAD_OUTSIDE_BAND, {}, {"load_per_s": 181.0}),
    (Refusal.LOAD_OUTSIDE_BAND, {}, {"load_per_s": 49.0}),
]


@pytest.mark.parametrize(("refusal", "step", "around"), CASES)
def test_each_broken_rule_is_named(
    settings: Settings, refusal: Refusal, step: dict[str, Any], around: dict[str, Any]
) -> None:
    verdict = guard(replace(STEP, **step), replace(AROUND, **around), settings)
    assert verdict is not None
    assert verdict[0] == refusal
    assert verdict[1]


def test_every_refusal_has_a_rule_and_a_case() -> None:
    assert set(RULES) == set(Refusal) == {refusal for refusal, *_ in CASES}


@pytest.mark.parametrize(
    ("step", "around"),
    [
        ({"valid_until": NOW}, {}),
        ({"plan_as_of": NOW - timedelta(hours=2)}, {}),
        ({}, {"observed_until": NOW - timedelta(hours=3)}),
        ({}, {"has_rest_url": False, "mode": "dry-run"}),
        ({}, {"free_slots": 2}),
        ({}, {"free_slots": None}),
        ({"parallelism_to": {"src": 1, "map": 2}}, {"free_slots": 0}),
        ({}, {"last_rescale_at": NOW - timedelta(seconds=300)}),
        ({}, {"last_rescale_at": None}),
        ({}, {"load_per_s": 180.0}),
        ({}, {"load_per_s": 50.0}),
        ({}, {"load_per_s": None}),
        ({}, {"forecast_q50_per_s": None}),
        ({"of_net": True}, {"restarting": True}),
        ({"parallelism_from": {"src": 1, "map": 3, "gone": 1}}, {}),
    ],
)
def test_the_edge_of_each_rule_passes(settings: Settings, step: dict[str, Any], around: dict[str, Any]) -> None:
    assert guard(replace(STEP, **step), replace(AROUND, **around), settings) is None


@pytest.mark.parametrize(
    ("step", "around", "detail"),
    [
        (
            {"superseded": True},
            {},
            "a later step of the same plan is due, or the reactive controller has replaced this one",
        ),
        ({"valid_until": NOW - timedelta(seconds=90)}, {}, "it was valid until 90 s ago"),
        (
            {"plan_as_of": NOW - timedelta(hours=2.5)},
            {},
            "the plan is 2.5 h old, more than apply.max_plan_age_h = 2",
        ),
        ({}, {"observed_until": None}, "the job was not observed within two days"),
        (
            {},
            {"observed_until": NOW - timedelta(hours=4)},
            "metrics are 4.0 h old, more than planner.max_input_age_h = 3",
        ),
        ({}, {"has_rest_url": False}, "mode auto needs clusters.live.rest_url"),
        ({}, {"running": None}, "the cluster has no job 00000000000000000000000000000000"),
        ({}, {"running": {}}, "the job or one of its vertices is not RUNNING"),
        ({}, {"restarting": True}, "the job restarts; until it runs, only the reactive controller may enlarge it"),
        (
            {},
            {"running": {"src": 1, "mapper": 3}},
            "the job's operators are not those of the plan: ['map', 'mapper']",
        ),
        (
            {},
            {"running": {"src": 2, "map": 4}},
            "changed since the plan was made: map runs at 4 instead of 3, src runs at 2 instead of 1",
        ),
        ({"parallelism_to": {"src": 1, "map": 9}}, {}, "9 slots, more than clusters.live.slots_max = 8"),
        ({}, {"free_slots": 1}, "2 more slots wanted, 1 free"),
        (
            {},
            {"last_rescale_at": NOW - timedelta(seconds=200)},
            "last rescale 200 s ago, less than limits.cooldown_s = 300",
        ),
        ({}, {"load_per_s": 181.0}, "load is 181/s, the forecast for now q50 100/s, q90 120/s, band 0.5"),
    ],
)
def test_the_detail_says_what_is_wrong_with_numbers(
    settings: Settings, step: dict[str, Any], around: dict[str, Any], detail: str
) -> None:
    verdict = guard(replace(STEP, **step), replace(AROUND, **around), settings)
    assert verdict is not None
    assert verdict[1] == detail


def test_slots_are_shared_by_the_operators_of_a_job() -> None:
    assert added_slots(STEP, AROUND) == 2
    assert added_slots(replace(STEP, parallelism_to={"src": 3, "map": 3}), AROUND) == 0


def test_a_cluster_may_have_a_mode_of_its_own(settings: Settings) -> None:
    live = settings.model_copy(
        update={"clusters": {"live": Cluster(rest_url="http://jobmanager:8081", limits=ClusterLimits(mode="auto"))}}
    )
    assert (mode_of(live, "live"), mode_of(live, "other")) == ("auto", "dry-run")
