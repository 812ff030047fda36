"""A log that lacks rows, has old ones, or was written by another: what is read, written again and held."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from control_entries import NOW_S, entry_for, plain_case

from controller.leases.lease import LeaseLostError
from controller.log.delta_log import DeltaControlLog, open_control_log
from controller.log.last_entries import HISTORY_DAYS
from controller.log.log_witness import LogWitness
from controller.log.unknown_jobs import leave_alone
from include.lake_table import LakeTable
from include.tables import CONTROL_LOG
from include.utc import DAY_S
from models.control.state import JobHistory
from tests.unit.test_delta_log import JOB, HeldLease, rows_of

OLD_S = NOW_S - (HISTORY_DAYS + 6) * DAY_S
"""When a row was written that is not among those that are read first."""


def open_log(lake: Path, lease: HeldLease | None = None, now_s: float = NOW_S) -> DeltaControlLog:
    """Return a cluster's log with the witness that all of its controllers share."""
    witness = LogWitness(str(lake / "out"), str(lake), "live")
    table = open_control_log(str(lake))
    return DeltaControlLog(
        table, "live", lease or HeldLease(), lambda: now_s, witness=witness, read_code_version=lambda: "v"
    )


def write(lake: Path, *jobs: str, at_s: float = NOW_S, lease: HeldLease | None = None) -> DeltaControlLog:
    """Return a log in which a controller has written an entry on each of some jobs."""
    made = open_log(lake, lease, at_s)
    made.append_all([entry_for(plain_case(at_s, f"step of {at_s:.0f}"), job=job) for job in jobs])
    return made


def reasons_of(lake: Path) -> list[tuple[str, int, str]]:
    return [(row["job"], row["entry"], row["reason"]) for row in rows_of(lake)]


def test_last_rows_that_will_soon_be_too_old_are_written_again_and_no_others(tmp_path) -> None:
    write(tmp_path, JOB, at_s=NOW_S - (HISTORY_DAYS / 2 + 1) * DAY_S)
    write(tmp_path, "live/young", at_s=NOW_S - (HISTORY_DAYS / 2 - 1) * DAY_S)
    log = open_log(tmp_path)
    before = log.read_history(JOB)
    log.keep()
    assert reasons_of(tmp_path) == [("orders", 1, "plan"), ("orders", 2, "kept"), ("young", 1, "plan")]
    assert log.read_history(JOB) == before


def test_with_nothing_to_write_again_nothing_is_written(tmp_path) -> None:
    log = write(tmp_path, JOB)
    version = open_control_log(str(tmp_path)).read_version()
    log.keep()
    assert open_control_log(str(tmp_path)).read_version() == version


def test_a_job_that_has_old_rows_alone_is_not_taken_for_one_whose_rows_are_missing(tmp_path) -> None:
    """The witness knows of the job, and the rows that are read first do not."""
    before = write(tmp_path, JOB, at_s=OLD_S).read_history(JOB)
    assert before.in_flight is not None
    log = open_log(tmp_path)
    log.load()
    assert log.read_history(JOB) == before


def test_of_a_job_with_old_and_young_rows_the_young_one_counts_when_old_rows_are_read(tmp_path) -> None:
    write(tmp_path, JOB, at_s=OLD_S)
    young = write(tmp_path, JOB).read_history(JOB)
    log = open_log(tmp_path)
    assert log.read_history("live/never seen") == JobHistory()
    assert log.read_history(JOB) == young


def test_old_rows_are_read_once_for_all_jobs_that_have_no_entry(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, JOB)
    log = open_log(tmp_path)
    assert log.read_last("live/never seen") is None
    monkeypatch.setattr(LakeTable, "read", lambda *_, **__: pytest.fail("the table was read again"))
    assert log.read_last("live/never seen") is None
    assert log.read_last(JOB) is not None


def test_only_jobs_with_a_request_in_flight_are_open(tmp_path) -> None:
    log = write(tmp_path, JOB)
    log.append(entry_for(plain_case(desired=None), job="live/quiet"))
    assert list(log.read_open()) == [JOB]


# numbers of the lease


