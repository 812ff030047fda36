"""Settings that change while the controller runs: what tightens counts at once, what loosens when it has stood."""

from __future__ import annotations

import os
from datetime import UTC, datetime

import pytest

from controller.limits.limits_of_job import open_limits
from controller.limits.lost_restraints import OF_SETTINGS, find_lost_restraints, name_confirmation
from controller.limits.settings_memory import FOLDER
from include.control.approvals import ApprovalStore, WaitingStep, answer_step
from include.control.lifted_blocks import LiftedBlock, LiftedBlockStore
from include.settings import SETTINGS_FILE_VARIABLE, SettingsError, check_settings, load_settings
from models.control.state import Mode

NOW_S = datetime(2026, 11, 20, 18, tzinfo=UTC).timestamp()
STRICT = """
[limits]
mode = "auto"
slots_max = 20
rescales_per_day = 4
[limits.blackouts.evening]
cron = "0 0 * * *"
duration_s = 86000
[limits.jobs."live/orders"]
is_held = true
[clusters.live]
rest_url = "http://j:8081"
slots_max = 8
slots_total = 40
limits.mode = "dry-run"
"""
LOOSE = '[limits]\nmode = "auto"\n[clusters.live]\nrest_url = "http://j:8081"\n'


class Watched:
    """An installation's limits by the time of a clock."""

    def __init__(self, path) -> None:
        self.path, self.now_s = path, NOW_S
        settings = check_settings({"paths": {"lake": str(path.parent / "lake"), "raw": str(path.parent / "raw")}})
        self.reader = open_limits(settings, lambda: self.now_s, load_settings)

    def start_anew(self, after_s: float = 0.0) -> None:
        """Go on as another process does."""
        self.now_s += after_s
        settings = check_settings({"paths": {"lake": str(self.path.parent / "lake"), "raw": "raw"}})
        self.reader = open_limits(settings, lambda: self.now_s, load_settings)

    def write(self, text: str, *, is_confirmed: bool = True) -> None:
        """Write the file; what it leaves out, a person has confirmed unless it is said otherwise."""
        self.path.write_text(text)
        os.utime(self.path, (self.now_s, self.now_s))
        if is_confirmed:
            self.confirm()

    def confirm(self) -> None:
        lake = str(self.path.parent / "lake")
        LiftedBlockStore(lake).write(LiftedBlock(OF_SETTINGS, OF_SETTINGS, name_confirmation()))

    def limits(self, after_s: float = 0.0, cluster: str = "live"):
        self.now_s += after_s
        return self.reader.read_limits(cluster, "orders", {"source": "v1"})


@pytest.fixture
def watched(tmp_path, monkeypatch):
    (tmp_path / "lake").mkdir()
    path = tmp_path / "settings.toml"
    monkeypatch.setenv(SETTINGS_FILE_VARIABLE, str(path))
    path.write_text(STRICT)
    os.utime(path, (NOW_S - 100, NOW_S - 100))
    return Watched(path)


def strictness(found) -> tuple[object, ...]:
    return (
        found.mode,
        found.slots_max,
        found.rescales_per_day,
        found.cluster_slots_max,
        found.is_held,
        found.in_blackout,
    )


STRICT_FOUND = (Mode.DRY_RUN, 8, 4, 40, True, True)
LOOSE_FOUND = (Mode.AUTO, 64, float("inf"), float("inf"), False, False)


@pytest.mark.covers("harm settings-loosened")
def test_what_loosens_counts_when_the_file_has_stood_for_a_minute(watched) -> None:
    assert strictness(watched.limits()) == STRICT_FOUND
    watched.write(LOOSE)
    assert watched.limits(0).settings_changed
    assert watched.limits(1.9).settings_changed
    for _ in range(5):
        assert strictness(watched.limits(11)) == STRICT_FOUND
    assert strictness(watched.limits(4)) == LOOSE_FOUND


