"""Parameters of the MDP and reinforcement-learning agents; the defaults are the paper's where it has one."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated

from pydantic import Field

from include.utc import DAY_S

DISCOUNT = 0.99  # gamma
LEARNING_RATE = 0.1  # alpha of Eq. 6
# An agent that has seen less than this many transitions (an hour of windows of five minutes) does not act yet.
LEAST_SLOTS = 12
LEVELS = 30  # most rate levels of an agent; the paper leaves L open, its data have 52 with its quantum
OBJECTIVE_UTILISATION = 0.7  # at which the paper's response objective lies, and its best target

Discount = Annotated[float, Field(ge=0, lt=1, description="gamma: what the next slot's cost counts")]
Rate = Annotated[float, Field(gt=0, le=1, description="alpha of Eq. 6")]
Slots = Annotated[int, Field(ge=1, le=10**6, description="transitions seen before an agent acts")]


@dataclass(frozen=True, slots=True)
class Weights:
    """Weights of the cost terms; the defaults are the paper's.

    Raises:
        ValueError: negative weights, or a sum other than 1.
    """

    resources: Annotated[
        float, Field(ge=0, le=1, description="w_res, times the share of the largest configuration in use")
    ] = 0.2
    reconfiguration: Annotated[
        float, Field(ge=0, le=1, description="w_rcf, per slot in which any operator is rescaled")
    ] = 0.4
    violation: Annotated[
        float, Field(ge=0, le=1, description="w_SLA or w_util, per slot with too high response time or utilisation")
    ] = 0.4

    def __post_init__(self) -> None:
        parts = (self.resources, self.reconfiguration, self.violation)
        if min(parts) < 0 or abs(sum(parts) - 1.0) > 1e-9:
            raise ValueError(f"weights must not be negative and must sum to 1, are {parts}")

    def average_cost(
        self, mean_instances: float, reconfigurations: int, violations: int, *, slots: int, most_instances: int
    ) -> float:
        """Return the average cost per slot of a run from its totals: the identity behind every row of Table 1."""
        share = mean_instances / most_instances
        rescaled, violated = reconfigurations / slots, violations / slots
        return self.resources * share + self.reconfiguration * rescaled + self.violation * violated


PAPER_WEIGHTS = Weights()


class Exploration(StrEnum):
    """What an agent takes for the unknown cost of a state that it was never in.

    OPTIMISTIC: nothing, as in Algorithm 1, so that it tries every state.
    SHARED: at least what a lighter state cost, as in the author's later code: more load, fewer instances are no better.
    """

    OPTIMISTIC = "optimistic"
    SHARED = "shared"


@dataclass(frozen=True, slots=True)
class LearningOptions:
    """What all agents have."""

    weights: Annotated[Weights, Field(description="of the cost terms; they sum to 1")] = field(default_factory=Weights)
    discount: Discount = DISCOUNT
    learning_rate: Rate = LEARNING_RATE
    least_slots: Slots = LEAST_SLOTS
    levels: Annotated[
        int, Field(ge=25, le=1000, description="L: most levels of an agent's rate; beyond them the grid gets coarser")
    ] = LEVELS
    exploration: Annotated[
        Exploration,
        Field(
            description="unknown cost of a state never tried: optimistic (0, Algorithm 1) or shared (as lighter ones)"
        ),
    ] = Exploration.OPTIMISTIC


PAPER = LearningOptions()


@dataclass(frozen=True, slots=True)
class CentralisedOptions(LearningOptions):
    """Settings of one agent for the whole job."""

    objective_utilisation: Annotated[
        float,
        Field(gt=0, lt=1, description="utilisation of every operator at which the response time is its objective"),
    ] = OBJECTIVE_UTILISATION
    objective_s: Annotated[
        float | None,
        Field(
            gt=0,
            le=DAY_S,
            description="s; R_SLA, which the latency of a window is measured against; unset: the response time at "
            "objective_utilisation, against that of M/D/1",
        ),
    ] = None


@dataclass(frozen=True, slots=True)
class DecentralisedOptions(LearningOptions):
    """Settings of one agent per operator."""

    target_utilisation: Annotated[
        float, Field(gt=0, le=1, description="U-bar: utilisation above which a slot violates")
    ] = OBJECTIVE_UTILISATION
    knows_utilisation: Annotated[
        bool, Field(description="take utilisation = rate / capacity; else learn which states violate")
    ] = True
