"""What Flink's replies about checkpoints, failures and memory are taken for; what they do not tell is unknown."""

from __future__ import annotations

from typing import Any

import pytest
from flink_server import checkpoint_statistics, completed_checkpoint

from models.polling.checkpoint_replies import CheckpointConfig, read_checkpoints, read_config
from models.polling.failure_replies import read_failures
from models.polling.faults import ReplyError
from models.polling.memory_replies import read_memory

EVERY_MINUTE = CheckpointConfig(60.0)
AT_S = 1_795_000_000.0
DONE = completed_checkpoint(7, AT_S)


def failed(at_s: float, *, is_savepoint: bool = False) -> dict[str, Any]:
    return {
        "id": 8,
        "status": "FAILED",
        "is_savepoint": is_savepoint,
        "trigger_timestamp": round(1000 * at_s) - 9,
        "failure_timestamp": round(1000 * at_s),
    }


def going_on(kind: str, *, is_savepoint: bool) -> dict[str, Any]:
    return {"id": 9, "status": "IN_PROGRESS", "is_savepoint": is_savepoint, "checkpoint_type": kind}


@pytest.mark.parametrize(
    ("reply", "interval_s"),
    [
        ({"interval": 600_000, "min_pause": 0}, 600.0),
        ({"interval": 1000, "min_pause": 30_000}, 30.0),
        ({"interval": 9_223_372_036_854_775_807}, None),
        ({"interval": -1}, None),
        ({"interval": 0}, None),
    ],
)
def test_the_interval_and_checkpoints_that_are_off(reply: object, interval_s: float | None) -> None:
    assert read_config(reply).interval_s == interval_s


def test_the_time_after_which_flink_gives_a_checkpoint_up_is_the_job_s() -> None:
    assert read_config({"interval": 1000, "timeout": 3_600_000}).timeout_s == 3600
    assert read_config({"interval": 1000}).timeout_s == 600


@pytest.mark.parametrize("reply", [None, [], {}, {"interval": None}, {"interval": "10 min"}, {"interval": True}])
def test_an_interval_that_is_not_told_is_unknown_and_not_off(reply: object) -> None:
    with pytest.raises(ReplyError):
        read_config(reply)


def test_the_last_checkpoint_is_what_a_restart_goes_back_to() -> None:
    result = read_checkpoints(checkpoint_statistics([DONE], completed=DONE), EVERY_MINUTE)
    assert (result.completed_at_s, result.is_failing, result.savepoints, result.last_id) == (AT_S, False, 0, 7)
    restored = {"id": 7, "restore_timestamp": round(1000 * AT_S) + 5000, "is_savepoint": False}
    after = read_checkpoints(checkpoint_statistics([DONE], completed=DONE, restored=restored), EVERY_MINUTE)
    assert after.completed_at_s == AT_S + 5
    assert read_checkpoints(checkpoint_statistics([]), EVERY_MINUTE).completed_at_s is None


@pytest.mark.parametrize(
    ("failure", "is_failing"),
    [(failed(AT_S + 60), True), (failed(AT_S - 60), False), (failed(AT_S + 60, is_savepoint=True), False)],
)
def test_a_failure_since_the_last_one_counts_and_that_of_a_savepoint_does_not(failure: dict, is_failing: bool) -> None:
    listed = checkpoint_statistics([failure, DONE], completed=DONE, failed=failure)
    assert read_checkpoints(listed, EVERY_MINUTE).is_failing is is_failing
    hidden = checkpoint_statistics([failure, DONE], completed=DONE, failed=failed(AT_S + 90, is_savepoint=True))
    assert read_checkpoints(hidden, EVERY_MINUTE).is_failing is is_failing


def test_what_a_rescale_ended_does_not_count_once_the_job_was_restored() -> None:
    ended = failed(AT_S + 60)
    restored = {"id": 7, "restore_timestamp": round(1000 * AT_S) + 61_000}
    listed = checkpoint_statistics([ended, DONE], completed=DONE, failed=ended, restored=restored)
    assert not read_checkpoints(listed, EVERY_MINUTE).is_failing


@pytest.mark.parametrize(
    ("running", "savepoints"),
    [
        (going_on("CHECKPOINT", is_savepoint=False), 0),
        (going_on("UNALIGNED_CHECKPOINT", is_savepoint=False), 0),
        (going_on("SAVEPOINT", is_savepoint=True), 1),
        (going_on("SYNC_SAVEPOINT", is_savepoint=False), 1),
    ],
)
def test_savepoints_in_progress_are_told_from_checkpoints(running: dict, savepoints: int) -> None:
    result = read_checkpoints(checkpoint_statistics([running, DONE], completed=DONE), EVERY_MINUTE)
    assert (result.savepoints, result.in_progress) == (savepoints, 1 - savepoints)
    reported = checkpoint_statistics([DONE], completed=DONE)
    reported["counts"]["in_progress"] = 1
    assert read_checkpoints(reported, EVERY_MINUTE).savepoints is None


