"""A rescale waits for Flink: no savepoint is ended, no state lost, no hours repeated, and none is given up too soon."""

from __future__ import annotations

import math
from dataclasses import replace

import flink_server
import pytest
from controlled_flink import ENRICH, SOURCE, World, controlled
from flink_rescaling import RescalingJob

from models.control.case import OutcomeCheck, Verb
from models.control.readiness import Guards
from models.control.state import Mode, Origin
from models.policies.memory import dump

UP, DOWN = 4, 1


@pytest.mark.covers("flink_waits 1")
def test_no_request_ends_a_savepoint_and_it_is_sent_when_that_is_done() -> None:
    with controlled(RescalingJob(interval_s=60)) as world:
        world.job.savepoint(lasts_s=400)
        for world.wanted, world.origin in ((DOWN, Origin.PLAN), (UP, Origin.REACTIVE), (UP, Origin.PLAN)):
            action = world.tick()
            assert (action.verb, action.reason) == (Verb.REFUSE, "savepoint_in_progress")
        assert world.puts == 0
        assert world.ticks(12)[:2] == ["savepoint_in_progress", "plan"]
        assert world.job.broken_savepoints == 0
        assert world.job.parallelism == {SOURCE: UP, ENRICH: UP}


@pytest.mark.covers("flink_waits 1")
def test_a_savepoint_that_begins_between_decision_and_request_is_not_ended() -> None:
    with controlled(RescalingJob(interval_s=60)) as world:
        world.wanted = UP
        ask = world.actuator.inspect

        def inspect_then_save(job: str, job_id: str):
            result = ask(job, job_id)
            if not world.job._in_progress:
                world.job.savepoint(lasts_s=300)
            return result

        world.actuator.inspect = inspect_then_save  # type: ignore[method-assign]
        assert world.tick().reason == "withdrawn_before_sending"
        assert world.puts == 0


@pytest.mark.covers("flink_waits 1")
@pytest.mark.parametrize(("interval_s", "after_s"), [(60, 50), (600, 1600)])
def test_a_savepoint_that_begins_while_flink_waits_is_spared(interval_s: float, after_s: float) -> None:
    with controlled(RescalingJob(interval_s=interval_s, slots_s=math.inf)) as world:
        world.wanted, world.origin = UP, Origin.REACTIVE
        world.tick()
        world.pass_s(after_s)
        world.job.savepoint(lasts_s=900)
        reported = world.ticks(10)
        assert "savepoint_in_progress" in reported
        assert reported[-1] == "savepoint_in_progress"  # not blocked, and not given up
        assert world.job.parallelism == {SOURCE: 1, ENRICH: 2}
        world.job.slots_s = 0
        world.ticks(20)
        assert world.job.broken_savepoints == 0
        assert world.job.parallelism == {SOURCE: UP, ENRICH: UP}


@pytest.mark.parametrize("is_broken", [True, False])
def test_a_savepoint_that_the_rescale_ended_is_named(is_broken: bool) -> None:
    with controlled(RescalingJob(interval_s=60)) as world:
        world.wanted, world.origin = UP, Origin.REACTIVE
        if not is_broken:
            world.job.savepoint(lasts_s=10)
            world.pass_s(60)
        world.tick()
        if is_broken:
            world.pass_s(1)
            world.job.savepoint(lasts_s=600)
        world.ticks(4)
        assert world.job.broken_savepoints == is_broken
        (confirmed,) = (one.action for one in world.entries if one.action.verb is Verb.CONFIRM)
        assert ("; a savepoint failed" in confirmed.detail) == is_broken


def assert_spared_at_once(world: World) -> None:
    """Ask for a rise, let somebody begin a savepoint while Flink waits with it, and look at what becomes of both."""
    world.wanted, world.origin = UP, Origin.REACTIVE
    world.tick()
    world.pass_s(30)
    world.job.savepoint(lasts_s=600)
    assert world.ticks(9)[0] == "savepoint_in_progress"
    assert (world.job.broken_savepoints, world.job.parallelism) == (0, {SOURCE: 1, ENRICH: 2})


@pytest.mark.covers("flink_waits 1")
def test_where_checkpoints_are_taken_beside_a_savepoint_it_is_spared_at_once() -> None:
    """The next checkpoint is completed in the midst of the savepoint, and Flink begins with the rescale."""
    with controlled(RescalingJob(interval_s=600, max_concurrent=2, slots_s=200)) as world:
        assert_spared_at_once(world)
        world.job.slots_s = 0
        world.ticks(10)
        assert (world.job.broken_savepoints, world.job.parallelism) == (0, {SOURCE: UP, ENRICH: UP})


