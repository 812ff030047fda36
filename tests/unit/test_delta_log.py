"""The control log on disk: what was appended is found again, by whoever holds the lease."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from control_entries import NOW_S, entry_for, plain_case
from deltalake import DeltaTable

from controller.actuators.actuator import RequestRefusedError, RequestUnknownError
from controller.decisions.job_control import JobControl, JobTask
from controller.leases.lease import Lease, LeaseLostError
from controller.log.control_log import LogEntry, Provenance, is_news
from controller.log.delta_log import DeltaControlLog, open_control_log
from controller.log.last_entries import HISTORY_DAYS, read_known_jobs
from controller.log.log_codec import action_of, case_of
from include.tables import CONTROL_LOG
from models.control.case import Verb
from models.control.limits import Limits
from models.control.readiness import Checkpoints, MemoryUsage, Readiness
from models.control.reconcile import reconcile
from models.control.state import Intention, JobHistory, Mode, ObservedJob, Origin

JOB = "live/orders"
AUTO = Limits(mode=Mode.AUTO)


class HeldLease:
    """A lease that is held until it is lost, and of which the number can be raised."""

    def __init__(self, number: int = 1) -> None:
        self.number, self.first_number, self.is_lost = number, number, False

    def check(self) -> None:
        if self.is_lost:
            raise LeaseLostError("term 1 of the lease is followed by 2")

    def skip_to(self, number: int) -> None:
        self.number = number


def open_log(lake, lease=None, now_s: float = NOW_S, cluster: str = "live") -> DeltaControlLog:
    return DeltaControlLog(open_control_log(str(lake)), cluster, lease or HeldLease(), lambda: now_s)


def rows_of(lake) -> list[dict]:
    rows = DeltaTable(str(lake / CONTROL_LOG.relative_path)).to_pyarrow_table().to_pylist()
    return sorted(rows, key=lambda row: (row["job"], row["lease_number"], row["entry"]))


def test_a_history_is_read_back_by_the_next_controller(tmp_path) -> None:
    entry = entry_for(plain_case(), provenance=Provenance({"a": "map"}, NOW_S, "m"))
    assert open_log(tmp_path).read_history(JOB) == JobHistory()
    open_log(tmp_path).append(entry)
    later = open_log(tmp_path)
    assert later.read_last(JOB) == entry
    assert later.read_history(JOB).in_flight == entry.action.request
    assert later.read_history("live/other") == JobHistory()


def test_the_last_entry_counts_and_entries_of_a_job_are_numbered(tmp_path) -> None:
    log = open_log(tmp_path)
    first, second = entry_for(plain_case()), entry_for(plain_case(NOW_S + 60, "step-2", mode=Mode.DRY_RUN))
    other = entry_for(plain_case(), job="live/other")
    log.append_all([first, other])
    log.append_all([second])
    assert [(row["job"], row["entry"]) for row in rows_of(tmp_path)] == [("orders", 1), ("orders", 2), ("other", 1)]
    assert DeltaTable(str(tmp_path / CONTROL_LOG.relative_path)).version() == 2  # created with its checks, two appends
    for known in (log, open_log(tmp_path)):
        assert known.read_last(JOB) == second
        assert known.read_last("live/other") == other
    again = open_log(tmp_path)
    again.append(first)
    assert rows_of(tmp_path)[2]["entry"] == 3


def test_a_controller_without_the_lease_appends_nothing(tmp_path) -> None:
    lease = HeldLease()
    log = open_log(tmp_path, lease)
    log.append(entry_for(plain_case()))
    lease.is_lost = True
    with pytest.raises(LeaseLostError):
        log.append(entry_for(plain_case(NOW_S + 60)))
    assert len(rows_of(tmp_path)) == 1


def test_a_row_of_an_older_lease_that_came_late_does_not_count(tmp_path) -> None:
    newer = entry_for(plain_case(NOW_S, "of the newer"))
    late = entry_for(plain_case(NOW_S + 5, "of the older"))
    slow = open_log(tmp_path, HeldLease(1))
    assert slow.read_last(JOB) is None
    open_log(tmp_path, HeldLease(2)).append(newer)
    slow.append(late)
    assert open_log(tmp_path).read_last(JOB) == newer


def test_a_log_is_read_again_when_another_held_the_lease_in_between(tmp_path) -> None:
    now = {"s": NOW_S}
    one, two = (Lease(str(tmp_path), "live", owner, lambda: now["s"]) for owner in ("one", "two"))
    logs = [DeltaControlLog(open_control_log(str(tmp_path)), "live", lease, lambda: now["s"]) for lease in (one, two)]
    assert one.take()
    logs[0].append(entry_for(plain_case(NOW_S, "of one")))
    one.renew()
    one.release()
    assert two.take()
    assert logs[1].read_last(JOB).case.desired.step_id == "of one"
    logs[1].append(entry_for(plain_case(NOW_S + 1, "of two")))
    with pytest.raises(LeaseLostError):
        logs[0].append(entry_for(plain_case(NOW_S + 2, "without a lease")))
    now["s"] += 1000
    assert one.take()
    assert logs[0].read_last(JOB).case.desired.step_id == "of two"
    assert [(row["step_id"], row["lease_number"], row["entry"]) for row in rows_of(tmp_path)] == [
        ("of one", 1, 1),
        ("of two", 3, 2),
    ]


@pytest.mark.parametrize("days", [0.2, HISTORY_DAYS - 1, HISTORY_DAYS + 2, 300, -1, -30])
def test_entries_are_found_however_old_or_far_ahead_they_are(tmp_path, days: float) -> None:
    """A hold may last longer than the days that are read first; a clock may have been a month ahead."""
    entry = entry_for(plain_case(NOW_S - days * 86_400))
    open_log(tmp_path).append(entry)
    assert open_log(tmp_path).read_last(JOB) == entry


def test_files_of_older_days_stay_closed(tmp_path) -> None:
    old = entry_for(plain_case(NOW_S - 30 * 86_400))
    open_log(tmp_path).append(old)
    open_log(tmp_path).append(entry_for(plain_case()))
    date = (datetime.fromtimestamp(NOW_S, UTC) - timedelta(days=30)).date()
    (folder,) = (tmp_path / CONTROL_LOG.relative_path).glob(f"date={date}")
    for path in folder.iterdir():
        path.unlink()
    assert open_log(tmp_path).read_last(JOB) is not None


def test_histories_of_several_clusters_are_read_at_once(tmp_path) -> None:
    for cluster in ("live", "spare", "third"):
        open_log(tmp_path, cluster=cluster).append(entry_for(plain_case(), job=f"{cluster}/orders"))
    known = read_known_jobs(open_control_log(str(tmp_path)), ["live", "spare"], NOW_S)
    assert sorted(known) == ["live/orders", "spare/orders"]


def _fail_for_want_of_space(rows) -> None:
    raise OSError("disk full")


def test_after_a_failed_append_the_log_is_read_again(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = open_control_log(str(tmp_path))
    log = DeltaControlLog(table, "live", HeldLease(), lambda: NOW_S)
    first = entry_for(plain_case())
    log.append(first)
    open_log(tmp_path, HeldLease(2)).append(entry_for(plain_case(NOW_S + 1, "by another")))
    monkeypatch.setattr(table, "append_arrow", _fail_for_want_of_space)
    with pytest.raises(OSError, match="disk full"):
        log.append(entry_for(plain_case(NOW_S + 2)))
    assert log.read_last(JOB).case.desired.step_id == "by another"


# the controller on a real table


class Flink:
    """A cluster of several jobs."""

    def __init__(self, *jobs: str, free: int = 100) -> None:
        self.parallelism = {job: {"a": 2, "b": 2} for job in jobs}
        self.free, self.sent, self.refuses, self.silent = free, [], set(), set()

    def observe(self, job: str) -> ObservedJob:
        if job in self.silent:
            raise RequestUnknownError("no reply")
        result = self.parallelism[job]
        return ObservedJob(f"id of {job}", "RUNNING", dict(result), dict(result), free_slots=self.free)

    def inspect(self, job: str, job_id: str) -> Readiness:
        return Readiness(Checkpoints(60.0, NOW_S, state_bytes=0), MemoryUsage(0.5, 0.0), ())

    def read_failures(self, job: str, job_id: str) -> tuple[()]:
        return ()

    def trigger_checkpoint(self, job: str, job_id: str) -> None:
        pass

    def request(self, job: str, job_id: str, parallelism) -> None:
        self.sent.append(job)
        if job in self.refuses:
            raise RequestRefusedError("409 conflict")
        self.parallelism[job] = dict(parallelism)


def task(job: str, count: int = 4, limits: Limits = AUTO) -> JobTask:
    wanted = Intention({"a": count, "b": count}, Origin.PLAN, f"step of {job}", "load rises", NOW_S + 600)
    return JobTask(job, wanted, lambda: limits)


def start(lake, flink: Flink) -> tuple[JobControl, DeltaControlLog]:
    log = open_log(lake)
    controller = JobControl(flink, log, lambda: None, lambda: NOW_S)
    controller.control_jobs([JobTask(job, None, lambda: AUTO) for job in flink.parallelism])
    return controller, log


def version_of(lake) -> int:
    return DeltaTable(str(lake / CONTROL_LOG.relative_path)).version()


def test_requests_of_a_tick_share_a_commit_and_their_answers_another(tmp_path) -> None:
    jobs = [f"live/job-{number}" for number in range(5)]
    flink = Flink(*jobs)
    flink.refuses = {jobs[1]}
    controller, log = start(tmp_path, flink)
    before = version_of(tmp_path)
    actions = controller.control_jobs([task(job) for job in jobs])
    assert version_of(tmp_path) == before + 2
    assert flink.sent == jobs
    assert [actions[job].reason for job in jobs] == ["plan", "refused_by_flink", "plan", "plan", "plan"]
    assert log.read_history(jobs[1]).in_flight is None
    assert log.read_history(jobs[1]).blocked[0].parallelism == {"a": 4, "b": 4}
    answers = [row["answer"] for row in rows_of(tmp_path) if row["answer"]]
    assert sorted(answers) == ["accepted"] * 4 + ["refused: 409 conflict"]
    again = {job: open_log(tmp_path).read_history(job) for job in jobs}
    assert again == {job: log.read_history(job) for job in jobs}
    for row in rows_of(tmp_path):
        assert reconcile(case_of(row)) == action_of(row)


def test_a_quiet_tick_and_a_repeated_decision_write_nothing(tmp_path) -> None:
    flink = Flink("live/a", "live/b")
    controller, _ = start(tmp_path, flink)
    held = Limits(mode=Mode.AUTO, is_held=True)
    dry = Limits(mode=Mode.DRY_RUN)
    controller.control_jobs([task("live/a", limits=held), task("live/b", limits=dry)])
    written = version_of(tmp_path)
    for _ in range(3):
        controller.control_jobs([task("live/a", limits=held), task("live/b", limits=dry)])
        controller.control_jobs([JobTask("live/a", None, lambda: AUTO)])
    assert version_of(tmp_path) == written
    controller.control_jobs([task("live/a", count=6, limits=held)])
    assert version_of(tmp_path) == written + 1
    assert flink.sent == []


def test_a_job_that_does_not_reply_keeps_no_other_from_its_turn(tmp_path) -> None:
    flink = Flink("live/a", "live/b", "live/c")
    controller, _ = start(tmp_path, flink)
    flink.silent = {"live/b"}
    del flink.parallelism["live/a"]  # observing it raises what nobody expected
    actions = controller.control_jobs([task("live/a"), task("live/b"), task("live/c")])
    assert [actions[f"live/{name}"].reason for name in "abc"] == ["not_observed", "no_reply", "plan"]
    assert flink.sent == ["live/c"]


@pytest.mark.parametrize(
    ("odd", "reason"),
    [({"a": 2**40}, "not_recorded"), ({"a\ud800": 2}, "foreign_change")],
    ids=["a parallelism beyond 32 bits", "half a surrogate pair as a vertex"],
)
def test_a_job_of_strange_values_keeps_no_other_from_its_turn(tmp_path, odd, reason: str) -> None:
    flink = Flink("live/a", "live/b", "live/c")
    controller, _ = start(tmp_path, flink)
    flink.parallelism["live/b"] = odd
    actions = controller.control_jobs([task("live/a"), task("live/b"), task("live/c")])
    assert [actions[f"live/{name}"].reason for name in "abc"] == ["plan", reason, "plan"]
    assert flink.sent == ["live/a", "live/c"]
    assert {row["job"] for row in rows_of(tmp_path) if row["verb"] == "rescale"} == {"a", "c"}
    for row in rows_of(tmp_path):
        assert reconcile(case_of(row)) == action_of(row)


def test_slots_that_one_job_takes_are_not_free_for_the_next(tmp_path) -> None:
    flink = Flink("live/a", "live/b", "live/c", free=5)
    controller, _ = start(tmp_path, flink)
    actions = controller.control_jobs([task("live/a", 4), task("live/b", 6), task("live/c", 5)])
    assert [actions[f"live/{name}"].reason for name in "abc"] == ["plan", "plan", "no_free_slots"]
    assert flink.sent == ["live/a", "live/b"]
    assert flink.parallelism["live/b"] == {"a": 5, "b": 5}  # what the first has left


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda flink, world: world.update(limits=replace(AUTO, is_held=True)), "on_hold"),
        (lambda flink, world: world.update(limits=replace(AUTO, mode=Mode.DRY_RUN)), "plan"),
        (lambda flink, world: flink.parallelism.update({JOB: {"a": 3, "b": 3}}), "foreign_change"),
        (lambda flink, world: setattr(flink, "free", 0), "no_free_slots"),
        (lambda flink, world: flink.silent.add(JOB), "no_reply"),
        (lambda flink, world: world.update(now_s=NOW_S + 100), "decided 100 s ago"),
    ],
)
def test_a_request_is_withdrawn_when_something_changes_before_it_leaves(tmp_path, change, why: str) -> None:
    flink, world = Flink(JOB), {"limits": AUTO, "now_s": NOW_S}
    start(tmp_path, flink)
    log = open_log(tmp_path)
    appended = log.append_all

    def append_all(entries) -> None:
        appended(entries)
        change(flink, world)

    log.append_all = append_all
    controller = JobControl(flink, log, lambda: None, lambda: world["now_s"])
    before = log.read_history(JOB)
    wanted = replace(task(JOB), read_limits=lambda: world["limits"])
    action = controller.control_jobs([wanted])[JOB]
    assert (action.verb, action.reason) == (Verb.REFUSE, "withdrawn_before_sending")
    assert why in action.detail
    assert flink.sent == []
    rows = rows_of(tmp_path)[-2:]
    assert [row["verb"] for row in rows] == ["rescale", "rescale"]
    assert rows[1]["answer"].startswith("withdrawn before sending: ")
    assert log.read_history(JOB) == open_log(tmp_path).read_history(JOB) == before


def test_a_lease_lost_between_record_and_request_sends_nothing(tmp_path) -> None:
    flink, lease = Flink(JOB), HeldLease()
    start(tmp_path, flink)
    log = open_log(tmp_path, lease)
    appended = log.append_all

    def append_all(entries) -> None:
        appended(entries)
        lease.is_lost = True

    log.append_all = append_all
    with pytest.raises(LeaseLostError):
        JobControl(flink, log, lease.check, lambda: NOW_S).control_jobs([task(JOB)])
    assert flink.sent == []
    assert open_log(tmp_path).read_history(JOB).in_flight is not None  # the next controller ends it


def test_what_a_person_should_know_is_news_once_in_six_hours(tmp_path) -> None:
    def entry(after_s: float, remark: str) -> LogEntry:
        return entry_for(plain_case(NOW_S + after_s, desired=None, remark=remark))

    log, late = open_log(tmp_path), "a backlog of 90 s is left to the running configuration"
    assert not is_news(entry(0, ""), None)
    assert is_news(entry(0, late), None)
    log.append(entry(0, late))
    assert not is_news(entry(300, late), log.read_last(JOB))
    assert is_news(entry(6 * 3600, late), log.read_last(JOB))
    (row,) = rows_of(tmp_path)
    assert (row["verb"], row["reason"], row["detail"]) == ("wait", "left_as_is", late)
