"""An application's job has one id, whatever is deployed: nothing of the earlier one is taken for the later one's."""

from __future__ import annotations

import pytest
from controlled_flink import World, controlled
from flink_rescaling import RescalingJob

from models.control.state import Origin


def deploy_anew(world: World) -> None:
    """Let a person deploy another version of the application, between two ticks."""
    world.pass_s(1)
    world.job.submitted_ms = round(1000 * world.now())


def ask_once(world: World) -> int:
    """Send a rise and a fall, so that all that is asked before a request has been asked; returns the requests."""
    world.wanted, world.origin = 4, Origin.REACTIVE
    world.ticks(4)
    assert world.job.parallelism == dict.fromkeys(world.job.parallelism, 4)
    return world.puts


@pytest.mark.covers("flink_waits 2")
def test_checkpoints_that_the_next_version_takes_no_more_are_missed() -> None:
    with controlled(RescalingJob(interval_s=60)) as world:
        puts = ask_once(world)
        deploy_anew(world)
        world.job.interval_s = None
        world.wanted = 6
        assert world.ticks(3) == ["new_job_id", "checkpoints_off"]
        assert world.puts == puts
        assert float("inf") not in world.job.replays_s


@pytest.mark.covers("flink_waits 7")
def test_an_autoscaler_that_the_next_version_brings_is_seen() -> None:
    with controlled(RescalingJob(interval_s=60)) as world:
        puts = ask_once(world)
        deploy_anew(world)
        world.job.user_config = {"job.autoscaler.enabled": "true"}
        world.wanted = 6
        assert world.ticks(3) == ["new_job_id", "other_autoscaler"]
        assert world.puts == puts
