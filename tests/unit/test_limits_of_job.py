"""A job's limits from all that says something about it; what cannot be read stops the jobs that it is about."""

from __future__ import annotations

import math
import os
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from controller.limits.limits_of_job import LimitsReader, open_limits
from include.control.approvals import NOBODY, Approval, ApprovalStore
from include.control.holds import Hold, HoldStore
from include.settings import SETTINGS_FILE_VARIABLE, Settings, check_settings
from models.control.state import Mode

AT = datetime(2026, 11, 20, 18, tzinfo=UTC)  # a Friday
NOW_S = AT.timestamp()
IDS = {"source": "v1", "sink": "v2"}
LIVE = {"rest_url": "http://j:8081", "slots_max": 32, "slots_total": 100}


def settings_of(limits: dict[str, object], cluster: dict[str, object] | None = None, **more: object) -> Settings:
    return check_settings({"limits": limits, "clusters": {"live": LIVE | (cluster or {})}, **more})


JOBS = {"live/orders", "live/rides"}


def limits_of(settings: Settings, job: str = "orders", *, holds=(), approvals=(), now_s: float = NOW_S):
    reader = LimitsReader(lambda: settings, lambda clusters, now: holds, lambda now: approvals, lambda: now_s)
    return reader.read().limits_of("live", job, IDS, JOBS)


@pytest.mark.covers("apply_review 20")
def test_all_levels_become_the_strictest() -> None:
    fleet = {
        "mode": "auto", "slots_max": 20, "rescales_per_hour": 9, "steps": {"up_max_slots": 8, "down_max_share": 0.5},
        "jobs": {"live/orders": {"slots_max": 30, "slots_min": 2, "mode": "approve", "steps": {"up_max_slots": 4}}},
    }  # fmt: skip
    cluster = {"limits": {"cooldown_s": 900, "rescales_per_hour": 4, "allows_falls": False, "slots_min": 3}}
    result = limits_of(settings_of(fleet, cluster, apply={"foreign_change_hold_h": 2, "block_h": 1}))
    assert (result.mode, result.slots_min, result.slots_max) == (Mode.APPROVE, 3, 20)
    assert (result.step_up_max_slots, result.step_down_max_share, result.step_down_max_slots) == (4, 0.5, math.inf)
    assert (result.rescales_per_hour, result.rescales_per_day, result.cooldown_s) == (4, math.inf, 900)
    assert (result.allows_falls, result.is_held, result.in_blackout) == (False, False, False)
    assert (result.foreign_change_hold_s, result.block_s, result.cluster_slots_max) == (7200, 3600, 100)
    other = limits_of(settings_of(fleet, cluster), "rides")
    assert (other.mode, other.slots_max, other.step_up_max_slots) == (Mode.AUTO, 20, 8)


@pytest.mark.covers("apply_review 20")
def test_blackouts_of_all_levels_count_and_are_named() -> None:
    evening = {"cron": "0 18 * * *", "duration_s": 3600, "time_zone": "UTC"}
    berlin = {"cron": "0 19 * * 5", "duration_s": 60, "time_zone": "Europe/Berlin"}
    fleet = {"blackouts": {"evening": evening}, "jobs": {"live/orders": {"blackouts": {"friday": berlin}}}}
    result = limits_of(settings_of(fleet))
    assert result.in_blackout
    assert "limits.blackouts: evening" in result.blackout_reason
    assert "friday" in result.blackout_reason
    assert "friday" not in limits_of(settings_of(fleet), now_s=NOW_S + 60).blackout_reason
    assert not limits_of(settings_of(fleet), now_s=NOW_S + 3600).in_blackout


def test_a_pin_is_by_operator_or_for_all_and_ends() -> None:
    def pinned(pin: object, **more: object):
        return limits_of(settings_of({"jobs": {"live/orders": {"pin": pin, **more}}}))

    assert (pinned(4).pin_all, pinned(4).pin) == (4, None)
    assert pinned({"sink": 3}).pin == {"v2": 3}
    assert pinned({"sink": 3}, pin_until="2026-11-20T18:00:00Z").pin is None
    assert pinned({"sink": 3}, pin_until="2026-11-20T18:00:01Z").pin == {"v2": 3}
    unknown = pinned({"snik": 3})
    assert unknown.is_held
    assert "['snik']" in unknown.hold_reason


