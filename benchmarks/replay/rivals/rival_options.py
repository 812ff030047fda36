"""Parameters of the rivals that only the replay has, and of the form in which any rival runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated

from pydantic import Field

from include.utc import DAY_S


@dataclass(frozen=True, slots=True)
class CandidateForm:
    """How a candidate runs: its parameters, and what any operator would add to it.

    Attributes:
        base: name of the candidate.
        parameters: its own; those that are missing keep their defaults.
        headroom: share by which the loads that it is shown are larger than the true ones.
        scale_down_delay_s: a fall waits so long and then takes the highest of what was wanted meanwhile; 0: at once.
        cadence_s: it decides so often; 0: at every tick.
    """

    base: str
    parameters: Mapping[str, object] = field(default_factory=dict)
    headroom: Annotated[float, Field(ge=0, le=10)] = 0.0
    scale_down_delay_s: Annotated[int, Field(ge=0, le=7 * DAY_S)] = 0
    cadence_s: Annotated[int, Field(ge=0, le=DAY_S)] = 0


@dataclass(frozen=True, slots=True)
class WeeklyScheduleOptions:
    """A schedule by hand: what last week's same hour needed, and a share more."""

    headroom: Annotated[float, Field(ge=0, le=10, description="share above the highest load of that hour")] = 0.2


@dataclass(frozen=True, slots=True)
class PredictiveScalingOptions:
    """Predictive scaling in the manner of AWS: a forecast sets the least capacity, target tracking does the rest."""

    target_utilisation: Annotated[
        float, Field(gt=0, le=1, description="utilisation that both the forecast and target tracking aim at")
    ] = 0.7
    refresh_s: Annotated[int, Field(ge=3600, le=DAY_S, description="s; between two forecasts")] = 21_600
    buffer_s: Annotated[int, Field(ge=0, le=7200, description="s; capacity is there so long before its hour")] = 300
    scale_in_wait_s: Annotated[
        int, Field(ge=0, le=DAY_S, description="s; target tracking scales in after so long below its target")
    ] = 900
    least_history_s: Annotated[int, Field(ge=0, le=14 * DAY_S, description="s; before, target tracking alone")] = DAY_S


@dataclass(frozen=True, slots=True)
class CpuStepsOptions:
    """The CPU rule of AWS' managed Flink: double when busy, halve when idle for hours."""

    high: Annotated[float, Field(gt=0, le=1, description="CPU use from which the parallelism is doubled")] = 0.75
    high_for_s: Annotated[int, Field(ge=0, le=DAY_S, description="s; for so long")] = 900
    low: Annotated[float, Field(ge=0, le=1, description="CPU use below which it is halved")] = 0.10
    low_for_s: Annotated[int, Field(ge=0, le=DAY_S, description="s; for so long")] = 21_600

    def __post_init__(self) -> None:
        if self.low >= self.high:
            raise ValueError(f"low = {self.low} must be below high = {self.high}")
