"""A controller on a lake that was restored from an hour ago: it takes jobs as they are and repeats nothing."""

from __future__ import annotations

import shutil
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from control_entries import NOW_S
from job_world import AUTO, JOB, World

from cli.restore_lake import find_obstacles, restore
from controller.leases.lease import LeaseLostError
from include.backup.backup_folder import BackupFolder
from include.backup.manifest import BackupError
from include.backup.take_backup import take_backup
from include.control.approvals import ApprovalStore, WaitingStep, answer_step
from include.control.holds import HoldStore
from include.control.restores import RestoreStore
from include.settings import Mlflow, Paths, Settings
from include.utc import DAY_S, HOUR_S
from models.control.approval import StepApproval
from models.control.case import Verb
from models.control.state import Mode

FOUR_HOURS = replace(AUTO, foreign_change_hold_s=4 * HOUR_S)


class Backups:
    """Backups of a world's lake, and their return."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.settings = Settings(
            paths=Paths(lake=str(world.lake), raw=str(world.root / "raw"), out=str(world.root / "out")),
            mlflow=Mlflow(tracking_uri=f"sqlite:///{world.root}/mlflow.db", artifact_root=str(world.root / "models")),
        )
        self.folder = BackupFolder(str(world.root / "backups"))

    def take(self) -> None:
        now = datetime.fromtimestamp(self.world.now_s, UTC)
        self.manifest = take_backup(self.settings, self.folder, now, with_ingested=False)

    def put_back(self, *, is_other_machine: bool = False) -> None:
        """Restore an hour later, after the controller has ended."""
        self.world.lease.release()
        if is_other_machine:
            shutil.rmtree(self.world.lake)
            shutil.rmtree(self.world.root / "out")
        self.world.now_s += HOUR_S
        restore(self.settings, self.manifest, self.folder, ["live"], "anna", clock=lambda: self.world.now_s)
        self.world.start("after the restore")


@pytest.fixture
def world(tmp_path) -> World:
    (tmp_path / "lake").mkdir()
    made = World(tmp_path)
    made.tick()
    assert made.tick(4).verb is Verb.RESCALE
    assert made.tick(4).verb is Verb.CONFIRM
    return made


@pytest.fixture
def backups(world: World) -> Backups:
    return Backups(world)


def run_past_the_hold(world: World, wanted: int) -> list[str]:
    """Tick for three of the four hours that a job is left alone; returns the reasons."""
    return [str(world.tick(wanted, FOUR_HOURS, pass_s=600.0).reason) for _ in range(18)]


def rescale_since(world: World) -> None:
    assert world.tick(6).verb is Verb.RESCALE
    assert world.tick(6).verb is Verb.CONFIRM


def change_since(world: World) -> None:
    world.asked = {"a": 5, "b": 5}


def rescale_and_change_since(world: World) -> None:
    """Step 6 is sent, and a person takes it back to what the backup knows."""
    rescale_since(world)
    world.asked = {"a": 4, "b": 4}


def change_partly_filled(world: World) -> None:
    rescale_since(world)
    world.running = {"a": 5, "b": 5}


SINCE = [rescale_since, change_since, rescale_and_change_since, change_partly_filled]


@pytest.mark.parametrize("is_other_machine", [False, True])
@pytest.mark.parametrize("happens", SINCE)
@pytest.mark.covers("harm log-gone")
def test_whatever_was_done_since_the_backup_is_taken_as_it_is_and_left_alone(
    world, backups, happens, is_other_machine
) -> None:
    backups.take()
    happens(world)
    sent, asked = len(world.sent), dict(world.asked)
    backups.put_back(is_other_machine=is_other_machine)
    first = world.tick(6, FOUR_HOURS)
    assert (first.verb, first.reason) == (Verb.WAIT, "new_job_id")  # neither its own nor a person's: nobody knows
    history = world.log.read_history(JOB)
    assert (history.known_requested, history.in_flight, history.to_judge) == (asked, None, None)
    assert set(run_past_the_hold(world, 6)) == {"held"}
    assert "restored from a backup" in world.tick(6, FOUR_HOURS).detail
    assert (len(world.sent), world.asked) == (sent, asked)


@pytest.mark.parametrize("is_other_machine", [False, True])
@pytest.mark.parametrize("happens", [None, *SINCE[1:]])
def test_a_request_in_flight_at_the_backup_is_neither_sent_again_nor_withdrawn(
    world, backups, happens, is_other_machine
) -> None:
    assert world.tick(6).verb is Verb.RESCALE
    backups.take()
    assert world.log.read_history(JOB).in_flight is not None
    assert world.tick(6).verb is Verb.CONFIRM
    if happens is not None:
        world.running, world.asked = ({"a": 5, "b": 5}, {"a": 6, "b": 6})
        if happens is not change_partly_filled:
            world.running, world.asked = None, {"a": 4, "b": 4}
    sent, asked = len(world.sent), dict(world.asked)
    backups.put_back(is_other_machine=is_other_machine)
    assert world.tick(6, FOUR_HOURS).reason == "new_job_id"
    assert set(run_past_the_hold(world, 6)) == {"held"}
    assert (len(world.sent), world.asked) == (sent, asked)


def test_after_the_hold_it_goes_on_and_is_left_alone_only_once(world, backups, caplog) -> None:
    backups.take()
    change_since(world)
    backups.put_back(is_other_machine=True)
    world.tick(6, FOUR_HOURS)
    run_past_the_hold(world, 6)
    world.restart()
    assert world.tick(6, FOUR_HOURS).reason == "held"
    assert world.tick(6, FOUR_HOURS, pass_s=2 * HOUR_S).verb is Verb.RESCALE
    assert world.tick(6, FOUR_HOURS).verb is Verb.CONFIRM
    world.restart()
    assert world.log.read_history(JOB).held_until_s < world.now_s
    warned = [line for line in caplog.messages if "was restored from a backup of" in line]
    assert [line.partition(":")[0] for line in warned] == ["1 jobs of live"]


def test_a_job_that_the_backup_does_not_know_is_left_alone_for_a_day_at_most(tmp_path) -> None:
    (tmp_path / "lake").mkdir()
    world = World(tmp_path)
    backups = Backups(world)
    backups.take()
    backups.put_back()
    assert world.tick(4, FOUR_HOURS).reason == "new_job_id"
    assert world.tick(4, FOUR_HOURS).reason == "held"
    assert world.sent == []
    world.now_s += 2 * DAY_S
    world.restart()
    assert world.log.read_history("live/new").held_until_s < world.now_s


def test_a_yes_that_was_given_before_the_backup_allows_nothing_after_it(world, backups) -> None:
    """It has allowed its request since, of which the restored log has no row."""
    lake = str(world.lake)
    step = WaitingStep("live", "orders", "to 6", datetime.now(UTC), "load", {"a": 4, "b": 4}, {"a": 6, "b": 6})
    for is_approved in (True, False):
        ApprovalStore(lake).write(answer_step(step, is_approved, "anna", world.now_s, world.now_s + DAY_S))
    backups.take()
    backups.put_back()
    assert [one.is_approved for one in ApprovalStore(lake).read(world.now_s)] == [False]
    backups.put_back(is_other_machine=True)
    assert [one.is_approved for one in ApprovalStore(lake).read(world.now_s)] == [False]


def test_a_controller_with_a_lease_of_before_sends_nothing(world, backups) -> None:
    backups.take()
    old, log, number = world.lease, world.log, world.lease.number
    world.now_s += 4 * HOUR_S  # it was stopped, and its term has ended
    restore(backups.settings, backups.manifest, backups.folder, ["live"], "anna", clock=lambda: world.now_s)
    for act in (old.check, lambda: log.append(log.read_last(JOB))):
        with pytest.raises(LeaseLostError):
            act()
    assert (old.may_send(), old.read_newest().number > number) == (False, True)
    assert world.tick(6, FOUR_HOURS).reason == "new_job_id"  # with a new term, and what was restored
    assert len(world.sent) == 1


def test_a_controller_at_work_is_not_pulled_from_under(world, backups) -> None:
    backups.take()
    before = world.log.read_history(JOB)
    with pytest.raises(BackupError, match="one holds the lease of cluster live until"):
        restore(backups.settings, backups.manifest, backups.folder, ["live"], "anna", clock=lambda: world.now_s)
    assert RestoreStore(str(world.lake)).read() is None
    assert world.log.read_history(JOB) == before


def test_everything_is_on_hold_until_a_person_releases_it(world, backups) -> None:
    backups.take()
    backups.put_back(is_other_machine=True)
    (hold,) = HoldStore(str(world.lake)).read(world.now_s)
    assert (hold.scope, hold.by, hold.until_s) == ("all", "anna", None)
    assert "tidewise release --all" in hold.reason


def test_rows_after_a_restore_come_after_those_of_the_backup(world, backups) -> None:
    """Leases begin at 1 again on another machine; by their numbers rows are ordered."""
    for _ in range(5):
        world.restart()
    world.tick(6)
    backups.take()
    logged = max(one.lease_number for one in world.log._jobs().values())
    shutil.rmtree(world.lake / "ops" / "leases")
    backups.manifest = replace(backups.manifest, leases={})
    backups.put_back(is_other_machine=True)
    assert world.lease.number > logged
    assert RestoreStore(str(world.lake)).read().leases["live"] > logged
    assert world.tick(6, FOUR_HOURS).reason == "new_job_id"


def test_a_restore_that_was_killed_is_run_again(world, backups, monkeypatch) -> None:
    backups.take()
    world.lease.release()
    shutil.rmtree(world.lake)
    world.now_s += HOUR_S
    monkeypatch.setattr("cli.restore_lake.put_registry_back", kill)
    with pytest.raises(KeyboardInterrupt):
        restore(backups.settings, backups.manifest, backups.folder, ["live"], "anna", clock=lambda: world.now_s)
    (hold,) = HoldStore(str(world.lake)).read(world.now_s)
    assert "has not ended" in hold.reason
    assert find_obstacles(backups.settings, backups.manifest) == []
    monkeypatch.undo()
    restore(backups.settings, backups.manifest, backups.folder, ["live"], "anna", clock=lambda: world.now_s)
    assert find_obstacles(backups.settings, backups.manifest) != []  # it has ended: what is there now is in use
    assert RestoreStore(str(world.lake)).read().is_whole


def kill(*_: object) -> None:
    raise KeyboardInterrupt


def test_it_is_known_what_a_yes_would_have_done(world) -> None:
    """The same step with the same answer is sent again where the log alone is an hour old: what is guarded against."""
    yes = StepApproval("to 6", {"a": 4, "b": 4}, {"a": 6, "b": 6}, True, NOW_S, NOW_S + DAY_S, "anna", "1")
    assert world.tick(6, replace(AUTO, mode=Mode.APPROVE, approvals=(yes,))).verb is Verb.RESCALE
