"""One job, two autoscalers: never both, and nobody takes a refusal for "there is none"."""

from __future__ import annotations

import flink_server
import pytest
from controlled_flink import ENRICH, SOURCE, controlled
from flink_rescaling import RescalingJob

from include.utc import HOUR_S
from models.control.case import Verb
from models.control.state import Origin

UP = 4
ON = {"job.autoscaler.enabled": "true"}
CONFIG_ON = [*flink_server.ADAPTIVE, {"key": "job.autoscaler.enabled", "value": "true"}]


@pytest.mark.parametrize("path", ["/jobmanager/config", f"/jobs/{'a' * 32}/config"])
@pytest.mark.parametrize(
    "trouble",
    [
        flink_server.reply_with({"errors": ["busy"]}, 503),
        flink_server.reply_with({"errors": ["not allowed"]}, 403),
        flink_server.reply_html,
        flink_server.reply_with({}),
        flink_server.reply_with(None),
        flink_server.reply_with([None]),
        flink_server.reply_with({"execution-config": None}),
    ],
)
@pytest.mark.covers("flink_waits 6")
def test_a_refused_or_broken_configuration_closes_the_gate_and_is_asked_again(
    path: str, trouble: flink_server.Trouble
) -> None:
    with controlled(RescalingJob(interval_s=60)) as world:
        if path == "/jobmanager/config":
            world.server.config = CONFIG_ON
        else:
            world.job.user_config = dict(ON)
        world.begin()
        world.server.troubles[path] = trouble
        world.wanted, world.origin = UP, Origin.REACTIVE
        action = world.tick()
        assert (action.verb, action.reason) == (Verb.REFUSE, "autoscaler_unknown")
        assert world.ticks(3) == ["autoscaler_unknown"]
        assert world.puts == 0
        world.server.troubles.clear()
        assert world.tick().reason == "other_autoscaler"  # what was refused had hidden it
        world.ticks(15)
        assert world.puts == 0


def test_an_autoscaler_that_a_restarted_job_manager_names_is_seen_before_the_next_request() -> None:
    with controlled(RescalingJob(interval_s=60)) as world:
        world.pass_s(60)
        world.server.config = CONFIG_ON
        world.wanted, world.origin = UP, Origin.REACTIVE
        assert world.tick().reason == "other_autoscaler"
        assert world.puts == 0


@pytest.mark.covers("flink_waits 7")
def test_handover_to_the_flink_autoscaler_and_back() -> None:
    """To it: from its first key on nothing is sent. Back: its last change is a foreign one, which is left alone."""
    with controlled(RescalingJob(interval_s=60)) as world:
        world.wanted, world.origin = UP, Origin.REACTIVE
        world.tick()
        world.ticks(3)
        sent = world.puts
        world.server.config = CONFIG_ON
        world.wanted = 6
        assert world.ticks(11)[-1] == "other_autoscaler"
        world.job.put({SOURCE: 2, ENRICH: 3}, world.now())  # the autoscaler acts
        world.ticks(5)
        assert (world.puts, world.job.requested) == (sent, {SOURCE: 2, ENRICH: 3})

        world.server.config = [*flink_server.ADAPTIVE, {"key": "job.autoscaler.enabled", "value": "false"}]
        assert set(world.ticks(60)) <= {"other_autoscaler", "held", "foreign_change"}
        assert world.job.requested == {SOURCE: 2, ENRICH: 3}
        world.pass_s(4 * HOUR_S)
        world.ticks(3)
        assert world.job.requested == {SOURCE: 6, ENRICH: 6}


def test_a_request_in_flight_is_followed_and_not_taken_back_once_another_autoscaler_is_on() -> None:
    with controlled(RescalingJob(interval_s=60, slots_s=1e9, max_delay_s=1e9)) as world:
        world.wanted, world.origin = UP, Origin.REACTIVE
        world.tick()
        world.server.config = CONFIG_ON
        reported = world.ticks(30)
        assert reported[0] == "in_flight"
        assert world.puts == 1
