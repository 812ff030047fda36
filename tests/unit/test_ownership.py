"""Whose a change is: known by what was sent and when Flink was seen to have it, never by equal numbers."""

from __future__ import annotations

from collections.abc import Iterator

import flink_server
import pytest
from flink_server import FakeJob, FlinkServer, serving
from scenario import ENRICH, SOURCE, Scenario, both

from controller.actuators.actuator import RequestConflictError
from include.utc import DAY_S, HOUR_S
from models.control.case import OutcomeCheck, Verb


@pytest.fixture
def world() -> Iterator[Scenario]:
    with serving(FlinkServer(FakeJob(parallelism=both(4)))) as server:
        server.free_slots = 20
        yield Scenario(server)


def is_left_alone(world: Scenario, asked: dict[str, int], hours: float = 4.0) -> bool:
    """Whether nothing is sent for as long as a foreign change holds, and Flink is still asked for the same."""
    before = world.puts
    assert world.tick().reason == "foreign_change"
    for _ in range(int(hours * 12) - 2):
        assert world.tick(300.0).reason == "held"
    return world.puts == before and world.flink.requested == asked


# a revert while a request is in flight


@pytest.mark.covers("harm revert-in-flight")
def test_a_person_who_takes_back_an_accepted_request_is_left_alone(world: Scenario) -> None:
    world.wanted = both(8)
    world.fills_nothing()
    assert world.tick().verb is Verb.RESCALE
    world.put(both(4), runs=False)
    assert is_left_alone(world, both(4))


@pytest.mark.covers("harm revert-in-flight")
def test_a_person_who_takes_back_a_request_that_was_seen_is_left_alone(world: Scenario) -> None:
    world.wanted = both(8)

    def arrive_without_a_reply(request) -> None:
        world.server._reply(request)
        world.flink.parallelism = both(4)
        flink_server.close(request)

    world.meets(arrive_without_a_reply)
    assert world.tick().verb is Verb.RESCALE
    assert world.log.entries[-1].answer.startswith("no reply")
    world.put(both(4), runs=False)  # before the next tick: the look right after the request has seen it
    assert is_left_alone(world, both(4))


def test_a_request_that_was_seen_by_what_runs_alone_has_arrived(world: Scenario) -> None:
    world.wanted = both(8)
    world.meets(flink_server.close)
    world.tick()
    world.flink.parallelism = {SOURCE: 6, ENRICH: 4}  # on its way there; asked for four again by somebody
    assert is_left_alone(world, both(4))


def test_a_job_that_has_started_anew_may_have_been_rescaled_there_and_back(world: Scenario) -> None:
    """It came to run again after a request without a reply: whether that had arrived nobody can tell any more."""
    world.wanted = both(8)
    world.meets(flink_server.close)
    world.tick()
    world.flink.running_ms += 40_000
    assert is_left_alone(world, both(4))
    assert world.history.held_because == "nobody knows who changed the job"


def test_an_accepted_request_that_changes_nothing_is_lost_and_sent_again(world: Scenario) -> None:
    """A proxy replied for Flink, or the JobManager came back with what it had stored before."""
    world.wanted = both(8)
    world.meets(lambda request: request.write_json({}))
    assert world.tick().verb is Verb.RESCALE
    assert world.log.entries[-1].answer == "accepted"
    assert [world.tick().reason for _ in range(3)] == ["in_flight", "in_flight", "not_received"]
    world.heals()
    assert (world.tick().verb, world.tick().verb) == (Verb.RESCALE, Verb.CONFIRM)


def test_a_request_of_which_nothing_was_seen_is_lost_and_sent_again(world: Scenario) -> None:
    world.wanted = both(8)
    world.meets(flink_server.close)
    world.tick()
    assert [world.tick().reason for _ in range(3)] == ["in_flight", "in_flight", "not_received"]
    world.heals()
    assert (world.tick().verb, world.tick().verb) == (Verb.RESCALE, Verb.CONFIRM)
    assert world.puts == 2


def test_a_part_of_a_request_that_somebody_took_back_is_a_change(world: Scenario) -> None:
    world.wanted = both(8)
    world.fills_nothing()
    world.tick()
    world.put({SOURCE: 8, ENRICH: 4}, runs=False)
    assert is_left_alone(world, {SOURCE: 8, ENRICH: 4})
    assert world.history.held_because == "somebody else changed the job"


