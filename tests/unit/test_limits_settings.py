"""Limits in the settings: what is refused, how levels combine, and which mode a job has."""

from __future__ import annotations

import json

import pytest

from include.settings import SETTINGS_FILE_VARIABLE, Settings, SettingsError, check_settings, load_settings
from include.settings.limits import MODES, resolve_mode

LIVE = {"rest_url": "http://jobmanager:8081"}


def fleet(limits: dict[str, object] | None = None, cluster: dict[str, object] | None = None) -> dict[str, object]:
    return {"limits": limits or {}, "clusters": {"live": LIVE | (cluster or {})}}


REFUSED = [
    (fleet({"slots_min": 9, "slots_max": 8}), "slots_min = 9 is above slots_max = 8"),
    (fleet({"slots_min": 65}), "limits.slots_min = 65 is above clusters.live.slots_max = 64"),
    (
        fleet({"slots_max": 3}, {"limits": {"slots_min": 4}}),
        "clusters.live.limits.slots_min = 4 is above limits.slots_max",
    ),
    (fleet({"jobs": {"live/a": {"slots_min": 70}}}), 'limits.jobs."live/a".slots_min = 70 is above'),
    (fleet({"jobs": {"live/a": {"pin": 65}}}), "pin = 65 is above clusters.live.slots_max = 64"),
    (fleet({"jobs": {"live/a": {"pin": {"s": 9}, "slots_max": 8}}}), "pin = 9 is above slots_max = 8"),
    (fleet({"slots_min": 4, "jobs": {"live/a": {"pin": 2}}}), "pin = 2 is below limits.slots_min = 4"),
    (fleet({"jobs": {"live/a": {"pin": 0}}}), "must be a whole number from 1"),
    (fleet({"jobs": {"live/a": {"pin": {}}}}), "must be a whole number from 1"),
    (fleet({"jobs": {"live/a": {"pin": True}}}), "must be a whole number from 1"),
    (fleet({"jobs": {"live/a": {"pin_until": "2026-11-20T00:00:00Z"}}}), "pin_until has no pin"),
    (fleet({"jobs": {"live/a": {"pin": 2, "pin_until": "2026-11-20T00:00:00"}}}), "has no time zone"),
    (fleet({"jobs": {"Live/a": {}}}), 'there is no cluster "Live"; write live'),
    (fleet({"jobs": {"orders": {}}}), 'must be "cluster/job"'),
    (fleet({}, {"limits": {"looser_jobs": ["orders"]}}), 'looser_jobs names "orders", which has no section'),
    (fleet({"rescales_per_hour": 9, "rescales_per_day": 4}), "rescales_per_hour = 9 is above rescales_per_day = 4"),
    (fleet({"mode": "on"}), "'off', 'dry-run', 'approve' or 'auto'"),
    (fleet({"blackouts": {"n": {"cron": "hello", "duration_s": 60}}}), "has 1 fields, not five"),
    (fleet({"blackouts": {"n": {"cron": "0 0 31 2 *", "duration_s": 60}}}), "never comes"),
    (fleet({"blackouts": {"n": {"cron": "0 8 * * *", "duration_s": 60, "time_zone": "Mars/X"}}}), "no IANA time zone"),
    (fleet({"blackouts": {"n": {"cron": "0 * * * *", "duration_s": 3600}}}), "would never end"),
    (fleet({"blackouts": {"n": {"cron": "0 8 * * *"}}}), "duration_s: is missing"),
    (fleet({"steps": {"down_max_share": 1.5}}), "less than or equal"),
    ({"clusters": {"live": {"limits": {"mode": "approve"}}}}, "needs rest_url"),
    ({"clusters": {"live": {}}, "limits": {"jobs": {"live/a": {"mode": "auto"}}}}, "needs clusters.live.rest_url"),
    ({"apply": {"mode": "auto"}}, "there is no such key; write limits.mode"),
    ({"apply": {"cooldown_s": 1}}, "there is no such key; write limits.cooldown_s"),
    ({"clusters": {"live": {"apply_mode": "auto"}}}, "write clusters.live.limits.mode"),
    ({"clusters": {"live": {"limits": {"slots_max": 3}}}}, "write clusters.live.slots_max"),
    ({"limits": {"step_up_max_slots": 3}}, "write limits.steps.up_max_slots"),
]


@pytest.mark.parametrize(("values", "why"), REFUSED)
@pytest.mark.covers("apply_review 20")
def test_limits_that_cannot_be_are_refused_in_one_line(values: dict[str, object], why: str) -> None:
    with pytest.raises(SettingsError) as refused:
        check_settings(values)
    line = str(refused.value)
    assert why in line
    assert "\n" not in line
    assert "write" in line or "remove" in line


