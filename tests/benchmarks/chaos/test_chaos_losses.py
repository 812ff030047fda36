"""The harness of `make chaos` notices lost records."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from benchmarks.chaos.checkpoint_watch import CheckpointTrail, CheckpointWatch, Restore
from benchmarks.chaos.losses import due_after, find_wrong_restores
from include.flink.faults import FlinkUnreachableError
from lab.local_flink.load import LoadOptions

LOAD = LoadOptions(low_per_s=100.0, high_per_s=100.0, compression=960.0)


def test_what_is_due_grows_with_the_trace():
    assert due_after(10.0, LOAD) == pytest.approx(1000.0)
    assert due_after(86_400.0 / 960.0 * 2.5, LOAD) == pytest.approx(100.0 * 86_400.0 / 960.0 * 2.5)
    assert due_after(0.0, LOAD) == 0.0


def trail(*restores: Restore, starts_ms=(1000,), first_completed_ms: int | None = 2000) -> CheckpointTrail:
    return CheckpointTrail(9, list(restores), list(starts_ms), first_completed_ms)


def test_a_restart_from_an_older_checkpoint_or_from_none_is_noticed():
    assert list(find_wrong_restores({"a": trail(Restore(5, 3000, 5), starts_ms=(1000, 3000))})) == []
    assert list(find_wrong_restores({"a": trail(Restore(4, 3000, 5))})) == [
        "a restored checkpoint 4 although 5 was completed"
    ]
    assert list(find_wrong_restores({"a": trail(starts_ms=(1000, 3000))})) == [
        "a was started again 1 times and never restored a checkpoint"
    ]
    assert list(find_wrong_restores({"a": trail(starts_ms=(1000, 1500))})) == []  # before the first checkpoint
    assert list(find_wrong_restores({"a": trail(starts_ms=(1000, 3000), first_completed_ms=None)})) == []


def test_the_watch_keeps_what_was_completed_before_a_restore():
    replies = [(None, 3, 1000), (None, 5, 1000), ({"id": 5, "restore_timestamp": 9000}, 5, 9000)]

    def unreachable(_):
        raise FlinkUnreachableError("here", 1, "gone")

    watch = CheckpointWatch(SimpleNamespace(job=unreachable))
    watch.poll("a")
    assert watch.trails == {}
    for restored, completed, running_ms in replies:
        latest = {"restored": restored, "completed": {"id": completed, "latest_ack_timestamp": 2000}}
        client = SimpleNamespace(
            job=lambda _, running_ms=running_ms: {"timestamps": {"RUNNING": running_ms}},
            checkpoints=lambda _, latest=latest: {"latest": latest},
        )
        watch._client = client
        watch.poll("a")
        watch.poll("a")
    assert watch.trails["a"] == CheckpointTrail(5, [Restore(5, 9000, 5)], [1000, 9000], 2000)
