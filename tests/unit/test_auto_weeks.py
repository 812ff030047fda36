"""The parts of ``python -m benchmarks.auto_weeks``: the clock that jumps, late slots, stops, and what is judged."""

from __future__ import annotations

import random
import threading
from dataclasses import replace

import pytest

from benchmarks.auto_weeks.__main__ import build_job
from benchmarks.auto_weeks.events import PER_DAY, draw_events
from benchmarks.auto_weeks.job_double import JobDouble, Second
from benchmarks.auto_weeks.judgement import find_spans
from benchmarks.auto_weeks.jumping_clock import JumpingClock
from benchmarks.auto_weeks.replies import Replies
from benchmarks.auto_weeks.server import Run
from benchmarks.auto_weeks.slots import COMES_S, IDLE_S, Slots


def test_a_clock_jumps_to_the_earliest_time_that_is_waited_for_once_all_threads_wait() -> None:
    jumps: list[float] = []

    def jump(until_s: float) -> float:
        jumps.append(until_s)
        return until_s

    clock, ended = JumpingClock(jump), threading.Event()
    woken: dict[str, list[float]] = {"ticks": [], "polls": []}

    def wait(name: str, every_s: float, times: int) -> None:
        for _ in range(times):
            clock.wait(ended.is_set, every_s)
            woken[name].append(clock.now_s)
        clock.wait(ended.is_set, 1e6)

    threads = [threading.Thread(target=wait, args=arguments) for arguments in (("ticks", 60.0, 2), ("polls", 45.0, 3))]
    for thread in threads:
        thread.start()
    while len(woken["ticks"]) < 2 or len(woken["polls"]) < 3:
        threading.Event().wait(0.001)
    ended.set()
    for thread in threads:
        thread.join()
    assert woken == {"ticks": [60.0, 120.0], "polls": [45.0, 90.0, 135.0]}
    assert jumps[:6] == [0.0, 45.0, 60.0, 90.0, 120.0, 135.0]


def test_slots_come_late_are_given_back_and_do_not_come_while_there_are_none() -> None:
    slots = Slots(random.Random(1), 4, 1)
    slots.follow(0.0, asked=10, running=4)
    assert (slots.managers, len(slots.arrivals_s)) == (1, 2)
    assert all(COMES_S[0] <= at_s <= COMES_S[1] for at_s in slots.arrivals_s)
    slots.follow(COMES_S[1], asked=10, running=4)
    assert slots.count == 12
    slots.follow(500.0, asked=4, running=4)
    slots.follow(500.0 + IDLE_S, asked=4, running=4)
    assert slots.count == 4
    slots.lose(1_000.0)
    slots.follow(600.0, asked=4, running=0)
    slots.follow(999.0, asked=4, running=0)
    assert slots.count == 0
    slots.follow(1_000.0, asked=4, running=0)
    assert slots.count == 4


def test_each_kind_of_event_comes_in_a_run_and_a_seed_draws_the_same() -> None:
    events = draw_events(random.Random(3), 0.0, 0.2)
    assert {one.kind for one in events} == set(PER_DAY)
    assert events == draw_events(random.Random(3), 0.0, 0.2)
    assert len(draw_events(random.Random(3), 0.0, 14.0)) > 40


@pytest.fixture(scope="module")
def shipped() -> JobDouble:
    return build_job("fleet-telemetry", 0.2, 1)


@pytest.fixture
def job(shipped: JobDouble) -> JobDouble:
    return replace(shipped, seconds=[], job_ids=[], restarts=[], deployment=None)


def go_on(job: JobDouble, seconds: float) -> None:
    until_s = job.now_s + seconds
    while job.now_s < until_s:
        job.advance()


def ask(job: JobDouble, count: int) -> None:
    job.ask(dict.fromkeys(job.vertices, count), dict.fromkeys(job.vertices, 1))


def test_a_rise_runs_once_slots_have_come_and_a_checkpoint_after_them(job: JobDouble) -> None:
    go_on(job, 60)
    ask(job, 20)
    go_on(job, COMES_S[0] - 10)
    assert job.slots.count < 20
    assert max(job.running) < 20
    go_on(job, COMES_S[1] + 120)
    assert job.running == (20, 20, 20)
    stop = job.restarts[-1]
    completed_s = job.state.checkpoints[0, :, :2].sum(axis=1)
    assert stop.down_from_s - completed_s[completed_s <= stop.down_from_s].max() < 20


def test_a_lost_node_makes_the_job_fail_and_it_runs_at_what_is_there_until_another_comes(job: JobDouble) -> None:
    go_on(job, 60)
    before = job.running
    job.lose_manager(job.now_s + 600)
    go_on(job, 300)
    assert job.is_up
    assert max(job.running) == job.slots.count < max(before)
    go_on(job, 900)
    assert job.running == before
    assert [str(one.kind) for one in job.restarts] == ["restart", "rescale"]


def test_an_upgrade_gives_the_job_another_id_and_only_then_is_the_earlier_one_finished(job: JobDouble) -> None:
    replies, first = Replies(job), job.job_id

    def states() -> dict[str, str]:
        return {one["jid"]: one["state"] for one in replies.reply("/jobs/overview", {}, job.now_s)["jobs"]}

    go_on(job, 60)
    job.deploy(30.0, 60.0, 40.0, (5, 5, 5))
    assert replies.reply(f"/jobs/{first}/checkpoints", {}, job.now_s)["counts"]["in_progress"] == 1
    go_on(job, 50)
    assert states() == {first: "FINISHED"}
    assert replies.reply(f"/jobs/{first}/resource-requirements", {}, job.now_s) is None
    go_on(job, 60)
    assert states() == {first: "FINISHED", job.job_id: "CREATED"}
    go_on(job, 60)
    assert states() == {first: "FINISHED", job.job_id: "RUNNING"}
    assert job.running == (5, 5, 5)


def test_a_request_with_the_id_of_an_earlier_job_is_refused_and_one_whose_reply_is_lost_is_in_force(
    job: JobDouble, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Run(job, [], job.start_s + 3600, 32, 1)
    trouble = iter(["", "500", "dropped", "reply lost"])
    monkeypatch.setattr("benchmarks.auto_weeks.server.draw_trouble", lambda _: next(trouble))
    body = {vertex: {"parallelism": {"lowerBound": 1, "upperBound": 9}} for vertex in job.vertices}
    assert run.put("f" * 32, body)[0] == 404
    assert [run.put(job.job_id, body)[0] for _ in range(3)] == [500, 0, 0]
    assert [one.in_force_s is not None for one in run.asked] == [False, False, False, True]
    assert job.asked == (9, 9, 9)


def test_spans_end_where_something_does_not_hold() -> None:
    seconds = [Second(10.0 * place, 4, asked, 4, 2, False) for place, asked in enumerate([4, 8, 8, 4, 8], 1)]
    assert find_spans(seconds, lambda one: one.asked > one.running) == [(10.0, 30.0), (40.0, 50.0)]