# (fleet, cluster, job, whether the cluster names the job) -> mode
MODE_RULES = [
    (("dry-run", None, None, False), "dry-run"),
    (("dry-run", "auto", None, False), "auto"),
    (("auto", "approve", None, False), "approve"),
    (("auto", None, "dry-run", False), "dry-run"),
    (("dry-run", None, "auto", False), "dry-run"),
    (("dry-run", "approve", "auto", False), "approve"),
    (("dry-run", "approve", "auto", True), "auto"),
    (("dry-run", None, "auto", True), "auto"),
    (("off", "auto", "auto", True), "off"),
    (("auto", "off", "auto", True), "off"),
    (("auto", "auto", "off", True), "off"),
]


@pytest.mark.parametrize(("levels", "mode"), MODE_RULES)
def test_a_job_is_never_looser_than_its_cluster_unless_the_cluster_names_it(levels, mode) -> None:
    of_fleet, of_cluster, of_job, is_named = levels
    assert resolve_mode(of_fleet, of_cluster, of_job, may_be_looser=is_named) == mode
    cluster = {"limits": {"looser_jobs": ["a"] if is_named else []} | ({"mode": of_cluster} if of_cluster else {})}
    values = fleet({"mode": of_fleet, "jobs": {"live/a": {"mode": of_job} if of_job else {}}}, cluster)
    made = check_settings(values)
    assert made.mode_of("live", "a") == mode
    assert check_settings(json.loads(made.model_dump_json())) == made


def test_whatever_the_job_asks_a_cluster_that_does_not_name_it_decides() -> None:
    for of_fleet in MODES:
        for of_job in MODES:
            result = resolve_mode(of_fleet, None, of_job, may_be_looser=False)
            assert MODES.index(result) <= MODES.index(of_fleet)


@pytest.mark.covers("apply_review 11")
def test_a_variable_for_a_cluster_in_other_capitals_is_refused_by_name(tmp_path, monkeypatch) -> None:
    path = tmp_path / "settings.toml"
    path.write_text('[clusters.Prod]\nrest_url = "http://j:8081"\nlimits.mode = "auto"\n')
    monkeypatch.setenv(SETTINGS_FILE_VARIABLE, str(path))
    monkeypatch.setenv("TIDEWISE__CLUSTERS__prod__LIMITS__MODE", "dry-run")
    with pytest.raises(SettingsError, match="write TIDEWISE__CLUSTERS__Prod__LIMITS__MODE"):
        load_settings()
    monkeypatch.delenv("TIDEWISE__CLUSTERS__prod__LIMITS__MODE")
    monkeypatch.setenv("TIDEWISE__CLUSTERS__Prod__APPLY_MODE", "dry-run")
    with pytest.raises(SettingsError, match=r"write TIDEWISE__CLUSTERS__Prod__LIMITS__MODE$"):
        load_settings()
    monkeypatch.delenv("TIDEWISE__CLUSTERS__Prod__APPLY_MODE")
    for slip in ("Prdo", "Production", "staging"):
        with monkeypatch.context() as patch:
            patch.setenv(f"TIDEWISE__CLUSTERS__{slip}__LIMITS__MODE", "dry-run")
            with pytest.raises(SettingsError, match=f"no cluster '{slip}'; write one of Prod"):
                load_settings()
    monkeypatch.setenv("TIDEWISE__CLUSTERS__Prod__LIMITS__MODE", "dry-run")
    assert load_settings().mode_of("Prod", "a") == "dry-run"


@pytest.mark.parametrize("variable", ["TIDEWISE_HOLDS", "TIDEWISE__HOLD", "tidewise_hold", "TIDEWISE_HODL"])
@pytest.mark.covers("apply_review 11")
def test_a_kill_switch_that_is_spelt_wrongly_is_refused(monkeypatch, variable: str) -> None:
    monkeypatch.setenv(variable, "all")
    with pytest.raises(SettingsError, match=r"write TIDEWISE_HOLD$"):
        load_settings()


def test_limits_are_read_from_variables(monkeypatch) -> None:
    monkeypatch.setenv("TIDEWISE__CLUSTERS__recorded__LIMITS__BLACKOUTS__night__CRON", "0 22 * * *")
    monkeypatch.setenv("TIDEWISE__CLUSTERS__recorded__LIMITS__BLACKOUTS__night__DURATION_S", "3600")
    monkeypatch.setenv("TIDEWISE__LIMITS__STEPS__UP_MAX_SLOTS", "4")
    monkeypatch.setenv("TIDEWISE__LIMITS__JOBS", '{"recorded/word count": {"pin": {"Source: a": 2}}}')
    made = load_settings()
    assert made.cluster("recorded").limits.blackouts["night"].duration_s == 3600
    assert made.limits.steps.up_max_slots == 4
    assert made.job_limits("recorded", "word count").pin == {"Source: a": 2}


def test_an_answer_counts_for_the_shortest_time_of_all_levels() -> None:
    made = check_settings(
        fleet({"jobs": {"live/a": {"approval_expires_h": 20}}}, {"limits": {"approval_expires_h": 2}})
    )
    assert [made.approval_expires_h(*job) for job in (("live", "a"), ("other", "a"))] == [2, 12]
    assert not made.asks_for_approval
    assert check_settings(fleet({"jobs": {"live/a": {"mode": "approve"}}})).asks_for_approval
    assert Settings().limits.mode == "dry-run"