def test_a_lease_that_begins_again_at_one_is_raised_above_the_rows_that_are_there(tmp_path) -> None:
    write(tmp_path, JOB, lease=HeldLease(7))
    log = write(tmp_path, JOB, at_s=NOW_S + 60, lease=HeldLease(1))
    log.append(entry_for(plain_case(NOW_S + 120, "third")))
    assert [row["lease_number"] for row in rows_of(tmp_path)] == [7, 8, 8]
    assert open_log(tmp_path).read_last(JOB).case.desired.step_id == "third"


def test_after_the_lease_was_taken_anew_the_log_is_read_again(tmp_path) -> None:
    lease = HeldLease()
    log = write(tmp_path, JOB, lease=lease)
    write(tmp_path, JOB, at_s=NOW_S + 60, lease=HeldLease(2))
    assert log.read_last(JOB).case.now_s == NOW_S
    lease.first_number = 3
    assert log.read_last(JOB).case.now_s == NOW_S + 60
    lease.is_lost = True
    with pytest.raises(LeaseLostError):
        log.append(entry_for(plain_case()))


# rows that have gone


def remove_table(lake: Path) -> None:
    shutil.rmtree(lake / CONTROL_LOG.relative_path)


def test_a_table_that_grows_has_lost_nothing(tmp_path, caplog: pytest.LogCaptureFixture) -> None:
    log = write(tmp_path, JOB, "live/other")
    log.append(entry_for(plain_case(NOW_S + 60)))
    write(tmp_path, "live/other", at_s=NOW_S + 60)  # a commit of another cluster's controller, say
    log.append(entry_for(plain_case(NOW_S + 120)))
    log.keep()
    assert not caplog.records
    assert "kept" not in {reason for _, _, reason in reasons_of(tmp_path)}


@pytest.mark.parametrize("is_restored", [False, True], ids=["removed", "restored from before"])
def test_last_entries_of_a_table_that_has_lost_rows_are_written_again(tmp_path, caplog, is_restored: bool) -> None:
    log = write(tmp_path, JOB)
    shutil.copytree(tmp_path / CONTROL_LOG.relative_path, tmp_path / "before")
    log.append(entry_for(plain_case(NOW_S + 60, "step-2"), job="live/other"))
    before = {job: log.read_history(job) for job in (JOB, "live/other")}
    remove_table(tmp_path)
    if is_restored:
        shutil.copytree(tmp_path / "before", tmp_path / CONTROL_LOG.relative_path)
    log.keep()
    assert "rows of the control log are missing" in caplog.text
    assert [job for job, _, reason in reasons_of(tmp_path) if reason == "kept"] == ["orders", "other"]
    assert {job: open_log(tmp_path).read_history(job) for job in before} == before


def test_what_the_process_has_written_is_known_after_its_table_was_removed_and_the_lease_taken_anew(tmp_path) -> None:
    lease = HeldLease()
    log = write(tmp_path, JOB, lease=lease)
    before = log.read_history(JOB)
    remove_table(tmp_path)
    lease.first_number = 2
    assert log.read_history(JOB) == before


def test_a_job_of_which_rows_are_missing_is_held_and_all_others_are_not(tmp_path) -> None:
    """The witness tells of two entries, and the lake was restored with the first alone."""
    write(tmp_path, JOB, "live/whole")
    shutil.copytree(tmp_path / CONTROL_LOG.relative_path, tmp_path / "before")
    write(tmp_path, JOB, at_s=NOW_S + 60)
    remove_table(tmp_path)
    shutil.copytree(tmp_path / "before", tmp_path / CONTROL_LOG.relative_path)
    log = open_log(tmp_path)
    assert log.read_history(JOB).held_until_s > NOW_S
    assert "rows of the control log are missing" in log.read_history(JOB).held_because
    assert log.read_history("live/whole").held_until_s == 0.0


def test_a_job_of_which_no_row_is_left_is_held_as_well() -> None:
    assert leave_alone(JOB, None, NOW_S, "rows are missing").history.held_because == "rows are missing"


def test_what_is_told_of_the_jobs_of_another_cluster_is_left_to_its_controller(tmp_path, caplog) -> None:
    write(tmp_path, JOB)
    for file in tmp_path.rglob("log-*.json"):
        file.write_text(json.dumps(json.loads(file.read_text()) | {"elsewhere/orders": 9}))
    open_log(tmp_path).load()
    assert not caplog.records
