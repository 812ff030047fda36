"""The programme without what it foresees, with a perfect forecast, or without the times of changes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from include.policy_catalogue import WITHOUT_PLANS
from lab.replay.hosted_driver import HostedDriver
from models.policies.evaluation.reactive_decision import ReactiveDecision
from models.policies.job_snapshot import Snapshot
from models.policies.protocol import Schedule, Situation
from models.policies.tidewise.programme_memory import ProgrammeMemory
from models.policies.tidewise.programme_policy import Programme
from models.programme.hypotheses import PULL
from models.programme.law_state import LawState

_NAME: Final = "programme"
_NEVER: Final = 1e6  # mean square error of a hypothesis that nothing follows


class WithoutShapes(Programme):
    """Expects that the load holds its level, whatever the shape of the days before."""

    def evaluate(self, job: Snapshot, memory: ProgrammeMemory) -> tuple[ReactiveDecision, ProgrammeMemory]:
        """Return what a job should run at from now on."""
        return super().evaluate(job, replace(memory, law=follow_nothing(memory.law)))


def follow_nothing(law: str) -> str:
    """Return a law, as it is written, whose hypotheses that follow a path are never chosen."""
    state = LawState.read(law)
    state.squares[:, PULL > 0] = _NEVER
    return state.write()


class WithoutTaskManagers(Programme):
    """Takes each slot as paid by itself."""

    def decide(self, situation: Situation, memory: ProgrammeMemory) -> tuple[Schedule, ProgrammeMemory]:
        """Return the plan as if slots came one by one."""
        return super().decide(replace(situation, job=replace(situation.job, taskmanager_slots=1)), memory)

    def evaluate(self, job: Snapshot, memory: ProgrammeMemory) -> tuple[ReactiveDecision, ProgrammeMemory]:
        """Return what a job should run at as if slots came one by one."""
        return super().evaluate(replace(job, taskmanager_slots=1), memory)


_PROGRAMME: Final = HostedDriver.of(_NAME, Programme())
FORMS: Final[Mapping[str, HostedDriver]] = {
    WITHOUT_PLANS: replace(_PROGRAMME, makes_plans=False),
    "programme_true_load": replace(_PROGRAMME, knows_load=True),
    "programme_flat": replace(HostedDriver.of(_NAME, WithoutShapes()), makes_plans=False),
    "programme_not_told": replace(
        HostedDriver.of(_NAME, WithoutTaskManagers()),
        changed={"timing.slots_wait_s": 0.0, "timing.awaits_checkpoint": False},
    ),
}
"""Candidate policies that only run when named."""