def test_a_hold_is_of_everything_a_cluster_or_a_job() -> None:
    settings = settings_of({"mode": "auto"})
    both = ["orders", "rides"]
    for scope, jobs in (("all", both), ("live", both), ("live/orders", ["orders"])):
        holds = [Hold(scope, "bad deploy", "ada")]
        assert [job for job in both if limits_of(settings, job, holds=holds).is_held] == jobs
    assert "by ada: bad deploy" in limits_of(settings, holds=[Hold("live", "bad deploy", "ada")]).hold_reason
    assert limits_of(settings_of({}, {"limits": {"is_held": True}})).hold_reason == "clusters.live.limits.is_held"


@pytest.mark.parametrize(
    ("scope", "held"),
    [("Live", "everything"), ("ALL", "everything"), ("*", "everything"), ("l", "everything"), ("", "everything"),
     (" live ", "everything"), ("liv/orders", "everything"), ("live/Orders", "live"), ("live/ orders", "live"),
     ("live/", "live"), ("live/*", "live"), ("live/rides", "rides")],
)  # fmt: skip
@pytest.mark.covers("harm hold-unknown")
def test_a_hold_that_names_what_nobody_knows_holds_the_cluster_or_everything(scope: str, held: str) -> None:
    settings = check_settings(
        {"limits": {"mode": "auto"}, "clusters": {"live": LIVE, "spare": LIVE | {"rest_url": "http://spare:8081"}}}
    )
    reader = LimitsReader(lambda: settings, lambda clusters, now: [Hold(scope)], lambda now: (), lambda: NOW_S)
    result = reader.read()
    expected = {"everything": (True, True, True), "live": (True, True, False), "rides": (False, True, False)}
    jobs = [("live", "orders"), ("live", "rides"), ("spare", "orders")]
    assert tuple(result.limits_of(*job, IDS, JOBS).is_held for job in jobs) == expected[held]


def test_answers_are_of_the_job_and_by_vertex_id() -> None:
    yes = Approval("live", "orders", "s1", {"source": 1}, {"source": 2, "v2": 3}, True, "ada", 1.0, 2.0)
    stale = Approval("live", "orders", "s2", {}, {"gone": 2}, True)
    no = Approval("live", "orders", "s3", {}, {"gone": 2}, False)
    other = Approval("live", "rides", "s4", {}, {"source": 2}, True)
    result = limits_of(settings_of({}), approvals=[yes, stale, no, other]).approvals
    assert [(one.step_id, one.before, one.target) for one in result] == [
        ("s1", {"v1": 1}, {"v1": 2, "v2": 3}),
        ("s3", {}, {}),
    ]


@pytest.fixture
def opened(tmp_path, monkeypatch):
    """The reader of an installation with a file of its own, and the file."""
    path = tmp_path / "settings.toml"
    path.write_text('[clusters.live]\nrest_url = "http://j:8081"\nlimits.mode = "auto"\n')
    monkeypatch.setenv(SETTINGS_FILE_VARIABLE, str(path))
    (tmp_path / "lake").mkdir()
    clock = [NOW_S]
    settings = check_settings({"paths": {"lake": str(tmp_path / "lake")}})
    reader = open_limits(settings, lambda: clock[0])

    def read(seconds: float = 60.0):
        clock[0] += seconds
        return reader.read().limits_of("live", "orders", IDS, JOBS)

    return read, path


@pytest.mark.covers("apply_review 11")
def test_a_changed_file_counts_at_once_and_a_broken_one_stops_everything(opened, caplog) -> None:
    read, path = opened
    assert read().mode is Mode.AUTO
    path.write_text('[clusters.live]\nrest_url = "http://j:8081"\nlimits.mode = "dry-run"\n')
    assert (read().mode, read(0).settings_changed, read(1.9).settings_changed) == (Mode.OFF, True, True)
    result = read(0.2)
    assert (result.mode, result.settings_changed) == (Mode.DRY_RUN, False)
    path.write_text("[clusters.live\n")
    for _ in range(3):
        result = read()
        assert (result.mode, result.settings_changed) == (Mode.OFF, False)
        assert "is no TOML file" in result.mode_reason
    assert len([one for one in caplog.records if "nothing is sent until they can" in one.message]) == 1
    path.unlink()
    assert "does not exist" in read().mode_reason
    path.write_text('[clusters.live]\nrest_url = "http://j:8081"\nlimits.mode = "auto"\n')
    read()
    assert read().mode is Mode.AUTO


