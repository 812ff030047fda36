"""From a decision to its request: what is written down, what is asked under the lease, and what is not sent."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from importlib.metadata import EntryPoint
from typing import Any

import pytest

from controller.actuators.actuator import RequestUnknownError
from controller.decisions.job_control import JobControl, JobTask
from controller.decisions.step_reviews import GROUP, load_reviews
from controller.leases.lease import LeaseLostError
from controller.log.control_log import EntryRefusedError, LogEntry
from models.control.case import Action
from models.control.limits import Limits
from models.control.readiness import Checkpoints, MemoryUsage, Readiness
from models.control.state import Mode, ObservedJob
from tests.unit import test_open_requests
from tests.unit.test_open_requests import AUTO, NOW_S, StoredLog, want

JOB = "c/a"
CHECKPOINTS = Checkpoints(interval_s=600.0, completed_at_s=1_000.0)
OLD_CHECKPOINT = Readiness(CHECKPOINTS, MemoryUsage(0.5, 0.0), (), now_s=1_500.0, waits_for_checkpoint=False)
"""Of a Flink that does not wait for the next one."""


class Log(StoredLog):
    """A log that counts its lines, and refuses those of some jobs."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[LogEntry] = []
        self.refuses: set[str] = set()

    def append_all(self, entries: Sequence[LogEntry]) -> None:
        for entry in entries:
            if entry.job in self.refuses:
                raise EntryRefusedError(entry.job, "it is too long")
        super().append_all(entries)
        self.lines += entries


@dataclass
class Cluster(test_open_requests.Cluster):
    """Jobs whose cluster may reply otherwise from the second look on.

    Attributes:
        ready: what it says of checkpoints; None where nobody can be asked for them.
        triggered: jobs of which a checkpoint was asked for.
        later: what becomes of what is observed before the request leaves.
    """

    ready: Readiness | None = field(default_factory=lambda: test_open_requests.Cluster(0).inspect("", ""))
    triggered: list[str] = field(default_factory=list)
    later: Callable[[ObservedJob], ObservedJob] = lambda observed: observed
    looks: int = 0

    def observe(self, job: str) -> ObservedJob:
        self.looks += 1
        observed = super().observe(job)
        return self.later(observed) if self.looks > 1 else observed

    def inspect(self, job: str, job_id: str) -> Readiness | None:  # type: ignore[override]
        return self.ready

    def trigger_checkpoint(self, job: str, job_id: str) -> None:
        self.triggered.append(job)


class Controller:
    """A controller of a cluster of 20 slots with jobs of two each, which it has taken over."""

    def __init__(self, *jobs: str) -> None:
        self.cluster, self.log, self.now_s = Cluster(20), Log(), NOW_S
        for job in jobs or (JOB,):
            self.cluster.start(job, 2)
        for job in self.cluster.asked:
            self.decide({job: None})

    def decide(
        self,
        wanted: dict[str, int | None],
        limits: Callable[[], Limits] = lambda: AUTO,
        check_lease: Callable[[], None] = lambda: None,
    ) -> dict[str, Action]:
        self.now_s += 10
        self.cluster.looks = 0
        controller = JobControl(self.cluster, self.log, check_lease, lambda: self.now_s)
        steps = {job: None if slots is None else want(slots, job, self.now_s) for job, slots in wanted.items()}
        return controller.control_jobs([JobTask(job, step, limits) for job, step in steps.items()])


def one_after_the_other(*limits: Limits) -> Callable[[], Limits]:
    """Return limits that change between a decision and its request."""
    remaining = list(limits)
    return lambda: remaining.pop(0)


def test_the_same_decision_is_written_down_once() -> None:
    made = Controller()
    off = replace(AUTO, mode=Mode.OFF)
    before = len(made.log.lines)
    for _ in range(3):
        assert made.decide({JOB: 3}, lambda: off)[JOB].reason == "mode_off"
    assert len(made.log.lines) == before + 1