LOST = {
    "cut at a line": STRICT[: STRICT.index("slots_max = 8")],
    "a section": STRICT.replace('[limits.jobs."live/orders"]\nis_held = true\n', ""),
    "a key": STRICT.replace("rescales_per_day = 4\n", ""),
    "a key of a cluster": STRICT.replace('limits.mode = "dry-run"\n', ""),
    "a blackout": STRICT.replace('[limits.blackouts.evening]\ncron = "0 0 * * *"\nduration_s = 86000\n', ""),
}


@pytest.mark.parametrize("lost", LOST)
def test_what_is_left_out_loosens_nothing_until_a_person_confirms_the_file(watched, lost: str, caplog) -> None:
    watched.limits()
    watched.write(LOST[lost], is_confirmed=False)
    watched.limits()
    for seconds in (3, 61, 86_400, 30 * 86_400):
        result = watched.limits(seconds)
        assert (result.mode, result.slots_max, result.rescales_per_day) == STRICT_FOUND[:3]
        assert (result.is_held, result.in_blackout) == (True, True)
    assert len([line for line in caplog.messages if "says no more" in line]) == 1
    watched.confirm()
    assert strictness(watched.limits()) != STRICT_FOUND


@pytest.mark.parametrize("is_cut_while_down", [False, True])
@pytest.mark.parametrize("lost", LOST)
def test_a_controller_that_starts_anew_knows_what_the_file_said_before(watched, lost: str, is_cut_while_down) -> None:
    watched.limits()
    if not is_cut_while_down:
        watched.write(LOST[lost], is_confirmed=False)
        watched.limits()
    watched.limits(100)
    watched.write(LOST[lost], is_confirmed=False)
    for _ in range(3):
        watched.start_anew(after_s=900)
        for seconds in (0, 100):
            result = watched.limits(seconds)
            assert (result.mode, result.slots_max, result.rescales_per_day) == STRICT_FOUND[:3]
            assert (result.is_held, result.in_blackout, result.cluster_slots_max) == (True, True, 40)
    watched.confirm()
    watched.limits()
    watched.start_anew()
    assert strictness(watched.limits()) != STRICT_FOUND


def test_a_change_that_loosens_has_to_stand_also_across_a_restart(watched) -> None:
    watched.limits()
    watched.write(STRICT.replace("is_held = true", "is_held = false"), is_confirmed=False)
    watched.start_anew(after_s=20)
    assert watched.limits().is_held
    assert not watched.limits(41).is_held


def test_a_memory_that_cannot_be_read_is_told_once_and_stops_nothing(watched, caplog) -> None:
    watched.limits()
    (memory,) = (watched.path.parent / "lake/_control/settings").iterdir()
    for content in (b"{", b'[{"no such key": 1}]', b"[3]"):
        memory.write_bytes(content)
        watched.start_anew()
        assert strictness(watched.limits()) == STRICT_FOUND
    assert len([line for line in caplog.messages if "is not known" in line]) == 3


@pytest.mark.parametrize(
    ("lost", "strict"),
    [
        ("slots_total = 40\n", lambda found: found.cluster_slots_max == 40),
        ('actuator = "none"\n', lambda found: found.mode is Mode.OFF),
        ("block_h = 48\n", lambda found: found.block_s == 48 * 3600),
        ("memory.heap_share_max = 0.5\n", lambda found: found.guards.heap_share_max == 0.5),
        ('approve = ["boss"]\n', lambda found: not found.approvals),
    ],
)
def test_what_limits_requests_and_people_is_lost_as_little(watched, lost: str, strict) -> None:
    text = """[limits]\nmode = "auto"\n[roles]\napprove = ["boss"]
[apply]\nblock_h = 48\nmemory.heap_share_max = 0.5
[clusters.live]\nrest_url = "http://j:8081"\nslots_total = 40\nactuator = "none"\n"""
    assert lost in text
    watched.write(text)
    step = WaitingStep("live", "orders", "s1", datetime.fromtimestamp(NOW_S, UTC), "", {"v1": 1}, {"v1": 2})
    ApprovalStore(str(watched.path.parent / "lake")).write(answer_step(step, True, "oncall", NOW_S, NOW_S + 1e6))
    watched.limits(100)
    assert not watched.limits().approvals
    watched.write(text.replace(lost, ""), is_confirmed=False)
    for seconds in (0, 100, 9000):
        assert strict(watched.limits(seconds))
    watched.confirm()
    assert not strict(watched.limits())


