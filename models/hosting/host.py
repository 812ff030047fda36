"""One evaluation of one job: its newest plan, its windows and its memory -> what it should run at.

The controller and the replay both call :func:`evaluate_hosted`.  The controller gives it live windows, the plans of the
table and stored memories, the replay its recorded windows, the plans that it makes, and what the last call returned.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol, cast

from include.policy_catalogue import Decides, entry_of
from include.utc import HOUR_S
from models.policies.evaluation.pending_steps import PendingStep, latest_due
from models.policies.evaluation.reactive_decision import ReactiveDecision
from models.policies.job_snapshot import Snapshot
from models.policies.protocol import Policy
from models.policies.registry import policy
from models.policies.situations import build_live_situation
from models.policies.tidewise.falling_behind import falls_behind


@dataclass(frozen=True, slots=True)
class HostedPolicy:
    """A policy, and how it is hosted.

    Attributes:
        name: of the policy.
        decides: when it decides.
        reads_models: whether a policy that reacts is shown what the nightly training has learnt.
        policy: what decides; None where nobody asks it here: its plans come from elsewhere.
    """

    name: str
    decides: Decides
    reads_models: bool = False
    policy: Policy[Any] | None = None

    @classmethod
    def of(cls, name: str, chosen: Policy[Any] | None = None) -> HostedPolicy:
        """Return a policy that is hosted as the one of this name in the catalogue.

        Raises:
            PolicyCatalogueError: (a ValueError) no policy of that name.
        """
        entry = entry_of(name)
        return cls(name, entry.decides, entry.reads_models, chosen)

    @property
    def reacts(self) -> bool:
        """Whether it decides at the evaluation itself."""
        return self.decides is Decides.REACTS

    @property
    def replans(self) -> bool:
        """Whether it decides anew at the evaluation, from what is measured and what its plan left."""
        return self.decides is Decides.REPLANS


def host_policy(name: str, parameters: Mapping[str, object]) -> HostedPolicy:
    """Return a policy of the catalogue as one hosts it that makes no plans.

    Raises:
        PolicyCatalogueError: (a ValueError) no policy of that name.
        ValueError: it has no such parameters, or not of these values.
    """
    hosted = HostedPolicy.of(name)
    return replace(hosted, policy=policy(name, parameters)) if hosted.reacts or hosted.replans else hosted


@dataclass(frozen=True, slots=True)
class Plan:
    """A job's newest plan, as an evaluation reads it.

    Attributes:
        as_of_s: when it was made, epoch seconds.
        steps: those that change something, by time; empty of a plan that was refused.
        left: what a policy that replans left for the evaluations until the next plan; None of a plan that was refused.
        expires_s: after it the measured load decides, epoch seconds.
    """

    as_of_s: float
    steps: tuple[PendingStep, ...] = ()
    left: Any = None
    expires_s: float = math.inf


@dataclass(frozen=True, slots=True)
class HostMemory:
    """What is kept of a job from one evaluation to the next.

    Attributes:
        plan_as_of_s: the newest plan that it knows.
        policy: what a policy that reacts or replans remembers; None before its first evaluation.
    """

    plan_as_of_s: float | None = None
    policy: Any = None


def evaluate_hosted(
    hosted: HostedPolicy, memory: HostMemory, now_s: int, job: Snapshot | None, plan: Plan | None
) -> tuple[ReactiveDecision, HostMemory]:
    """Return what a job should run at from now on, and the memory for the next evaluation.

    Args:
        hosted: its policy.
        memory: of the last evaluation.
        now_s: epoch seconds.
        job: as it is now, with the windows of the last ``planner.observed_h`` hours at least where the policy reacts;
            None where it is not seen, and where its plan is followed.
        plan: the newest one; None before the first.
    """
    decision, after = _ask_policy(hosted, memory, now_s, job, plan)
    if job is None or decision.wanted is None:
        return decision, after
    reason = decision.reason + job.bounds.describe(now_s)
    return replace(decision, reason=reason, falls_behind=falls_behind(job)), after


def answers_alarms(hosted: HostedPolicy, job: Snapshot) -> bool:
    """Whether a job is to be evaluated now that falls behind between two evaluations.

    Its memory stays as it is: the next evaluation learns from the same windows when they are whole.  Policies whose
    rules are means of several evaluations, and those that follow a plan, wait for their turn.
    """
    return hosted.replans and job.up and falls_behind(job)


def _ask_policy(
    hosted: HostedPolicy, memory: HostMemory, now_s: int, job: Snapshot | None, plan: Plan | None
) -> tuple[ReactiveDecision, HostMemory]:
    known = replace(memory, plan_as_of_s=None if plan is None else plan.as_of_s)
    if hosted.reacts:
        return _react(hosted, known, job)
    if hosted.replans:
        return _replan(hosted, _meet_left(hosted, known, plan, memory.plan_as_of_s, now_s), now_s, job)
    return _follow(plan, now_s), replace(known, policy=None)


def _react(hosted: HostedPolicy, memory: HostMemory, job: Snapshot | None) -> tuple[ReactiveDecision, HostMemory]:
    """Return what a policy decides from the windows up to now.

    A job that does not run is not asked about: its windows are read when it runs again.
    """
    if job is None or hosted.policy is None:
        return ReactiveDecision(None, "nothing was seen of it lately"), memory
    if not job.up:
        return ReactiveDecision(None, "the job is not running"), memory
    within = job.observations.since(job.now_s - HOUR_S * job.options.observed_h)
    if not len(within):
        return ReactiveDecision(None, "no window of it was seen lately"), memory
    situation = build_live_situation(replace(job, observations=within), reads_models=hosted.reads_models)
    recalled = hosted.policy.first_memory() if memory.policy is None else memory.policy
    schedule, after = hosted.policy.decide(situation, recalled)
    first = schedule.decisions[0]
    wanted = dict(zip(schedule.operators, map(int, first.step.parallelism_to), strict=True))
    return ReactiveDecision(wanted, first.reason), replace(memory, policy=after)


class Replanner(Protocol):
    """What a policy that replans has besides :class:`models.policies.protocol.Policy`."""

    def accept_plan(self, memory: Any, left: Any) -> Any:
        """Return the memory after a newer plan, with what that plan left."""
        ...

    def drop_plan(self, memory: Any) -> Any:
        """Return the memory of a job without a plan that counts."""
        ...

    def evaluate(self, job: Snapshot, memory: Any) -> tuple[ReactiveDecision, Any]:
        """Return what a job should run at from now on."""
        ...

    def follow(self, memory: Any, now_s: int) -> tuple[ReactiveDecision, Any]:
        """Return the step of the plan that is due, for a job of which nothing was seen lately."""
        ...


def _meet_left(
    hosted: HostedPolicy, memory: HostMemory, plan: Plan | None, known_as_of_s: float | None, now_s: int
) -> HostMemory:
    """Return the memory of a policy that replans with a newer plan accepted, or with one dropped that has expired."""
    if hosted.policy is None:
        return memory
    replanner = cast("Replanner", hosted.policy)
    recalled = hosted.policy.first_memory() if memory.policy is None else memory.policy
    is_newer = plan is not None and (memory.policy is None or plan.as_of_s != known_as_of_s)
    if plan is not None and plan.left is not None and is_newer:
        recalled = replanner.accept_plan(recalled, plan.left)
    if plan is None or now_s > plan.expires_s:
        recalled = replanner.drop_plan(recalled)
    return replace(memory, policy=recalled)


def _replan(
    hosted: HostedPolicy, memory: HostMemory, now_s: int, job: Snapshot | None
) -> tuple[ReactiveDecision, HostMemory]:
    """Return what a policy decides anew from the windows up to now; of a job without any, its plan's due step."""
    if hosted.policy is None:
        return ReactiveDecision(None, "nothing was seen of it lately"), memory
    replanner = cast("Replanner", hosted.policy)
    if job is None:
        decision, after = replanner.follow(memory.policy, now_s)
    else:
        decision, after = replanner.evaluate(job, memory.policy)
    return decision, replace(memory, policy=after)


def _follow(plan: Plan | None, now_s: int) -> ReactiveDecision:
    """Return the step of a plan that was due last, for as long as it is valid."""
    latest, _ = latest_due(() if plan is None else plan.steps, now_s)
    if latest is None or now_s > latest.valid_until_s:
        return ReactiveDecision(None, "no step of its plan is due")
    return ReactiveDecision(latest.parallelism, latest.reason, latest)