@pytest.mark.parametrize("field", ["counts", "latest", "history"])
@pytest.mark.parametrize("junk", [None, "x", 5])
def test_statistics_with_junk_are_unknown(field: str, junk: object) -> None:
    with pytest.raises(ReplyError):
        read_checkpoints(checkpoint_statistics([DONE], completed=DONE) | {field: junk}, EVERY_MINUTE)


def exceptions(*texts: str) -> dict[str, Any]:
    entries = [{"timestamp": 1000 * number, "stacktrace": text} for number, text in enumerate(texts, 1)]
    return {"exceptionHistory": {"entries": entries[::-1], "truncated": False}}


def test_a_failure_is_its_innermost_cause_whatever_numbers_it_has() -> None:
    trace = (
        "a.B: outer\n\tat x.Y(Z.java:3)\nCaused by: c.D: subtask {0} at 10.0.0.{0}:4{0}123, attempt abc{0}def12\n\tat y"
    )
    first, second = read_failures(exceptions(trace.format(1), trace.format(2)))
    assert first.cause == "c.D: subtask 1 at 10.0.0.1:41123, attempt abc1def12"
    assert (first.at_s, second.at_s) == (1.0, 2.0)
    assert first.kind == second.kind
    (other,) = read_failures(exceptions(trace.format(1).replace("c.D", "c.E")))
    assert other.kind != first.kind
    assert not first.lacks_slots


@pytest.mark.parametrize(
    "text",
    [
        "java.util.concurrent.TimeoutException: Heartbeat of TaskManager with id 127.0.0.1:4 timed out.",
        "x\nCaused by: org.apache.flink.runtime.jobmanager.scheduler.NoResourceAvailableException: no slots",
        "org.apache.flink.runtime.io.network.netty.exception.RemoteTransportException: Connection unexpectedly closed",
        "org.apache.flink.util.FlinkException: The TaskExecutor is shutting down.",
        # of 2.1.3, while it deployed to a TaskManager that had been killed a few seconds before
        "org.apache.flink.runtime.rpc.exceptions.RecipientUnreachableException: Could not send message"
        " [RemoteRpcInvocation(TaskExecutorGateway.submitTask(TaskDeploymentDescriptor, JobMasterId, Duration))] from"
        " sender [Actor[pekko://flink/temp/taskmanager_0$Ewb]] to recipient [Actor[pekko.tcp://flink@127.0.0.1:4]]",
        "java.util.concurrent.TimeoutException: Invocation of [RemoteRpcInvocation(TaskExecutorGateway.submitTask("
        "TaskDeploymentDescriptor, JobMasterId, Duration))] at recipient [pekko.tcp://flink@10.0.0.1:4] timed out.",
    ],
)
def test_lost_task_managers_and_missing_slots_are_recognised(text: str) -> None:
    assert read_failures(exceptions(text))[0].lacks_slots


@pytest.mark.parametrize("reply", [None, [], {}, {"exceptionHistory": None}, {"exceptionHistory": {"entries": None}}])
def test_failures_that_are_not_told_are_unknown_and_not_none(reply: object) -> None:
    with pytest.raises(ReplyError):
        read_failures(reply)


def test_entries_without_a_time_are_passed_over() -> None:
    reported = {"exceptionHistory": {"entries": [None, {}, {"timestamp": "x"}, {"timestamp": 5000}]}}
    (only,) = read_failures(reported)
    assert (only.at_s, only.cause) == (5.0, "an exception without a text")


def test_memory_is_that_of_the_fullest_task_manager() -> None:
    reported = [
        {"id": "Status.JVM.Memory.Heap.Used", "min": 1.0, "max": 80.0},
        {"id": "Status.JVM.Memory.Heap.Max", "min": 100.0, "max": 400.0},
        {"id": "Status.JVM.GarbageCollector.All.TimeMsPerSecond", "min": 0.0, "max": 250.0},
    ]
    assert (read_memory(reported[:2], reported[2:]).heap_share, read_memory(reported[:2], reported[2:]).gc_share) == (
        0.8,
        0.25,
    )
    assert read_memory(reported[:2], []).gc_share is None
    for heap, gc in ((reported[1:2], reported[2:]), ([], reported[2:]), (reported[:2], {}), ({}, reported[2:])):
        with pytest.raises(ReplyError):
            read_memory(heap, gc)