def test_a_confirmation_is_of_one_content_of_the_file(watched) -> None:
    watched.limits()
    watched.write(LOST["a key"])
    watched.limits()
    assert watched.limits(100).rescales_per_day == float("inf")
    watched.write(LOST["a key"].replace("slots_max = 8\n", ""), is_confirmed=False)
    watched.limits()
    assert watched.limits(1000).slots_max == 8


def test_who_lifts_the_block_of_a_job_confirms_no_settings(watched) -> None:
    watched.limits()
    watched.write(LOST["a key"], is_confirmed=False)
    watched.limits()
    lifts = LiftedBlockStore(str(watched.path.parent / "lake"))
    lifts.write(LiftedBlock("live", "orders", name_confirmation()))
    assert watched.limits(100).rescales_per_day == 4
    watched.confirm()
    assert watched.limits().rescales_per_day == float("inf")


def test_of_the_versions_before_those_count_that_say_what_is_lost(watched) -> None:
    watched.limits()
    lost = LOST["a key"]
    watched.write(lost.replace("slots_max = 8", "slots_max = 5"), is_confirmed=False)
    watched.limits()
    assert watched.limits(100).slots_max == 5
    watched.write(lost.replace("slots_max = 8", "slots_max = 7"), is_confirmed=False)
    assert watched.limits().slots_max == 5
    result = watched.limits(100)
    assert (result.rescales_per_day, result.slots_max) == (4, 7)


def test_a_key_that_is_there_again_is_no_loss(watched, caplog) -> None:
    watched.limits()
    for text in (LOST["a key"], STRICT, LOST["a key"]):
        watched.write(text, is_confirmed=False)
        watched.limits()
        watched.limits(100)
    told = [line for line in caplog.messages if "says no more" in line]
    assert ["limits.rescales_per_day" in line for line in told] == [True, True]


def test_what_counts_is_kept_once_for_the_next_controller(watched) -> None:
    watched.limits()
    (kept,) = (watched.path.parent / "lake/_control/settings").iterdir()
    kept.unlink()
    watched.limits(100)
    assert not kept.exists()
    watched.write(LOOSE)
    watched.limits()
    watched.limits(100)
    assert kept.exists()


def test_a_tick_goes_by_a_file_that_has_stood_though_a_restraint_of_before_counts_as_well(watched) -> None:
    watched.limits()
    watched.write(f"{LOST['a key']}[planner]\nhorizon_h = 7\n", is_confirmed=False)
    watched.limits()
    before_h = watched.reader.load_in_force().planner.horizon_h
    assert watched.limits(100).rescales_per_day == 4
    assert (before_h == 7, watched.reader.load_in_force().planner.horizon_h) == (False, 7)


def test_what_one_of_several_jobs_loses_is_named() -> None:
    jobs = {"live/orders": {"slots_max": 4}, "live/rides": {"slots_max": 5, "pin": 2}}
    clusters = {"live": {"rest_url": "http://j:8081"}}
    before = check_settings({"clusters": clusters, "limits": {"jobs": jobs}})
    after = check_settings({"clusters": clusters, "limits": {"jobs": {**jobs, "live/rides": {"pin": 2}}}})
    assert find_lost_restraints(before, after) == ['limits.jobs."live/rides".slots_max']
    assert find_lost_restraints(before, before) == []


def test_a_key_that_is_written_with_its_default_needs_no_word(watched) -> None:
    watched.limits()
    watched.write(STRICT.replace("is_held = true", "is_held = false"), is_confirmed=False)
    watched.limits()
    assert watched.limits(3).is_held
    assert not watched.limits(61).is_held


def test_what_tightens_counts_at_once(watched) -> None:
    watched.write(LOOSE)
    watched.limits(100)
    assert strictness(watched.limits(100)) == LOOSE_FOUND
    watched.write(STRICT)
    assert watched.limits(0).mode is Mode.OFF
    assert strictness(watched.limits(2.1)) == STRICT_FOUND