def test_holds_and_answers_of_the_lake_count_at_once(opened, tmp_path) -> None:
    read, _ = opened
    lake = str(tmp_path / "lake")
    store = HoldStore(lake)
    assert not read().is_held
    store.write(Hold("live/orders", "bad deploy", "ada", NOW_S, NOW_S + 1000))
    assert read().is_held
    assert not read(2000).is_held
    store.write(Hold("all"))
    assert read().is_held
    (name,) = store.read_named(NOW_S + 1e5)
    store.release(name)
    assert not read().is_held
    ApprovalStore(lake).write(Approval("live", "orders", "s", {}, {"source": 2}, True, "ada", NOW_S, NOW_S + 1e5))
    assert [one.by for one in read().approvals] == ["ada"]


def test_a_file_of_any_kind_among_the_holds_stops_everything(opened, tmp_path) -> None:
    read, _ = opened
    folder = tmp_path / "lake" / "_control" / "holds"
    folder.mkdir(parents=True)
    wrong = (b"{}", b'{"scope": 3}', b'{"scope": "live", "until_s": "x"}', b'{"scop": "live"}')
    for content in (b"", b"{", b"[]", b"\xff", *wrong):
        (folder / "stop").write_bytes(content)
        assert read().is_held, content
        assert "stop in _control/holds is no hold" in read().hold_reason
    (folder / "stop").unlink()
    assert not read().is_held


def test_a_store_that_cannot_be_read_stops_everything(opened, tmp_path) -> None:
    read, _ = opened
    lake = tmp_path / "lake"
    lake.rename(tmp_path / "gone")
    assert read().is_held
    assert "the holds cannot be read" in read().hold_reason
    (tmp_path / "gone").rename(lake)
    assert not read().is_held
    unknown = open_limits(check_settings({}).with_values({"paths.lake": "hdfs://nn/lake"}), lambda: NOW_S)
    assert "cannot be read" in unknown.read_limits("live", "orders", IDS).hold_reason


@pytest.mark.parametrize(
    ("value", "is_held"),
    [("all", True), ("live", True), ("live/orders", True), ("live/rides", False), ("Live", True), ("lvie/orders", True),
     (" , ", False), ("live/rides, live/orders", True), ("live/Orders", True), ("live/nobody", True), ("ALL", True),
     ("*", True), ("live/", True), ("live/*", True), ("/", True)],
)  # fmt: skip
@pytest.mark.covers("apply_review 11")
def test_the_variable_holds_and_a_slip_in_it_holds_everything(opened, monkeypatch, value: str, is_held: bool) -> None:
    read, _ = opened
    monkeypatch.setenv("TIDEWISE_HOLD", value)
    assert read().is_held is is_held


def test_limits_that_cannot_be_formed_stop_the_job() -> None:
    settings = settings_of({"slots_min": 4})
    broken = settings.model_copy(update={"limits": settings.limits.model_copy(update={"slots_min": 99})})
    result = limits_of(broken)
    assert result.mode is Mode.OFF
    assert "cannot be formed" in result.mode_reason
    assert os.environ.get("TIDEWISE_HOLD") is None


def test_an_answer_has_an_id_of_its_own_and_reaches_as_far_as_the_settings_say(opened, tmp_path) -> None:
    read, _ = opened
    store = ApprovalStore(str(tmp_path / "lake"))
    yes = Approval("live", "orders", "s", {}, {"source": 2}, True, "ada", NOW_S, NOW_S + 1e5)
    for reported in (yes, replace(yes, by="bob"), replace(yes, is_approved=False, by=NOBODY)):
        store.write(reported)
    limits = read()
    assert limits.approval_band == 0.25
    assert sorted((one.by, one.is_approved) for one in limits.approvals) == [("", False), ("ada", True), ("bob", True)]
    assert len({one.approval_id for one in limits.approvals}) == 3
    store.write(yes)  # the same answer, written again
    assert {one.approval_id for one in read().approvals} == {one.approval_id for one in limits.approvals}
    store.write(replace(yes, at_s=NOW_S + 1))  # another one
    assert {one.approval_id for one in read().approvals} != {one.approval_id for one in limits.approvals}
