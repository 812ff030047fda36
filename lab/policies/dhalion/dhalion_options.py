"""Parameters of Dhalion's rules."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

from pydantic import Field

from include.utc import DAY_S


class Symptom(StrEnum):
    """What tells which operator is too slow.

    BACKPRESSURE: an operator above is in backpressure while it is not itself, as in Heron and Flink.
    PENDING: its input queue grows.  With queues between operators the FIRST slow operator shows this, whatever is
    behind it; so it is in Dragster's experiments.
    """

    BACKPRESSURE = "backpressure"
    PENDING = "pending"


class ScalingAmount(StrEnum):
    """By how much an operator is scaled: in proportion to the backpressure, or by one instance."""

    FACTOR = "factor"
    ONE = "one"


@dataclass(frozen=True, slots=True)
class DhalionOptions:
    """Settings."""

    symptom: Annotated[
        Symptom, Field(description="what tells which operator is too slow: backpressure, or pending (its queue grows)")
    ] = Symptom.BACKPRESSURE
    change: Annotated[ScalingAmount, Field(description="how much an operator is scaled: factor, or one instance")] = (
        ScalingAmount.FACTOR
    )
    backpressured_min: Annotated[
        float,
        Field(gt=0, le=1, description="bp: backpressured share from which that is a symptom (ContTune's threshold)"),
    ] = 0.1
    idle_utilisation: Annotated[
        float,
        Field(ge=0, lt=1, description="busy share below which an operator is over-provisioned; no paper gives it"),
    ] = 0.6
    shrink: Annotated[
        float, Field(gt=0, lt=1, description="factor on an over-provisioned operator; with change = one an instance")
    ] = 0.8
    budget: Annotated[
        int | None, Field(ge=1, le=10**6, description="instances of all operators but the sources; unset: no budget")
    ] = None
    wait_s: Annotated[
        float, Field(ge=0, le=DAY_S, description="s; from one action to the next, while queues drain")
    ] = 300.0
    # Deviation: Dhalion has neither of these; 0 is its form.
    headroom: Annotated[
        float, Field(ge=0, le=100, description="a scaled-up operator gets so much more: 0.2 for 20%; 0 as in Dhalion")
    ] = 0.0
    scale_down_delay_s: Annotated[
        float, Field(ge=0, le=7 * DAY_S, description="s; an operator has to be idle for so long; 0 as in Dhalion")
    ] = 0.0

    def __post_init__(self) -> None:
        if not 0 < self.backpressured_min <= 1 or not 0 <= self.idle_utilisation < 1 or not 0 < self.shrink < 1:
            raise ValueError("backpressured_min must be in (0, 1], idle_utilisation in [0, 1), shrink in (0, 1)")