def test_a_target_that_is_first_seen_long_after_its_request_may_be_a_person_s(world: Scenario) -> None:
    """The controller was down; whether the request arrived or somebody asked for the same by hand nobody knows."""
    world.wanted = both(8)
    world.meets(flink_server.close)
    world.tick()
    world.heals()
    world.put(both(8))
    world.tick(HOUR_S)
    assert world.history.held_because == "nobody knows who changed the job"
    world.wanted = both(4)
    assert world.tick().reason == "held"


def test_a_target_that_was_seen_in_time_is_the_controller_s_however_late_it_is_looked_at(world: Scenario) -> None:
    world.wanted = both(8)
    world.tick()
    world.wanted = None
    assert world.tick(DAY_S).verb is Verb.CONFIRM


# values that were given up


@pytest.mark.parametrize("hours", [0.2, 2.0, 120.0])
@pytest.mark.covers("harm given-up-value")
def test_a_value_that_was_given_up_and_is_set_by_hand_is_a_person_s(world: Scenario, hours: float) -> None:
    world.wanted = both(8)
    world.fills_nothing()
    world.tick()
    assert world.follow().reason == "not_filled"  # withdrawn
    assert world.flink.requested == both(4)
    world.wanted = None
    assert world.tick().verb is Verb.CONFIRM
    world.heals()
    world.put(both(8))
    world.tick(hours * HOUR_S)
    assert "somebody else" in world.history.held_because
    world.wanted = both(4)
    assert world.tick().reason == "held"
    assert world.flink.requested == both(8)


def test_a_late_request_arrives_once_within_its_time(world: Scenario) -> None:
    world.wanted = both(8)
    world.meets(flink_server.close)
    world.tick()
    for _ in range(3):
        world.tick()
    world.wanted = None
    world.heals()
    world.put(both(8))  # it has arrived
    assert world.tick().reason == "late_request"
    world.put(both(4))
    assert world.tick().reason == "foreign_change"
    world.put(both(8))
    assert world.tick(5 * DAY_S).reason == "foreign_change"


@pytest.mark.covers("harm revert-in-flight")
def test_what_was_in_force_after_its_request_was_lost_is_a_person_s_when_it_comes_back(world: Scenario) -> None:
    """A lost request is sent again; the next one is taken back by a person within the time for late arrivals."""
    world.wanted = both(8)
    world.meets(flink_server.close)
    assert [world.tick().reason for _ in range(4)][-1] == "not_received"
    world.heals()
    assert (world.tick().verb, world.tick().verb) == (Verb.RESCALE, Verb.CONFIRM)
    world.wanted = both(4)
    world.fills_nothing()
    while world.tick().verb is not Verb.RESCALE:
        pass
    assert world.flink.requested == both(4)
    world.put(both(8), runs=False)
    assert is_left_alone(world, both(8))


@pytest.mark.covers("harm given-up-value")
def test_a_lost_request_s_value_is_a_person_s_once_it_can_not_arrive_any_more(world: Scenario) -> None:
    world.wanted = both(8)
    world.meets(flink_server.close)
    world.tick()
    for _ in range(3):
        world.tick()
    world.wanted = None
    world.heals()
    world.put(both(8))
    assert world.tick(HOUR_S).reason == "foreign_change"


def test_a_target_that_did_harm_and_is_set_by_hand_is_a_person_s(world: Scenario) -> None:
    world.wanted = both(8)
    world.tick()
    assert world.tick().verb is Verb.CONFIRM
    world.outcome = OutcomeCheck(True, "records wait")
    assert world.tick().reason == "worse_than_before"
    world.outcome = OutcomeCheck()
    world.wanted = None
    assert world.tick().verb is Verb.CONFIRM
    world.put(both(8))
    world.tick()
    world.wanted = both(4)
    assert world.tick().reason == "held"


# bounds that somebody has set


@pytest.mark.covers("harm lower-bound")
def test_a_lower_bound_is_kept_and_a_change_of_it_is_foreign(world: Scenario) -> None:
    world.put(both(4), {ENRICH: 2})
    assert is_left_alone(world, both(4))
    world.wanted = both(1)
    assert world.tick(HOUR_S).verb is Verb.RESCALE
    assert (world.flink.requested, world.flink.lower) == ({SOURCE: 1, ENRICH: 2}, {SOURCE: 1, ENRICH: 2})
    assert world.tick().verb is Verb.CONFIRM
    world.put({SOURCE: 1, ENRICH: 2})  # taken away
    world.wanted = both(4)
    assert is_left_alone(world, {SOURCE: 1, ENRICH: 2})


