"""When a job is over- or under-provisioned, by ContTune's controller."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Settings of the controller; the paper publishes no values, so all four are the project's choice."""

    backpressure: Annotated[
        float, Field(ge=0, le=1, description="backpressured share from which an operator is held back, backpressureThr")
    ] = 0.10
    core_min: Annotated[
        float, Field(ge=0, le=1, description="CPU usage below which the CPU counts as low, coreMinThr")
    ] = 0.60
    core_max: Annotated[
        float, Field(ge=0, le=1, description="CPU usage above which the CPU counts as stressed, coreMaxThr")
    ] = 0.85
    decision: Annotated[
        float, Field(ge=0, le=100, description="relative change of parallelism worth a restart, decisionThr")
    ] = 0.10

    def __post_init__(self) -> None:
        if not 0 <= self.core_min <= self.core_max or self.backpressure < 0 or self.decision < 0:
            raise ValueError("0 <= core_min <= core_max, backpressure >= 0 and decision >= 0 are needed")
