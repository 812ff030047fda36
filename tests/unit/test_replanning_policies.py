"""A policy that replans: it gets what its plan left once, and follows its plan while nothing is seen of the job."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from include.policy_catalogue import Decides
from models.hosting.host import HostedPolicy, HostMemory, Plan, evaluate_hosted
from models.policies.evaluation.reactive_decision import ReactiveDecision
from models.policies.observations import Observations
from models.scheduling.slot_bounds import SlotBounds

NOW_S = 1_795_000_200
COSTS = SimpleNamespace(costs=SimpleNamespace(late_after_s=60.0))
# The rest is the policy's own matter.
SNAPSHOT: Any = SimpleNamespace(bounds=SlotBounds(), observations=Observations.nothing(1), options=COSTS)


@dataclass
class CountingPolicy:
    """Counts evaluations in its memory; notes what plans left, and how often it was without one."""

    accepted: list[Any] = field(default_factory=list)
    dropped: int = 0

    def first_memory(self) -> int:
        return 100

    def accept_plan(self, memory: int, left: Any) -> int:
        self.accepted.append(left)
        return memory

    def drop_plan(self, memory: int) -> int:
        self.dropped += 1
        return memory

    def evaluate(self, job: Any, memory: int) -> tuple[ReactiveDecision, int]:
        assert job is SNAPSHOT
        return ReactiveDecision({"map": memory}, "counted"), memory + 1

    def follow(self, memory: int, now_s: int) -> tuple[ReactiveDecision, int]:
        assert now_s == NOW_S
        return ReactiveDecision({"map": -memory}, "as planned"), memory


def ask(policy: CountingPolicy | None, memory: HostMemory, plan: Plan | None, job: Any = SNAPSHOT) -> Any:
    hosted = HostedPolicy("counting", Decides.REPLANS, policy=policy)  # type: ignore[arg-type]
    return evaluate_hosted(hosted, memory, NOW_S, job, plan)


def test_what_a_plan_left_is_accepted_once() -> None:
    policy = CountingPolicy()
    first, second = Plan(NOW_S - 600.0, left="first"), Plan(NOW_S - 300.0, left="second")
    memory, decided = HostMemory(), []
    for plan in (first, first, second, second, None):
        decision, memory = ask(policy, memory, plan)
        decided.append(decision.wanted)
    assert (policy.accepted, policy.dropped) == (["first", "second"], 1)
    assert decided == [{"map": count} for count in (100, 101, 102, 103, 104)]
    assert memory.policy == 105


def test_a_plan_that_has_expired_is_dropped() -> None:
    policy = CountingPolicy()
    ask(policy, HostMemory(), Plan(NOW_S - 600.0, expires_s=NOW_S - 1.0, left="first"))
    assert policy.dropped == 1


def test_a_policy_without_a_memory_gets_what_a_plan_left_that_is_known() -> None:
    """A controller that starts again has lost the memory, and not which plan was the last."""
    policy = CountingPolicy()
    ask(policy, HostMemory(plan_as_of_s=NOW_S - 600.0), Plan(NOW_S - 600.0, left="first"))
    assert policy.accepted == ["first"]


def test_of_a_job_that_is_not_seen_the_plan_is_followed_and_its_memory_kept() -> None:
    decision, memory = ask(CountingPolicy(), HostMemory(policy=7), Plan(NOW_S - 600.0, left="x"), None)
    assert (decision.wanted, memory.policy, decision.reason) == ({"map": -7}, 7, "as planned")


@pytest.mark.parametrize("job", [SNAPSHOT, None])
def test_without_a_policy_a_job_is_left_as_it_is_and_its_memory_kept(job: Any) -> None:
    decision, memory = ask(None, HostMemory(plan_as_of_s=1.0, policy=7), Plan(NOW_S - 600.0, left="x"), job)
    assert (decision.wanted, memory.policy) == (None, 7)
    assert decision.reason == "nothing was seen of it lately"