def test_each_change_begins_the_time_anew_and_the_strictest_of_all_holds(watched) -> None:
    watched.limits()
    for slots in (50, 60, 40, 55):
        watched.write(LOOSE.replace('mode = "auto"', f'mode = "auto"\nslots_max = {slots}'))
        watched.limits()
        result = watched.limits(50)
        assert (result.mode, result.slots_max, result.is_held) == (Mode.DRY_RUN, 8, True)
    assert watched.limits(11).slots_max == 55
    watched.write("not toml [")
    assert watched.limits(1).mode is Mode.OFF
    assert watched.limits(500).mode is Mode.OFF
    watched.write(LOOSE)
    watched.limits()
    assert watched.limits(30).slots_max == 55  # what was in force before the file was broken
    assert watched.limits(31).slots_max == 64


def test_a_file_written_just_before_the_start_has_to_stand_as_well(watched) -> None:
    watched.write(LOOSE)
    assert watched.limits(5).settings_changed
    assert watched.limits(50).settings_changed
    assert watched.limits(6).mode is Mode.AUTO
    watched.write(LOOSE)  # once more
    watched.start_anew(after_s=5)
    assert watched.limits().settings_changed
    assert watched.limits(56).mode is Mode.AUTO


def test_of_two_changes_within_a_minute_what_either_tightens_counts(watched) -> None:
    watched.limits()
    for slots in (5, 7):
        watched.write(STRICT.replace("slots_max = 8", f"slots_max = {slots}"))
        assert watched.limits(10).slots_max == 5
    assert watched.limits(60).slots_max == 7


@pytest.mark.parametrize("seconds", [0.0, 5.0, 300.0])
def test_the_time_is_a_setting_and_the_longer_one_holds(watched, seconds: float) -> None:
    watched.write(STRICT + f"[settings]\nloosen_after_s = {seconds}\n")
    watched.limits(100)
    watched.limits(300)
    watched.write(LOOSE + f"[settings]\nloosen_after_s = {seconds}\n")
    watched.limits()
    assert watched.limits(max(seconds, 2.1) - 0.1 if seconds > 2 else 2.1).mode is (
        Mode.AUTO if seconds < 2 else Mode.DRY_RUN
    )
    assert watched.limits(0.2).mode is Mode.AUTO


CUT = STRICT[: STRICT.index("[clusters.live]")].replace('[limits.jobs."live/orders"]\nis_held = true\n', "")


@pytest.mark.parametrize(
    "text",
    ['[limits]\nmode = "auto"\n', LOOSE.replace("clusters.live", "clusters.prod"), CUT],
    ids=["removed", "renamed", "cut at a line"],
)
@pytest.mark.covers("harm settings-loosened")
def test_a_cluster_that_is_no_longer_named_is_stopped_however_long_that_is_so(watched, text: str) -> None:
    watched.limits()
    watched.write(text)
    for seconds in (0, 3, 58, 3600):
        result = watched.limits(seconds)
        assert result.mode is Mode.OFF
    assert "name no cluster 'live' any more" in result.mode_reason
    watched.write(STRICT)
    watched.limits()
    assert watched.limits(61).mode is Mode.DRY_RUN


def test_a_cluster_that_was_never_named_is_at_most_in_dry_run(watched) -> None:
    watched.write(LOOSE)
    watched.limits(100)
    assert watched.limits(100, "from raw files").mode is Mode.DRY_RUN