def test_what_cannot_be_written_down_is_not_sent_and_keeps_no_other_from_its_turn() -> None:
    made = Controller(JOB, "c/b")
    made.log.refuses = {JOB}
    actions = made.decide({JOB: 3, "c/b": 4})
    assert {job: str(one.reason) for job, one in actions.items()} == {JOB: "not_recorded", "c/b": "plan"}
    assert made.cluster.sent == [("c/b", 4)]


def test_no_checkpoint_is_asked_for_without_the_lease() -> None:
    def lose() -> None:
        raise LeaseLostError("another controller has it")

    made = Controller()
    made.cluster.ready = OLD_CHECKPOINT
    with pytest.raises(LeaseLostError):
        made.decide({JOB: 3}, check_lease=lose)
    assert made.cluster.triggered == []
    assert made.decide({JOB: 3})[JOB].reason == "checkpoint_first"
    assert made.cluster.triggered == [JOB]


def test_a_decision_without_news_needs_no_lease() -> None:
    """Nothing is written and nothing is asked, so that a follower may look at its jobs."""

    def lose() -> None:
        raise LeaseLostError("another controller has it")

    assert Controller().decide({JOB: None}, check_lease=lose)[JOB].reason == "as_desired"


def test_where_nobody_can_be_asked_for_checkpoints_nothing_is_sent() -> None:
    made = Controller()
    made.cluster.ready = None
    action = made.decide({JOB: 3})[JOB]
    assert (action.reason, made.cluster.sent) == ("withdrawn_before_sending", [])
    assert action.detail.startswith("checkpoints_unknown: ")


@pytest.mark.parametrize(
    ("after", "why"),
    [
        (replace(AUTO, mode=Mode.DRY_RUN), "plan: "),
        (replace(AUTO, slots_max=4), "plan: "),
        (replace(AUTO, is_held=True), "on_hold: "),
    ],
)
def test_what_the_limits_do_not_allow_any_more_is_not_sent(after: Limits, why: str) -> None:
    made = Controller()
    action = made.decide({JOB: 6}, one_after_the_other(AUTO, after))[JOB]
    assert (action.reason, made.cluster.sent) == ("withdrawn_before_sending", [])
    assert action.detail.startswith(why)
    assert made.log.lines[-1].answer == f"withdrawn before sending: {action.detail}"


def fail(_: ObservedJob) -> ObservedJob:
    raise RequestUnknownError("no reply in 20 s")


@pytest.mark.parametrize(
    ("later", "why"),
    [
        (fail, "no_reply: no reply in 20 s"),
        (lambda observed: replace(observed, job_id="another"), "new_job_id: "),
        (lambda observed: replace(observed, free_slots=2), "plan: "),
        (lambda observed: replace(observed, requested={"v": 3}), "foreign_change: "),
    ],
)
def test_what_the_cluster_does_not_bear_out_any_more_is_not_sent(
    later: Callable[[ObservedJob], ObservedJob], why: str
) -> None:
    made = Controller()
    made.cluster.later = later
    action = made.decide({JOB: 6})[JOB]
    assert (action.reason, made.cluster.sent) == ("withdrawn_before_sending", [])
    assert action.detail.startswith(why)


def test_what_is_still_right_is_sent() -> None:
    made = Controller()
    assert made.decide({JOB: 6}, one_after_the_other(AUTO, replace(AUTO, slots_max=60)))[JOB].reason == "plan"
    assert made.cluster.sent == [(JOB, 6)]


def test_the_reviews_that_are_installed_are_named_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "controller.decisions.step_reviews")
    load_reviews([])
    assert caplog.messages == []
    names: list[Any] = [EntryPoint(name, "models.control.step_review:let_pass", GROUP) for name in ("two", "one")]
    load_reviews(names)
    assert caplog.messages == ["steps are reviewed by one, two"]