@pytest.mark.covers("flink_waits 1")
def test_a_savepoint_that_begins_beside_the_checkpoint_for_which_flink_waits_is_spared() -> None:
    """A savepoint begins at once, whatever is in progress: the checkpoint is completed first, and Flink begins."""
    with controlled(RescalingJob(interval_s=600, checkpoint_s=180)) as world:
        world.pass_s(200)
        assert_spared_at_once(world)
        world.ticks(20)
        assert (world.job.broken_savepoints, world.job.parallelism) == (0, {SOURCE: UP, ENRICH: UP})


@pytest.mark.parametrize("origin", [Origin.REACTIVE, Origin.PLAN])
@pytest.mark.parametrize("wanted", [UP, DOWN])
@pytest.mark.covers("flink_waits 2")
def test_without_checkpoints_nothing_is_sent(origin: Origin, wanted: int) -> None:
    with controlled(RescalingJob(interval_s=None)) as world:
        world.wanted, world.origin = wanted, origin
        action = world.tick()
        assert (action.verb, action.reason) == (Verb.REFUSE, "checkpoints_off")
        assert "lose its state" in action.detail
        assert world.puts == 0
        world.server.troubles["/checkpoints/config"] = flink_server.reply_with(
            {"errors": ["Checkpointing is not enabled for this job (a)."]}, 404
        )
        assert world.tick().reason == "checkpoints_off"


@pytest.mark.covers("flink_waits 2")
def test_before_the_first_checkpoint_nothing_is_sent() -> None:
    with controlled(run_s=100) as world:
        world.wanted, world.origin = UP, Origin.REACTIVE
        assert world.tick().reason == "no_checkpoint"
        assert world.ticks(15)[-1] in {"as_desired", "runs_as_requested"}
        assert math.inf not in world.job.replays_s


@pytest.mark.parametrize(
    ("wanted", "origin", "reason"),
    [
        (DOWN, Origin.PLAN, "checkpoints_failing"),
        (DOWN, Origin.REACTIVE, "checkpoints_failing"),
        (UP, Origin.PLAN, "checkpoints_failing"),
        (UP, Origin.PIN, "checkpoints_failing"),
        (UP, Origin.REACTIVE, "reactive"),
    ],
)
@pytest.mark.covers("flink_waits 3")
def test_while_checkpoints_fail_only_an_overload_is_helped(wanted: int, origin: Origin, reason: str) -> None:
    with controlled(RescalingJob(interval_s=60)) as world:
        world.job.are_failing = True
        world.pass_s(6 * 3600)
        world.wanted, world.origin = wanted, origin
        action = world.tick()
        assert action.reason == reason
        assert world.puts == (reason == "reactive")
        assert "checkpoints fail" in action.detail


@pytest.mark.parametrize(
    ("later_s", "reason"), [(1100, "plan"), (1900, "checkpoint_too_old"), (6 * 3600, "checkpoint_too_old")]
)
@pytest.mark.covers("flink_waits 3")
def test_three_intervals_are_the_oldest_age_for_a_saving(later_s: float, reason: str) -> None:
    with controlled() as world:
        world.job.checkpoint_s = math.inf  # none is completed any more, and none fails
        world.pass_s(later_s)
        world.wanted = DOWN
        assert world.tick().reason == reason


def test_the_oldest_age_is_a_setting() -> None:
    with controlled(run_s=1000) as world:
        world.wanted = DOWN
        world.limits = replace(world.limits, guards=Guards(checkpoint_max_age_s=300))
        assert world.tick().reason == "checkpoint_too_old"
        world.limits = replace(world.limits, guards=Guards(checkpoint_max_age_s=900))
        assert world.tick().reason == "plan"


@pytest.mark.parametrize("path", ["/checkpoints", "/checkpoints/config"])
@pytest.mark.parametrize(
    "trouble",
    [
        flink_server.reply_500,
        flink_server.reply_html,
        flink_server.reply_with({}),
        flink_server.reply_with([]),
        flink_server.reply_with(None),
        flink_server.reply_with({"errors": ["not allowed"]}, 403),
        flink_server.reply_with({"interval": None, "counts": {"in_progress": 0}, "latest": None, "history": None}),
    ],
)
@pytest.mark.covers("flink_waits 9")
def test_what_flink_does_not_tell_of_checkpoints_is_no_permission(path: str, trouble: flink_server.Trouble) -> None:
    with controlled() as world:
        world.wanted, world.origin = UP, Origin.REACTIVE
        world.server.troubles[path] = trouble
        assert world.tick().reason == "checkpoints_unknown"
        assert world.puts == 0
        world.server.troubles.clear()
        assert world.tick().reason == "reactive"