@pytest.mark.parametrize("has_namesake", [False, True])
@pytest.mark.parametrize("is_gone_at_the_start", [False, True])
@pytest.mark.covers("harm settings-loosened")
def test_a_named_file_that_is_gone_stops_all(
    watched, monkeypatch, tmp_path, has_namesake, is_gone_at_the_start
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    if has_namesake:
        (elsewhere / "settings.toml").write_text(LOOSE)
        os.utime(elsewhere / "settings.toml", (NOW_S - 100, NOW_S - 100))
    if not is_gone_at_the_start:
        watched.limits()
    watched.path.unlink()
    for seconds in (0, 3, 100, 3600):
        result = watched.limits(seconds)
        assert (result.mode, result.settings_changed) == (Mode.OFF, False)
        assert "does not exist" in result.mode_reason
    with pytest.raises(SettingsError, match="does not exist"):
        watched.reader.load_in_force()


@pytest.mark.parametrize("has_other", [False, True])
@pytest.mark.covers("harm settings-loosened")
def test_an_unnamed_file_that_is_gone_stops_all(watched, monkeypatch, tmp_path, has_other) -> None:
    monkeypatch.delenv(SETTINGS_FILE_VARIABLE)
    monkeypatch.chdir(tmp_path)
    file = watched.path.rename(tmp_path / "tidewise.toml")
    if has_other:
        monkeypatch.setattr("include.settings.loading.PROJECT", tmp_path / "project")
        (tmp_path / "project").mkdir()
        (tmp_path / "project" / "tidewise.toml").write_text(LOOSE)
    assert watched.limits().mode is Mode.DRY_RUN
    file.unlink()
    for seconds in (0, 100, 100):
        result = watched.limits(seconds)
        assert (result.mode, "does not exist any more" in result.mode_reason) == (Mode.OFF, True)


def test_of_two_pins_none_is_the_stricter_one(watched) -> None:
    free = STRICT.replace("is_held = true", "").replace(' "dry-run"', ' "auto"').replace('cron = "0 0', 'cron = "0 23')
    free = free.replace("86000", "60")
    watched.write(free)
    watched.limits(100)
    assert watched.limits(100).mode is Mode.AUTO
    watched.write(free.replace('[limits.jobs."live/orders"]', '[limits.jobs."live/orders"]\npin = 6'))
    watched.limits()
    assert watched.limits(30).settings_changed
    result = watched.limits(31)
    assert (result.pin_all, result.mode) == (6, Mode.AUTO)


def test_a_tick_goes_by_what_has_stood_and_the_narrowest_band(watched) -> None:
    watched.limits()
    watched.write(LOOSE + "[apply]\nload_band = 5\nmax_plan_age_h = 1\n[planner]\nobserved_h = 9\n")
    watched.limits()
    watched.limits(30)
    settings = watched.reader.load_in_force()
    assert (settings.apply.load_band, settings.apply.max_plan_age_h) == (0.5, 1)
    assert settings.planner.observed_h != 9
    watched.limits(31)
    settings = watched.reader.load_in_force()
    assert (settings.apply.load_band, settings.planner.observed_h) == (5, 9)


def test_what_is_asked_before_a_request_tightens_at_once_and_loosens_late(watched) -> None:
    strict = "checkpoint_max_age_s = 300\nmemory.heap_share_max = 0.5\ntrigger_checkpoint = false\n"
    watched.write(f"{LOOSE}[apply]\n{strict}")
    watched.limits()
    watched.limits(61)
    watched.write(f"{LOOSE}[apply]\nmemory.gc_share_max = 0.1\n")
    guards = watched.limits(1).guards
    assert (guards.heap_share_max, guards.gc_share_max, guards.triggers_checkpoint) == (0.5, 0.1, False)
    assert [guards.max_age_s(interval_s) for interval_s in (10, 60, 600)] == [180, 180, 300]
    watched.limits(30)
    guards = watched.limits(31).guards
    assert (guards.heap_share_max, guards.gc_share_max, guards.triggers_checkpoint) == (0.9, 0.1, True)
    assert guards.max_age_s(600) == 1800


@pytest.mark.parametrize("is_rehearsal", [False, True])
def test_a_rehearsal_leaves_nothing_of_what_was_in_force(watched: Watched, is_rehearsal: bool) -> None:
    settings = check_settings({"paths": {"lake": str(watched.path.parent / "lake"), "raw": "raw"}})
    reader = open_limits(settings, lambda: NOW_S, load_settings, is_rehearsal=is_rehearsal)
    reader.read_limits("live", "orders", {})
    assert (watched.path.parent / "lake" / FOLDER).exists() is not is_rehearsal
