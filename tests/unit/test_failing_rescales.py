"""A rescale that makes the job fail is taken back at once, named, and not tried again before a person says so."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from uuid import UUID

import flink_server
import pytest
from controlled_flink import ENRICH, SOURCE, World, controlled
from flink_rescaling import RescalingJob

from models.control.case import OutcomeCheck, Verb
from models.control.state import Mode, Origin

UP = 4
BEFORE = {SOURCE: 1, ENRICH: 2}
BROKEN = """org.apache.flink.runtime.JobException: Recovery is suppressed
\tat org.apache.flink.Some.place(Some.java:1)
Caused by: java.lang.Exception: Could not perform checkpoint 17
Caused by: java.lang.IllegalStateException: partition 3 of topic orders-7 has no reader in subtask 5
\tat com.example.Reader.open(Reader.java:17)
"""
LOST = """org.apache.flink.runtime.jobmaster.JobMasterException: gone
Caused by: org.apache.flink.runtime.io.network.netty.exception.RemoteTransportException: Connection unexpectedly closed
"""
NO_SLOTS = """java.util.concurrent.CompletionException: x
Caused by: org.apache.flink.runtime.jobmanager.scheduler.NoResourceAvailableException: Could not acquire the resources
"""


def breaking(text: str = BROKEN, **options) -> RescalingJob:
    """Return a job that cannot run at four."""
    return RescalingJob(interval_s=60, breaks=lambda now: text if now[ENRICH] >= UP else None, **options)


def rise(world: World) -> list[str]:
    """Ask for what breaks the job; returns what was decided within two minutes."""
    world.wanted, world.origin = UP, Origin.REACTIVE
    return [world.tick().reason, *world.ticks(2)]


def taken_back(world: World):
    (entry,) = [one for one in world.entries if one.action.reason == "job_fails" and not one.answer]
    return entry


@pytest.mark.covers("flink_waits 5")
def test_it_is_taken_back_at_the_next_look_with_the_exception_in_log_and_outcome() -> None:
    with controlled(breaking()) as world:
        assert rise(world)[:2] == ["reactive", "job_fails"]
        entry = taken_back(world)
        assert entry.action.verb is Verb.ROLL_BACK
        assert "partition 3 of topic orders-7 has no reader" in entry.action.detail
        assert world.job.requested == BEFORE
        assert world.ticks(1)[-1] != "in_flight"
        assert world.job.parallelism == BEFORE
        assert world.job.state == "RUNNING"
        assert world.job.outage_s < 75  # a tick, not three and a half minutes


@pytest.mark.covers("flink_waits 5")
@pytest.mark.parametrize(
    "message",
    [
        "java.lang.IllegalStateException: cannot open /tmp/flink-io-{one}/spill",
        "java.lang.IllegalStateException: no reader of Split@{two:X}",
        "java.lang.RuntimeException: record of {three} cannot be read\n\tat com.example.Reader.open(Reader.java:17)",
    ],
)
def test_an_exception_whose_message_differs_each_time_is_one(message: str) -> None:
    chance = random.Random(4)

    def fail(now: dict[str, int]) -> str | None:
        given = {"one": UUID(int=chance.getrandbits(128)), "two": chance.getrandbits(28)}
        text = message.format(**given, three="".join(chance.choices("opqrstuv", k=8)))
        return f"a.B: outer\n\tat c.D(E.java:3)\nCaused by: {text}" if now[ENRICH] >= UP else None

    with controlled(RescalingJob(interval_s=60, breaks=fail)) as world:
        assert rise(world)[1] == "job_fails"
        assert world.job.requested == BEFORE


@pytest.mark.covers("flink_waits 5")
def test_a_history_of_one_exception_is_enough() -> None:
    """web.exception-history-size may be 1: what was told at an earlier look is remembered."""
    job = breaking()
    report = job.exceptions

    def tell_last() -> dict[str, object]:
        entries = report()["exceptionHistory"]["entries"]
        return {"exceptionHistory": {"entries": entries[:1], "truncated": len(entries) > 1}}

    job.exceptions = tell_last  # type: ignore[method-assign]
    with controlled(job) as world:
        assert "job_fails" in [*rise(world), *world.ticks(1)]
        assert world.job.requested == BEFORE


@pytest.mark.covers("flink_waits 5")
def test_a_confirmed_rescale_that_fails_later_is_taken_back_too() -> None:
    late = {"broken": False}
    job = RescalingJob(interval_s=60, breaks=lambda now: BROKEN if late["broken"] and now[ENRICH] >= UP else None)
    with controlled(job) as world:
        assert "runs_as_requested" in rise(world)
        late["broken"] = True
        assert world.ticks(1) == ["job_fails"]
        assert world.job.requested == BEFORE


@pytest.mark.covers("flink_waits 5")
def test_the_target_stays_blocked_until_a_person_lifts_it() -> None:
    with controlled(breaking()) as world:
        rise(world)
        world.pass_s(24 * 3600)  # longer than apply.block_h
        assert world.tick().reason == "blocked_target"
        assert "partition 3" in world.tick().detail
        assert "tidewise lift" in world.tick().detail
        puts = world.puts
        (block,) = [one for one in world.read_history("").blocked if math.isinf(one.until_s)]
        world.limits = replace(world.limits, lifted_blocks=("another",))
        assert world.tick().reason == "blocked_target"
        world.limits = replace(world.limits, lifted_blocks=(block.block_id,))
        assert world.tick().reason == "reactive"
        assert world.puts == puts + 1
        assert world.ticks(1) == ["job_fails"]  # lifted once, not for ever
        world.ticks(20)
        assert world.tick().reason == "blocked_target"


def test_a_deployment_of_the_same_job_lifts_no_block() -> None:
    with controlled(breaking()) as world:
        rise(world)
        world.ticks(1)
        world.job.job_id = "c" * 32
        assert world.tick().reason == "new_job_id"
        assert world.ticks(10)[-1] == "blocked_target"


@pytest.mark.parametrize("text", [LOST, NO_SLOTS])
def test_where_task_managers_or_slots_were_lost_it_is_blocked_for_a_time(text: str) -> None:
    with controlled(breaking(text)) as world:
        assert "job_fails" not in rise(world)  # one loss, as of a TaskManager that comes back
        assert "job_fails" in world.ticks(5)
        (block,) = [one for one in world.read_history("").blocked if one.parallelism[ENRICH] == UP]
        assert block.until_s == taken_back(world).case.now_s + world.limits.block_s


def test_an_exception_that_the_job_had_before_is_not_the_rescale_s() -> None:
    job = RescalingJob(interval_s=60)
    job.failures = [(1_794_999_000.0, BROKEN.replace("partition 3", "partition 9"))]
    job.breaks = lambda now: BROKEN if now[ENRICH] >= UP and len(job.failures) < 4 else None
    with controlled(job) as world:
        assert "job_fails" not in rise(world)
        assert "runs_as_requested" in [*world.ticks(3), *[one.action.reason for one in world.entries]]


def test_one_failure_or_failures_of_other_kinds_are_not_enough() -> None:
    job = RescalingJob(interval_s=60)
    kinds = ["java.lang.A: x", "java.lang.B: x", "java.lang.C: x"]
    job.breaks = lambda now: kinds[len(job.failures)] if now[ENRICH] >= UP and len(job.failures) < 3 else None
    with controlled(job) as world:
        assert "job_fails" not in [*rise(world), *world.ticks(5)]
        assert len(job.failures) == 3


@pytest.mark.parametrize("limits", [{"mode": Mode.OFF}, {"is_held": True}, {"in_blackout": True}])
def test_nothing_is_taken_back_where_nothing_may_be_sent(limits: dict[str, object]) -> None:
    with controlled(breaking()) as world:
        world.wanted, world.origin = UP, Origin.REACTIVE
        world.tick()
        before = world.limits
        world.limits = replace(before, **limits)
        assert "job_fails" not in world.ticks(2)
        assert world.puts == 1
        world.limits = before
        assert world.ticks(1) == ["job_fails"]


def test_what_somebody_else_set_meanwhile_is_not_taken_back() -> None:
    with controlled(breaking()) as world:
        world.wanted, world.origin = UP, Origin.REACTIVE
        world.tick()
        world.pass_s(20)
        world.job.put({SOURCE: 3, ENRICH: 3}, world.now())
        world.job.requested = {SOURCE: 3, ENRICH: 3}
        assert world.ticks(1) == ["foreign_change"]
        assert world.job.requested == {SOURCE: 3, ENRICH: 3}


@pytest.mark.parametrize("ahead_s", [0.0, 3600.0, -3600.0])
def test_failures_that_flink_does_not_tell_take_nothing_back(ahead_s: float) -> None:
    with controlled(breaking()) as world:
        world.ahead_s = ahead_s
        world.server.troubles["/exceptions"] = flink_server.reply_500
        assert "job_fails" not in rise(world)
        world.server.troubles.clear()
        assert "job_fails" in world.ticks(1)  # what came after the request was sent counts


def test_a_job_that_is_well_is_not_asked_for_failures_for_ever() -> None:
    with controlled(RescalingJob(interval_s=60)) as world:
        assert "runs_as_requested" in rise(world)
        world.wanted, world.outcome = None, OutcomeCheck(is_worse=False)
        world.ticks(1)
        asked = len(world.server.requests)
        world.ticks(3)
        assert not [path for path in world.server.asked()[asked:] if path.endswith("/exceptions")]
