"""What was promised stays known when leases or rows are lost, or clocks were wrong; what cannot be known is held."""

from __future__ import annotations

import shutil
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest
from control_entries import NOW_S, TWO, plain_case
from deltalake import DeltaTable
from job_world import AUTO, JOB, World

from controller.leases.lease import Lease, LeaseLostError
from controller.log.delta_log import DeltaControlLog, open_control_log
from controller.log.log_witness import LogWitness
from include.tables import CONTROL_LOG
from include.utc import DAY_S, HOUR_S
from models.control.case import Verb
from models.control.reconcile import reconcile
from models.control.state import JobHistory, ObservedJob


@pytest.fixture
def world(tmp_path):
    (tmp_path / "lake").mkdir()
    made = World(tmp_path)
    made.tick()
    for count in (4, 6):
        assert made.tick(count).verb is Verb.RESCALE
        assert made.tick(count).verb is Verb.CONFIRM
    return made


def person(world: World) -> None:
    world.asked = {"a": 5, "b": 5}
    assert world.tick(6).reason == "foreign_change"


@pytest.mark.covers("harm leases-gone")
def test_removed_leases_forget_nothing(world) -> None:
    person(world)
    before = world.log.read_history(JOB)
    shutil.rmtree(world.lake / "ops" / "leases")
    with pytest.raises(LeaseLostError):
        world.tick(6, limits=replace(AUTO, is_held=True))
    for _ in range(3):
        world.start("after")
        assert world.tick(6).reason == "held"
        assert world.log.read_history(JOB).held_until_s == before.held_until_s
        world.lease.release()
        shutil.rmtree(world.lake / "ops" / "leases")
    world.start("last")
    world.tick(6, pass_s=4 * HOUR_S)
    world.lease.release()
    world.start("and the very last")
    assert world.log.read_history(JOB).request_times_s[:2] == before.request_times_s
    assert len(world.sent) == 3  # after the hold it goes on


@pytest.mark.parametrize("days", [15.0, 200.0])
@pytest.mark.covers("harm hold-outlives-log")
def test_a_hold_that_is_longer_than_the_days_that_are_read_first_is_kept(world, days: float) -> None:
    """No row is written while it lasts, and no controller runs."""
    world.asked = {"a": 5, "b": 5}
    long = replace(AUTO, foreign_change_hold_s=365 * DAY_S)
    assert world.tick(6, long).reason == "foreign_change"
    world.lease.release()
    world.now_s += days * DAY_S
    world.start("later")
    assert world.tick(6, long).reason == "held"
    assert len(world.sent) == 2


def test_old_rows_are_written_again_so_that_they_are_found_at_once(world) -> None:
    world.asked = {"a": 5, "b": 5}
    long = replace(AUTO, foreign_change_hold_s=365 * DAY_S)
    assert world.tick(6, long).reason == "foreign_change"
    before = world.log.read_history(JOB)
    for _ in range(3):
        world.lease.release()
        world.now_s += 8 * DAY_S
        world.start("later")
        world.log.read_history(JOB)
        world.log.keep()
        entry = world.log.read_last(JOB)
        assert (entry.action.verb, entry.action.reason, entry.history) == (Verb.WAIT, "kept", before)
    known = world.log._jobs()
    number = known[JOB].number
    written = open_control_log(str(world.lake)).read(["reason"], date(1970, 1, 1), date.max)
    assert written.column("reason").to_pylist().count("kept") == 3
    world.log.keep()
    assert world.log._jobs()[JOB].number == number  # once is enough


@pytest.mark.parametrize("is_restarted", [False, True])
@pytest.mark.covers("harm log-gone")
def test_a_removed_log_forgets_nothing_that_the_process_knows_and_holds_what_nobody_knows(world, is_restarted) -> None:
    person(world)
    before = world.log.read_history(JOB)
    shutil.rmtree(world.lake / CONTROL_LOG.relative_path)
    if is_restarted:
        world.restart()
        world.now_s += 3 * HOUR_S + 3000  # the hold of before would be over soon
        assert world.tick(6).reason == "new_job_id"
        result = world.tick(6, pass_s=1800)
        assert (result.reason, "rows of the control log are missing" in result.detail) == ("held", True)
        assert world.tick(6, pass_s=4 * HOUR_S).verb is Verb.RESCALE
        return
    world.log.keep()
    assert world.log.read_history(JOB) == before
    world.restart()
    assert world.log.read_history(JOB) == before
    assert world.tick(6).reason == "held"