def test_a_savepoint_that_flink_counts_and_does_not_list_closes_the_gate() -> None:
    with controlled() as world:
        world.wanted = DOWN
        reported = world.job.checkpoints(world.now())
        hidden = reported | {"counts": reported["counts"] | {"in_progress": 1}}
        world.server.troubles["/checkpoints"] = flink_server.reply_with(hidden)
        assert world.tick().reason == "checkpoints_unknown"


def test_a_dry_run_says_what_would_be_refused_and_asks_once() -> None:
    with controlled() as world:
        world.limits, world.wanted = replace(world.limits, mode=Mode.DRY_RUN), DOWN
        assert world.tick().is_dry_run
        asked = len(world.server.requests)
        world.pass_s(60)
        world.tick()
        assert not [path for path in world.server.asked()[asked:] if "checkpoint" in path]
        world.wanted = UP
        world.job.savepoint(lasts_s=300)
        assert world.tick().reason == "savepoint_in_progress"
        assert world.puts == 0
        assert world.job.triggered == []


def test_a_tick_without_a_request_asks_nothing_more() -> None:
    with controlled() as world:
        asked = len(world.server.requests)
        world.ticks(3)
        more = ("checkpoint", "taskmanagers", "exceptions")
        assert not [path for path in world.server.asked()[asked:] if any(part in path for part in more)]


# the wait is Flink's


@pytest.mark.covers("flink_waits 4")
def test_with_checkpoints_every_ten_minutes_a_rise_is_carried_out_and_shown_as_waiting() -> None:
    """A checkpoint that is asked for is refused here: Flink waits for its own."""
    with controlled(RescalingJob(slots_s=400)) as world:
        world.wanted, world.origin = UP, Origin.REACTIVE
        action = world.tick()
        assert "1800 s for the next checkpoint" in action.detail
        assert action.request.deadline_s - action.request.sent_at_s >= 1800 + world.limits.confirm_timeout_s
        world.pass_s(200)  # longer than apply.confirm_timeout_s
        waiting = world.tick()
        assert waiting.reason == "in_flight"
        assert "for the next checkpoint" in waiting.detail
        assert world.ticks(20)[:2] == ["in_flight", "runs_as_requested"]
        assert world.puts == 1


@pytest.mark.covers("flink_waits 4")
def test_the_longest_wait_is_that_of_the_configurations() -> None:
    with controlled(RescalingJob(slots_s=math.inf, max_delay_s=3000)) as world:
        world.server.config = [
            {"key": "jobmanager.scheduler", "value": "adaptive"},
            {"key": "jobmanager.adaptive-scheduler.rescale-trigger.max-delay", "value": "50 min"},
        ]
        world.pass_s(60)
        world.wanted, world.origin = UP, Origin.REACTIVE
        world.tick()
        assert world.ticks(60)[:2] == ["in_flight", "runs_as_requested"]
        assert world.job.parallelism == {SOURCE: UP, ENRICH: UP}


def test_what_flink_does_not_fill_in_its_own_time_is_still_taken_back() -> None:
    with controlled() as world:
        world.job.max_delay_s, world.job.slots_s = math.inf, math.inf
        world.wanted, world.origin = UP, Origin.REACTIVE
        world.tick()
        reported = world.ticks(60)
        assert reported[:2] == ["in_flight", "not_filled"]
        assert world.job.requested == {SOURCE: 1, ENRICH: 2}


@pytest.mark.covers("flink_waits 4")
def test_a_checkpoint_is_asked_for_right_after_the_request() -> None:
    with controlled(run_s=1000) as world:
        world.wanted, world.origin = UP, Origin.REACTIVE
        world.tick()
        assert world.job.triggered == [world.now()]
        assert world.ticks(1) == ["runs_as_requested"]
        assert max(world.job.replays_s) <= 10


def test_a_checkpoint_that_came_before_the_slots_is_asked_for_again() -> None:
    with controlled(RescalingJob(slots_s=90), run_s=1000) as world:
        world.wanted, world.origin = UP, Origin.REACTIVE
        world.tick()
        assert "runs_as_requested" in world.ticks(4)
        assert len(world.job.triggered) == 3


