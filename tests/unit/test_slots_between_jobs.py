"""Jobs of one cluster: who waits for whom, and whose slots are whose, where the cases are not the common ones."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from controller.decisions.job_control import JobControl, JobTask
from models.control.limits import Limits
from models.control.state import ObservedJob, Origin
from tests.unit import test_open_requests, test_operator_limits
from tests.unit.test_open_requests import AUTO, NOW_S, StoredLog, want
from tests.unit.test_operator_limits import control, task

PINNED = {"origin": Origin.PIN}
"""What a person demands is not cut to the slots that there are: it waits for all of them."""


def decide(cluster: Any, *tasks: JobTask) -> tuple[dict[str, str], list[tuple[str, int]]]:
    return control(cluster, list(tasks)), cluster.sent


@pytest.mark.parametrize(("priority", "reason"), [(0, "no_free_slots"), (4, "no_free_slots"), (5, "plan"), (6, "plan")])
def test_slots_that_become_free_wait_for_a_job_of_a_higher_priority(priority: int, reason: str) -> None:
    """Four are free, and the one that waits needs six of them."""
    cluster = test_operator_limits.Cluster(["c/waits", "c/other"], free=4)
    waits, other = task("c/waits", 10, 5, **PINNED), task("c/other", 6, priority)
    reasons, sent = decide(cluster, waits, other)
    assert reasons == {"c/waits": "no_free_slots", "c/other": reason}
    assert sent == ([("c/other", 6)] if reason == "plan" else [])


def test_the_cluster_s_budget_waits_as_its_slots_do() -> None:
    cluster, budget = test_operator_limits.Cluster(["c/waits", "c/other"], free=100), {"cluster_slots_max": 10.0}
    reasons, sent = decide(cluster, task("c/waits", 8, 5, Origin.PIN, **budget), task("c/other", 5, 0, **budget))
    assert (reasons, sent) == ({"c/waits": "exceeds_budget", "c/other": "exceeds_budget"}, [])


def test_a_job_that_has_to_wait_for_something_else_keeps_no_slots_from_others() -> None:
    cluster = test_operator_limits.Cluster(["c/held", "c/other"], free=4)
    held = task("c/held", 10, 5, Origin.PIN, is_held=True)
    assert decide(cluster, held, task("c/other", 6, 0)) == (
        {"c/held": "on_hold", "c/other": "plan"},
        [("c/other", 6)],
    )


def test_a_fall_waits_for_nobody() -> None:
    """It would be refused if the slots that others wait for were counted as taken: none could be had again."""
    cluster = test_operator_limits.Cluster(["c/waits", "c/other"], free=4, is_elastic=None)
    reasons, sent = decide(cluster, task("c/waits", 10, 5, **PINNED), task("c/other", 2, 0))
    assert (reasons["c/other"], sent) == ("plan", [("c/other", 2)])


@dataclass
class Cluster(test_open_requests.Cluster):
    """Jobs that may have vanished, or that have a vertex which has finished.

    Attributes:
        gone: jobs that the cluster knows no more.
        finished: job -> what its vertex ``done`` is asked for.
    """

    gone: set[str] = field(default_factory=set)
    finished: dict[str, int] = field(default_factory=dict)

    def observe(self, job: str) -> ObservedJob:
        observed = super().observe(job)
        if job in self.gone:
            return replace(observed, job_id=None, state="", running={}, requested=None)
        if job in self.finished:
            return replace(observed, requested={**(observed.requested or {}), "done": self.finished[job]})
        return observed


class Controller:
    """A controller of a cluster of 20 slots with jobs of two each, which it has taken over."""

    def __init__(self, *jobs: str, finished: dict[str, int] | None = None) -> None:
        self.cluster, self.log, self.now_s = Cluster(20, finished=finished or {}), StoredLog(), NOW_S
        for job in jobs:
            self.cluster.start(f"c/{job}", 2)
        self.tick(**dict.fromkeys(jobs))

    def tick(self, limits: dict[str, Limits] | None = None, **wanted: int | None) -> dict[str, str]:
        self.now_s += 10
        controller = JobControl(self.cluster, self.log, lambda: None, lambda: self.now_s)
        tasks = [
            JobTask(
                f"c/{name}",
                None if slots is None else want(slots, name, self.now_s),
                lambda name=name: (limits or {}).get(name, AUTO),
            )
            for name, slots in wanted.items()
        ]
        actions = controller.control_jobs(tasks)
        return {job.removeprefix("c/"): action.reason for job, action in actions.items()}


@pytest.mark.parametrize(("is_gone", "reason"), [(False, "neighbour_rescales"), (True, "plan")])
def test_a_job_that_has_gone_is_waited_for_by_none_of_its_neighbours(is_gone: bool, reason: str) -> None:
    """It would catch up after its rescale, if it still ran."""
    made = Controller("a", "b")
    assert made.tick(a=4)["a"] == "plan"
    made.cluster.fill()
    assert made.tick(a=4)["a"] == "runs_as_requested"
    made.cluster.gone = {"c/a"} if is_gone else set()
    feeds_from_a = {"b": replace(AUTO, neighbours=("c/a",))}
    assert made.tick(feeds_from_a, a=None, b=4)["b"] == reason


@pytest.mark.parametrize(("asked", "room"), [({}, 18), ({"c/a": 12}, 18)])
def test_a_vertex_that_has_finished_takes_no_slots_from_other_jobs(asked: dict[str, int], room: int) -> None:
    made = Controller("a", "b", finished=asked)
    assert made.tick(a=None, b=18)["b"] == "plan"
    assert made.cluster.asked["c/b"] == room