@pytest.mark.parametrize("is_restarted", [False, True])
@pytest.mark.covers("harm log-gone")
def test_yesterday_s_lake_forgets_nothing(world, tmp_path, is_restarted) -> None:
    shutil.copytree(world.lake, tmp_path / "yesterday")
    world.now_s += DAY_S
    world.tick()
    assert world.tick(8).verb is Verb.RESCALE
    world.tick(8)
    worse = world.log.read_history(JOB)
    assert worse.to_judge is not None
    person(world)
    before = world.log.read_history(JOB)
    shutil.rmtree(world.lake)
    shutil.copytree(tmp_path / "yesterday", world.lake)
    if is_restarted:
        world.start("after")
        assert world.tick(8).reason == "new_job_id"  # whose change it was is not known
        assert world.tick(8).reason == "held"
        assert world.log.read_history(JOB).held_until_s >= world.now_s + 3 * HOUR_S
    else:
        assert world.tick(8).reason == "held"
        assert world.log.read_history(JOB).held_until_s == before.held_until_s
    assert len(world.sent) == 3


@pytest.mark.covers("harm log-elsewhere")
def test_a_log_that_was_taken_back_is_known_on_another_machine(world, tmp_path) -> None:
    table = DeltaTable(str(world.lake / CONTROL_LOG.relative_path))
    world.tick()
    version = DeltaTable(table.table_uri).version()
    assert world.tick(8).verb is Verb.RESCALE
    world.tick(8)
    person(world)
    sent = len(world.sent)
    DeltaTable(table.table_uri).restore(version)
    world.lease.release()
    world.root = tmp_path / "another machine"
    world.start("after")
    assert world.tick(8).reason == "new_job_id"
    assert world.tick(8).reason == "held"
    assert world.log.read_history(JOB).held_until_s >= world.now_s + 3 * HOUR_S
    assert len(world.sent) == sent


def test_another_lake_on_purpose_is_no_lost_one(world, tmp_path) -> None:
    world.lake = tmp_path / "new"
    world.lake.mkdir()
    world.start("on another lake")
    assert world.tick().reason == "new_job_id"
    assert world.tick(8).verb is Verb.RESCALE


@pytest.mark.parametrize("days", [5.0, 40.0, -5.0])
@pytest.mark.covers("harm clock-set")
def test_a_clock_that_was_days_wrong_and_set_right_forgets_nothing(world, days: float) -> None:
    person(world)
    before = world.log.read_history(JOB)
    world.now_s += days * DAY_S
    world.cluster_ahead_s = -days * DAY_S
    world.lease = Lease(str(world.lake), "live", "wrong", lambda: 2e9 + world.now_s, monotonic=lambda: 0.0)
    world.lease.take()
    world.log = DeltaControlLog(open_control_log(str(world.lake)), "live", world.lease, lambda: world.now_s)
    for _ in range(3):
        assert world.tick(6).reason == "held"
    world.now_s -= days * DAY_S
    world.cluster_ahead_s = 0.0
    world.lease.release()
    world.lease = Lease(str(world.lake), "live", "right", lambda: 3e9 + world.now_s)
    assert world.lease.take()
    world.log = DeltaControlLog(open_control_log(str(world.lake)), "live", world.lease, lambda: world.now_s)
    assert world.tick(6).reason == "held"
    assert world.log.read_history(JOB).held_until_s >= before.held_until_s
    assert len(world.sent) == 2


def test_clocks_that_differ_by_hours_go_on_and_a_plan_waits_for_a_right_one() -> None:
    history = JobHistory(job_id="j", known_requested=TWO, request_times_s=(NOW_S,))
    for hours, is_wrong in ((0, False), (2.9, False), (3.1, True), (-3.1, True), (-2.9, False)):
        observed = ObservedJob("j", "RUNNING", TWO, TWO, told_at_s=NOW_S + hours * HOUR_S)
        case = replace(plain_case(), history=history, observed=observed)
        assert (reconcile(case).reason == "clock_differs") is is_wrong


def test_a_witness_that_cannot_be_used_stops_nothing(tmp_path, caplog) -> None:
    (tmp_path / "controller").write_text("a file, where a folder should be")
    (tmp_path / "ops").write_text("another one")
    witness = LogWitness(str(tmp_path), str(tmp_path), "live")
    witness.write({"live/a": 3})
    assert witness.read() == {}
    lake = str(tmp_path / "lake")
    other = LogWitness(str(tmp_path / "out"), lake, "live")
    other.write({"live/a": 3})
    assert other.read() == {"live/a": 3}
    assert LogWitness(str(tmp_path / "out"), lake, "spare").read() == {}
    (path,) = (tmp_path / "out" / "controller").iterdir()
    (beside,) = (Path(tmp_path / "lake") / "ops" / "leases").iterdir()
    path.unlink()
    assert other.read() == {"live/a": 3}
    path.write_text('{"live/a": 5, "live/b": 1}')
    assert other.read() == {"live/a": 5, "live/b": 1}
    beside.unlink()
    for text in ("", "[", "[]", '{"a": "x"}', "3"):
        path.write_text(text)
        assert other.read() == {}