@pytest.mark.parametrize("version", ["1.18.1", "1.19.0"])
@pytest.mark.parametrize("origin", [Origin.REACTIVE, Origin.PLAN])
def test_where_flink_waits_for_none_a_checkpoint_is_asked_for_before_the_request(version: str, origin: Origin) -> None:
    with controlled(version=version, run_s=1000) as world:
        world.wanted, world.origin = UP, origin
        assert world.tick().reason == "checkpoint_first"
        assert (world.puts, len(world.job.triggered)) == (0, 1)
        assert world.ticks(2) == [str(origin), "runs_as_requested"]
        assert len(world.job.triggered) == 1
        assert max(world.job.replays_s) <= 70


def test_a_checkpoint_that_cannot_be_asked_for_harms_nothing() -> None:
    for version in ("1.18.1", "2.1.3"):
        with controlled(version=version, run_s=1000) as world:
            told = world.server._reply

            def refuse_posts(request, told=told):
                return (405, {"errors": ["Method not allowed"]}) if request.method == "POST" else told(request)

            world.server._reply = refuse_posts  # type: ignore[method-assign]
            world.wanted, world.origin = UP, Origin.REACTIVE
            world.tick()
            assert "runs_as_requested" in world.ticks(32)
            assert world.job.triggered == []


@pytest.mark.parametrize("version", ["1.18.1", "2.1.3"])
def test_no_checkpoint_is_asked_for_where_the_setting_says_so(version: str) -> None:
    with controlled(version=version, run_s=1000) as world:
        world.limits = replace(world.limits, guards=Guards(triggers_checkpoint=False))
        world.wanted, world.origin = UP, Origin.REACTIVE
        assert world.tick().reason == "reactive"
        world.ticks(3)
        assert world.job.triggered == []


def test_of_a_job_that_is_in_dry_run_by_itself_no_checkpoint_is_asked_for() -> None:
    with controlled(RescalingJob(interval_s=600), version="1.18.1") as world:
        world.pass_s(300)
        world.history = dump(replace(world.read_history(""), bad_steps_s=(world.now(),)))
        world.limits = replace(world.limits, bad_steps_max=1)
        world.wanted = UP
        assert world.ticks(3) == ["plan"]
        assert (world.job.triggered, world.puts) == ([], 0)


def test_before_1_20_an_overload_waits_a_minute_for_a_checkpoint_and_no_longer() -> None:
    with controlled(version="1.19.1", run_s=1000) as world:
        world.job.checkpoint_s = 3600
        world.wanted, world.origin = UP, Origin.REACTIVE
        assert world.tick().reason == "checkpoint_first"
        assert world.ticks(1) == ["reactive"]


def test_before_1_20_a_saving_waits_as_long_as_flink_for_a_checkpoint() -> None:
    with controlled(version="1.19.1", run_s=1000) as world:
        world.job.checkpoint_s = math.inf
        world.limits = replace(world.limits, guards=Guards(checkpoint_max_age_s=1e6))
        world.wanted = DOWN
        assert world.ticks(10) == ["checkpoint_first"]
        assert len(world.job.triggered) == 1
        assert "plan" in world.ticks(2)


def test_a_checkpoint_that_was_asked_for_another_step_is_no_fresh_one() -> None:
    with controlled(version="1.19.1", run_s=1000) as world:
        world.wanted = DOWN
        assert world.tick().reason == "checkpoint_first"
        world.wanted = None
        world.ticks(58)
        world.pass_s(1200 - (world.now() - world.job.began_s) % 600)  # long after the last one
        world.wanted = DOWN
        assert world.tick().reason == "checkpoint_first"
        assert len(world.job.triggered) == 2


@pytest.mark.covers("flink_waits 1")
def test_a_worse_job_goes_back_only_after_the_savepoint() -> None:
    with controlled(RescalingJob(interval_s=60)) as world:
        world.wanted, world.origin = UP, Origin.REACTIVE
        world.tick()
        assert "runs_as_requested" in world.ticks(2)
        world.job.savepoint(lasts_s=200)
        world.wanted, world.outcome = None, OutcomeCheck(True, "records wait")
        assert world.tick().reason == "savepoint_in_progress"
        world.pass_s(240)
        assert world.tick().reason == "worse_than_before"
        assert world.job.broken_savepoints == 0
