"""How a policy is hosted by its entry in the catalogue, and what it is asked with where little is known."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from controller.view.job_view import take_snapshot
from include.policy_catalogue import Decides
from lab.policies.planner.controller_memory import ControllerMemory
from models.hosting.host import HostedPolicy, HostMemory, Plan, evaluate_hosted, host_policy
from models.hosting.memories import store
from models.policies.job_snapshot import Snapshot
from models.policies.tuning.capacity_history import ObservedCapacity
from models.scheduling.slot_bounds import BoundedWindow, SlotBounds
from tests.unit.test_evaluation import FALL, NOW_S, PLANNED_S, SETTINGS, seen, view, windows
from tests.unit.test_replanning_policies import CountingPolicy, ask

PLANNER = host_policy("planner", {})


def snapshot() -> Snapshot:
    return take_snapshot(view(seen=seen(), observations=windows(500.0)), SETTINGS, NOW_S)


class UnaskedPolicy:
    """A policy that is not to be asked."""

    def first_memory(self) -> None:
        return None

    def decide(self, situation: object, memory: object) -> Any:
        raise AssertionError("the policy was asked")


@pytest.mark.parametrize(
    ("name", "reacts", "replans"),
    [
        ("reactive", True, False),
        ("programme", False, True),
        ("planner", False, True),
        ("controller_alone", False, True),
        ("need_vector", False, False),
    ],
)
def test_a_policy_is_hosted_as_the_catalogue_says(name: str, reacts: bool, replans: bool) -> None:
    hosted = HostedPolicy.of(name)
    assert (hosted.reacts, hosted.replans) == (reacts, replans)
    assert (host_policy(name, {}).policy is not None) is (reacts or replans)


def test_a_policy_without_memory_has_no_text() -> None:
    assert store("reactive", None) is None


# what a policy is asked with


def test_a_policy_that_reacts_and_is_asked_elsewhere_leaves_the_job_and_its_memory() -> None:
    memory = HostMemory(plan_as_of_s=1.0, policy=7)
    scheduled = SlotBounds((BoundedWindow("day", NOW_S - 60, NOW_S + 60, 2, 4),))
    job = replace(snapshot(), bounds=scheduled)
    decision, after = evaluate_hosted(HostedPolicy("x", Decides.REACTS), memory, NOW_S, job, None)
    assert (decision.wanted, decision.reason) == (None, "nothing was seen of it lately")
    assert after.policy == 7


@pytest.mark.parametrize("is_old", [False, True])
def test_a_policy_that_reacts_is_not_asked_without_a_window_of_late(is_old: bool) -> None:
    known, unasked = snapshot(), UnaskedPolicy()
    shown = known.observations
    starts = shown.window_start_s - 3600 * round(known.options.observed_h)
    shown = replace(shown, window_start_s=starts) if is_old else shown.since(NOW_S)
    hosted = HostedPolicy("x", Decides.REACTS, policy=unasked)  # type: ignore[arg-type]
    decision, _ = evaluate_hosted(hosted, HostMemory(), NOW_S, replace(known, observations=shown), None)
    assert (decision.wanted, decision.reason) == (None, "no window of it was seen lately")


def test_a_job_that_was_never_planned_for_is_left_as_it_is() -> None:
    decision, after = evaluate_hosted(HostedPolicy.of("need_vector"), HostMemory(), NOW_S, None, None)
    assert (decision.wanted, decision.reason) == (None, "no step of its plan is due")
    assert after == HostMemory()


def test_a_policy_that_replans_is_not_given_what_a_plan_did_not_leave() -> None:
    policy = CountingPolicy()
    ask(policy, HostMemory(), Plan(NOW_S - 600.0, left=None))
    assert (policy.accepted, policy.dropped) == ([], 0)


# how the reactive controller meets a plan


def meet(memory: ControllerMemory | None, left: ControllerMemory, known_as_of_s: float | None = None) -> Any:
    """Return the reactive controller's memory after an evaluation of a job that is not seen."""
    plan = Plan(float(PLANNED_S), left=left)
    return evaluate_hosted(PLANNER, HostMemory(known_as_of_s, memory), NOW_S, None, plan)[1].policy


def test_the_first_evaluation_begins_with_what_the_plan_has_learnt() -> None:
    left = ControllerMemory(planned=True, shares={"map": 0.5}, held_until_s=NOW_S + 60)
    assert meet(None, left) == left


@pytest.mark.parametrize(("known_until_s", "count"), [(None, 2), (300.0, 2), (900.0, 4)])
def test_what_was_seen_later_counts(known_until_s: float | None, count: int) -> None:
    of_plan, own = ({"map": (ObservedCapacity(count, 400.0),)} for count in (2, 4))
    left = ControllerMemory(planned=True, seen_until_s=600.0, histories=of_plan)
    known = ControllerMemory(planned=True, seen_until_s=known_until_s, histories=own)
    assert meet(known, left).histories["map"][0].parallelism == count


@pytest.mark.parametrize(("known_as_of_s", "count"), [(None, 1), (float(PLANNED_S), 0)])
def test_the_steps_of_a_plan_that_is_known_do_not_come_back(known_as_of_s: float | None, count: int) -> None:
    later = replace(FALL, apply_at_s=NOW_S + 600)
    known, left = ControllerMemory(planned=True), ControllerMemory(planned=True, due=(later,))
    assert len(meet(known, left, known_as_of_s).due) == count
