"""A job as the kept replies show it, for dry runs of a cluster without an address."""

from __future__ import annotations

from dataclasses import replace

import pytest

from controller.actuators.actuator import RequestRefusedError, RequestUnknownError
from controller.actuators.recorded_actuator import RecordedActuator
from include.domain.graph import JobGraph, Operator
from models.control.state import ObservedJob
from models.polling.job_replies import TaskSlots
from models.polling.seen_job import PolledJob

GRAPH = JobGraph.from_operators(
    [Operator("in", max_parallelism=64), Operator("out", ("in",), slot_sharing_group="own")]
)
SEEN = PolledJob(
    cluster="files",
    job="orders",
    job_id="j",
    state="RUNNING",
    polled_at_ms=2000,
    running={"in": 2, "out": 4, "bounded": 1},
    restarting=False,
    vertex_ids={"in": "1", "out": "2", "bounded": "3"},
    finished=frozenset({"bounded"}),
    graph=GRAPH,
    stops=(),
    metrics={},
)
RUNS = {"1": 2, "2": 4}


def open_actuator(*seen: PolledJob, slots: TaskSlots | None = None) -> RecordedActuator:
    jobs = {("files", "orders"): list(seen)}
    return RecordedActuator("files", lambda: jobs, {} if slots is None else {"files": slots})


def observe(*seen: PolledJob, slots: TaskSlots | None = None) -> ObservedJob:
    return open_actuator(*seen, slots=slots).observe("files/orders")


def test_the_last_reply_counts_and_what_runs_is_taken_for_what_was_asked_for() -> None:
    earlier = replace(SEEN, job_id="i", polled_at_ms=1000)
    assert observe(SEEN, earlier, slots=TaskSlots(8, 3)) == ObservedJob(
        job_id="j",
        state="RUNNING",
        running=RUNS,
        requested=RUNS,
        max_parallelism={"1": 64, "2": 128},
        slot_sharing_group={"1": "in", "2": "out"},  # each in a group of its own
        free_slots=3,
    )


def test_a_job_that_restarts_keeps_what_it_was_asked_for() -> None:
    observed = observe(replace(SEEN, state="RESTARTING"))
    assert (observed.running, observed.requested) == ({}, RUNS)


def test_without_a_graph_and_slots_the_rest_counts() -> None:
    observed = observe(replace(SEEN, graph=None))
    assert (observed.running, observed.max_parallelism, observed.slot_sharing_group) == (RUNS, {}, {})
    assert observed.free_slots is None


def test_a_job_of_which_no_reply_is_kept_is_unknown_and_keeps_no_other_from_its_turn() -> None:
    with pytest.raises(RequestUnknownError, match="no reply of it is kept"):
        observe()
    result = open_actuator(SEEN).observe_all(["files/orders", "files/rides"])
    assert isinstance(result["files/orders"], ObservedJob)
    assert isinstance(result["files/rides"], RequestUnknownError)


def test_nothing_is_sent() -> None:
    with pytest.raises(RequestRefusedError):
        open_actuator(SEEN).request("files/orders", "j", RUNS)