@pytest.mark.covers("harm lower-bound")
def test_a_lower_bound_that_comes_while_a_request_is_in_flight_is_foreign(world: Scenario) -> None:
    world.wanted = both(8)
    world.fills_nothing()
    world.tick()
    world.put(both(8), {SOURCE: 3}, runs=False)
    assert is_left_alone(world, both(8))
    assert world.flink.lower == {SOURCE: 3, ENRICH: 1}


def test_a_deployment_s_own_lower_bound_is_taken_over_and_kept() -> None:
    with serving(FlinkServer(FakeJob(parallelism=both(4), lower={SOURCE: 3}))) as server:
        world = Scenario(server, wanted=both(1))
        assert world.tick().verb is Verb.RESCALE
        assert (server.jobs[0].requested, server.jobs[0].lower) == ({SOURCE: 3, ENRICH: 1}, {SOURCE: 3, ENRICH: 1})


def test_a_bound_that_somebody_set_and_flink_did_not_fill_is_not_lowered_by_a_withdrawal(world: Scenario) -> None:
    world.put(both(6), runs=False)  # four run, for lack of slots
    assert is_left_alone(world, both(6))
    world.wanted = both(8)
    world.fills_nothing()
    assert world.tick(HOUR_S).verb is Verb.RESCALE
    assert world.follow().reason == "not_filled"
    assert world.flink.requested == both(6)


def test_what_is_rolled_back_to_is_what_was_asked_for(world: Scenario) -> None:
    world.put(both(6), runs=False)
    assert is_left_alone(world, both(6))
    world.wanted = both(8)
    assert world.tick(HOUR_S).verb is Verb.RESCALE
    assert world.tick().verb is Verb.CONFIRM
    world.outcome = OutcomeCheck(True, "records wait")
    assert world.tick().reason == "worse_than_before"
    assert world.flink.requested == both(6)


def test_a_rise_of_a_job_that_restarts_is_rolled_back_to_what_a_person_had_set(world: Scenario) -> None:
    """And not to what ran before the controller's own last change."""
    world.wanted = both(6)
    world.follow()
    assert world.tick().reason == "runs_as_requested" or world.history.to_judge is not None
    world.wanted = None
    world.put(both(8))
    assert world.tick().reason == "foreign_change"
    world.tick(5 * HOUR_S)
    world.flink.state, world.wanted = "RESTARTING", both(10)
    assert world.tick().verb is Verb.RESCALE
    world.flink.state = "RUNNING"
    assert world.follow().verb is Verb.CONFIRM
    world.wanted, world.outcome = None, OutcomeCheck(is_worse=True, detail="late")
    assert world.tick().reason == "worse_than_before"
    assert world.flink.requested == both(8)


# deployments


def deploy(world: Scenario, count: int) -> None:
    world.server.jobs[0] = FakeJob("c" * 32, parallelism=both(count))
    world.heals()


def test_a_deployment_with_the_numbers_of_a_request_that_was_lost_is_a_person_s(world: Scenario) -> None:
    """The request went to the job of before: it explains nothing of the one that came after."""
    world.wanted = both(8)
    world.meets(flink_server.close)
    world.tick()
    deploy(world, 8)
    assert world.tick().reason == "new_job_id"
    world.wanted = both(4)
    assert world.tick().reason == "held"


def test_a_deployment_with_what_was_in_force_goes_on(world: Scenario) -> None:
    world.wanted = both(8)
    world.fills_nothing()
    world.tick()  # accepted: that is in force
    deploy(world, 8)
    assert world.tick().reason == "new_job_id"
    assert world.history.held_until_s == 0.0
    deploy(world, 4)
    world.flink.job_id = "d" * 32
    assert world.tick().reason == "new_job_id"
    assert world.history.held_until_s > world.now_s


# right before a request


def test_what_somebody_asks_for_between_the_last_look_and_the_request_stands(world: Scenario, monkeypatch) -> None:
    """Flink has no conditional request: what comes between the actuator's own look and the request is beyond reach."""
    asked = world.actuator.request

    def change_then_ask(job: str, job_id: str, parallelism: dict[str, int]) -> None:
        monkeypatch.undo()
        world.put(both(6))
        try:
            asked(job, job_id, parallelism)
        except RequestConflictError as error:
            raise error from None

    monkeypatch.setattr(world.actuator, "request", change_then_ask)
    world.wanted = both(8)
    assert world.tick().reason == "withdrawn_before_sending"
    assert world.puts == 0
    assert is_left_alone(world, both(6))
