"""A request leaves only shortly after the last check of the lease, wherever the process was stopped since."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from pathlib import Path

import pytest
from control_entries import FOUR, TWO
from flink_server import FakeJob, FlinkServer, serving
from willing_flink import WillingFlink

from controller.actuators.actuator import RequestConflictError
from controller.actuators.flink_actuator import FlinkActuator
from controller.decisions.job_control import JobControl, JobTask
from controller.leases.lease import SEND_WITHIN_S, Lease, LeaseLostError
from include.flink.client import FlinkClient
from models.control.limits import Limits
from models.control.state import Intention, JobHistory, Mode, ObservedJob, Origin

EXPIRY_S, MARGIN_S = 120.0, 5.0


class Clocks:
    def __init__(self) -> None:
        self.now_s, self.monotonic_s = 1_000_000.0, 50.0

    def pass_s(self, seconds: float, *, asleep: bool = False) -> None:
        self.now_s += seconds
        self.monotonic_s += 0.0 if asleep else seconds


@pytest.fixture
def clocks() -> Clocks:
    return Clocks()


@pytest.fixture
def lease(tmp_path, clocks) -> Lease:
    made = Lease(
        str(tmp_path), "c", "one", lambda: clocks.now_s, expiry_s=EXPIRY_S, margin_s=MARGIN_S,
        monotonic=lambda: clocks.monotonic_s,
    )  # fmt: skip
    assert made.take()
    return made


def test_a_request_may_leave_for_a_moment_after_a_check(lease, clocks) -> None:
    assert not lease.may_send()  # nobody has checked yet
    lease.check()
    assert lease.may_send()
    clocks.pass_s(SEND_WITHIN_S - 0.1)
    assert lease.may_send()
    clocks.pass_s(0.1)
    assert not lease.may_send()
    lease.check()
    assert lease.may_send()
    lease.renew()  # a renewal beside it is no check of what is sent
    clocks.pass_s(SEND_WITHIN_S)
    assert not lease.may_send()


@pytest.mark.parametrize("seconds", [SEND_WITHIN_S, -MARGIN_S - 0.1, 1e6])
def test_a_machine_that_sleeps_and_a_clock_that_is_set_end_it(lease, clocks, seconds: float) -> None:
    lease.check()
    clocks.pass_s(seconds, asleep=True)
    assert not lease.may_send()


def test_it_ends_before_the_term_does_and_with_the_lease(lease, clocks) -> None:
    clocks.pass_s(EXPIRY_S - MARGIN_S - 1)
    lease.check()
    assert lease.may_send()
    clocks.pass_s(1)
    assert not lease.may_send()
    with pytest.raises(LeaseLostError):
        lease.check()


def test_a_lease_that_was_given_back_sends_nothing(lease) -> None:
    lease.check()
    lease.release()
    assert not lease.may_send()


def test_a_clock_that_is_set_back_makes_no_term_longer(lease, clocks) -> None:
    clocks.now_s -= 1000
    clocks.monotonic_s += EXPIRY_S
    with pytest.raises(LeaseLostError, match="has ended"):
        lease.check()


class Log:
    def __init__(self) -> None:
        self.entries: list[object] = []

    def append_all(self, entries) -> None:
        self.entries += entries

    def read_last(self, job):
        return self.entries[-1] if self.entries else None

    def read_history(self, job):
        return self.entries[-1].history if self.entries else JobHistory(job_id="j", known_requested=TWO)

    def read_open(self):
        return {one.job: one for one in self.entries[-1:] if one.history.in_flight is not None}


@pytest.mark.parametrize(("stops", "sent"), [(0, 1), (1, 1), (2, 0)])
@pytest.mark.covers("harm sent-late")
def test_a_process_that_is_stopped_between_check_and_request_judges_afresh(
    lease, clocks, stops: int, sent: int
) -> None:
    requests, stopped = [], [0]

    class Flink(WillingFlink):
        def observe(self, job):
            return ObservedJob("j", "RUNNING", TWO, TWO, free_slots=9)

        def request(self, job, job_id, parallelism):
            requests.append(parallelism)

    def check() -> None:
        lease.check()
        if log.entries and stopped[0] < stops:
            stopped[0] += 1 if log.entries[-1].sends else 0
            if log.entries[-1].sends:
                clocks.pass_s(60)

    log = Log()
    controller = JobControl(Flink(), log, check, lambda: 1_795_000_000.0, may_send=lease.may_send)
    wanted = Intention(FOUR, Origin.PLAN, "s", "load rises", 2e9)
    action = controller.control_jobs([JobTask("c/orders", wanted, lambda: Limits(mode=Mode.AUTO))])["c/orders"]
    assert len(requests) == sent
    if not sent:
        assert action.reason in {"withdrawn_before_sending"}
        assert log.entries[-1].history.in_flight is None


@pytest.mark.parametrize("allowed", [0, 1], ids=["before the first byte", "between head and body"])
def test_no_whole_request_comes_to_flink_when_it_may_not_leave_any_more(allowed: int) -> None:
    remaining = [allowed]

    def may_change() -> bool:
        remaining[0] -= 1
        return remaining[0] >= 0

    server = FlinkServer(FakeJob())
    with serving(server):
        actuator = FlinkActuator(FlinkClient(server.url, cluster="c", may_change=may_change), "c")
        observed = actuator.observe("c/orders")
        with pytest.raises(RequestConflictError, match="was not sent"):
            actuator.request("c/orders", observed.job_id, dict.fromkeys(observed.requested, 3))
        assert server.asked("PUT") == []
        remaining[0] = 9
        actuator.observe("c/orders")
        actuator.request("c/orders", observed.job_id, dict.fromkeys(observed.requested, 3))
        assert len(server.asked("PUT")) == 1


def _stop_itself_and_send(lake: str, url: str) -> None:
    """Take the lease, check it, be stopped by a signal as the request is to leave, go on."""
    lease = Lease(lake, "c", "one", time.time, expiry_s=2.0, margin_s=0.25)
    client = FlinkClient(url, cluster="c", may_change=lease.may_send)
    actuator = FlinkActuator(client, "c")
    observed = actuator.observe("c/orders")
    put = client.put_resource_requirements

    def be_stopped(*arguments):
        Path(lake, "stopped").touch()
        os.kill(os.getpid(), signal.SIGSTOP)
        while not Path(lake, "continued").exists():  # a signal may take a moment
            time.sleep(0.01)
        return put(*arguments)

    client.put_resource_requirements = be_stopped
    assert lease.take()
    lease.check()
    try:
        actuator.request("c/orders", observed.job_id, dict.fromkeys(observed.requested, 5))
    except RequestConflictError:
        os._exit(7)
    os._exit(0)


@pytest.mark.covers("harm sent-late")
def test_a_controller_that_was_stopped_does_not_overwrite_what_the_next_one_asked_for(tmp_path) -> None:
    server = FlinkServer(FakeJob())
    with serving(server):
        stopped = multiprocessing.get_context("spawn").Process(
            target=_stop_itself_and_send, args=(str(tmp_path), server.url)
        )
        stopped.start()
        while not (tmp_path / "stopped").exists():
            time.sleep(0.05)
        other = Lease(str(tmp_path), "c", "two", time.time, expiry_s=60.0, margin_s=0.25)
        while not other.take():
            time.sleep(0.1)
        actuator = FlinkActuator(FlinkClient(server.url, cluster="c", may_change=other.may_send), "c")
        observed = actuator.observe("c/orders")
        other.check()
        actuator.request("c/orders", observed.job_id, dict.fromkeys(observed.requested, 3))
        (tmp_path / "continued").touch()
        os.kill(stopped.pid, signal.SIGCONT)
        _, status = os.waitpid(stopped.pid, 0)
        assert os.waitstatus_to_exitcode(status) == 7
        assert set(server.jobs[0].requested.values()) == {3}
