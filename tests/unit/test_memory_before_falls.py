"""Slots are given back only where the TaskManagers' memory is known and can hold what the job keeps."""

from __future__ import annotations

from dataclasses import replace

import flink_server
import pytest
from controlled_flink import World, controlled
from flink_rescaling import RescalingJob

from models.control.case import Verb
from models.control.readiness import Guards
from models.control.state import Origin

DOWN, UP = 1, 4
MIB = 2**20


def fall(world: World) -> str:
    world.wanted = DOWN
    action = world.tick()
    assert action.verb in {Verb.REFUSE, Verb.RESCALE}
    assert world.puts == (action.verb is Verb.RESCALE)
    return action.reason


@pytest.mark.parametrize(
    ("used", "gc_ms_per_s", "reason"),
    [(440e6, 290.0, "plan"), (460e6, 20.0, "heap_full"), (200e6, 310.0, "gc_pressure"), (500e6, 900.0, "heap_full")],
)
@pytest.mark.covers("flink_waits 8")
def test_a_full_heap_or_much_garbage_collection_refuses_a_fall(used: float, gc_ms_per_s: float, reason: str) -> None:
    with controlled() as world:
        world.server.heap_used, world.server.gc_ms_per_s = used, gc_ms_per_s
        assert fall(world) == reason


def test_a_rise_asks_no_memory() -> None:
    with controlled() as world:
        world.server.heap_used, world.wanted, world.origin = 500e6, UP, Origin.PLAN
        assert world.tick().reason == "plan"


@pytest.mark.covers("flink_waits 8")
def test_the_state_of_a_slot_after_the_fall_is_bounded() -> None:
    with controlled(RescalingJob(state_bytes=3000 * MIB)) as world:
        world.limits = replace(world.limits, guards=Guards(state_per_slot_max_bytes=2900 * MIB))
        assert fall(world) == "state_too_large"
        world.limits = replace(world.limits, guards=Guards(state_per_slot_max_bytes=3100 * MIB))
        assert fall(world) == "plan"


@pytest.mark.parametrize(
    "trouble",
    [
        flink_server.reply_500,
        flink_server.reply_html,
        flink_server.reply_with([]),
        flink_server.reply_with({}),
        flink_server.reply_with(None),
        flink_server.reply_with([{"id": "Status.JVM.Memory.Heap.Used", "max": "NaN"}]),
        flink_server.reply_with(
            [{"id": "Status.JVM.Memory.Heap.Used", "max": 5}, {"id": "Status.JVM.Memory.Heap.Max", "min": -1}]
        ),
    ],
)
@pytest.mark.covers("flink_waits 9")
def test_unknown_memory_refuses_a_fall_and_no_rise(trouble: flink_server.Trouble) -> None:
    with controlled() as world:
        world.server.troubles["/taskmanagers/metrics"] = trouble
        assert fall(world) == "memory_unknown"
        world.wanted, world.origin = UP, Origin.REACTIVE
        assert world.tick().reason == "reactive"


def test_the_time_of_garbage_collection_may_lack_where_flink_is_too_old_to_tell_it() -> None:
    for version, reason in (("1.18.1", "checkpoint_first"), ("2.1.3", "memory_unknown")):
        with controlled(version=version, run_s=1000) as world:
            world.server.gc_ms_per_s = None
            world.wanted = DOWN
            assert world.tick().reason == reason


def test_of_unequal_task_managers_the_fullest_counts_as_the_smallest() -> None:
    with controlled() as world:
        reported = [
            {"id": "Status.JVM.Memory.Heap.Used", "min": 1e6, "max": 300e6},
            {"id": "Status.JVM.Memory.Heap.Max", "min": 310e6, "max": 900e6},
            {"id": "Status.JVM.GarbageCollector.All.TimeMsPerSecond", "min": 0.0, "max": 0.0},
        ]
        world.server.troubles["/taskmanagers/metrics"] = flink_server.reply_with(reported)
        assert fall(world) == "heap_full"


def test_shares_of_one_ask_nothing_of_memory() -> None:
    with controlled() as world:
        world.limits = replace(world.limits, guards=Guards(heap_share_max=1.0, gc_share_max=1.0))
        world.server.troubles["/taskmanagers/metrics"] = flink_server.reply_500
        assert fall(world) == "plan"
