"""Parameters of DS2's scaling manager; the defaults are those of DS2's own ``ds2.toml`` where it has one."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

from pydantic import Field

from include.utc import DAY_S


class Aggregation(StrEnum):
    """How the decisions of several intervals become one."""

    LAST = "last"
    MAX = "max"
    MEDIAN = "median"


@dataclass(frozen=True, slots=True)
class ManagerOptions:
    """Settings."""

    policy_interval_s: Annotated[
        float,
        Field(
            gt=0,
            le=DAY_S,
            description="s; policy_interval: metrics are averaged over so long; at least a window",
        ),
    ] = 60.0
    warm_up_intervals: Annotated[
        int, Field(ge=0, le=1000, description="warm_up_time: intervals ignored after a reconfiguration")
    ] = 0
    activation_intervals: Annotated[
        int, Field(ge=1, le=1000, description="activation_time: decisions considered before one is applied")
    ] = 1
    aggregation: Annotated[
        Aggregation, Field(description="how several decisions become one; median for bursts, such as windows")
    ] = Aggregation.LAST
    target_rate_ratio: Annotated[
        float,
        Field(
            ge=1,
            le=1e6,
            description="ratio of target to achieved source rate above which resources grow by it; 1e6: off",
        ),
    ] = math.inf
    scaling_factor: Annotated[
        float, Field(ge=0, le=100, description="scaling_factor, headroom: 0.2 for 20% more than needed")
    ] = 0.0
    minor_up: Annotated[int, Field(ge=0, le=10_000, description="instances more, not worth a reconfiguration")] = 0
    minor_down: Annotated[int, Field(ge=0, le=10_000, description="instances less, not worth a reconfiguration")] = 1
    degradation: Annotated[
        float, Field(ge=0, le=1, description="relative loss of the achieved rate share that rolls a change back")
    ] = 0.1
    min_improvement: Annotated[
        float, Field(ge=0, le=1, description="relative gain below which a reconfiguration counts as fruitless")
    ] = 0.02
    max_fruitless: Annotated[
        int, Field(ge=0, le=10_000, description="fruitless reconfigurations after which no more are made; 0: no limit")
    ] = 3
    target_change: Annotated[
        float, Field(ge=0, le=100, description="relative change of the target rate that lets the manager start afresh")
    ] = 0.05
    shared_workers: Annotated[
        bool, Field(description="Timely's execution model: every worker runs every operator, all get the rounded sum")
    ] = False
    # Deviation: the paper has neither of these; as they are by default they change nothing.
    catch_up_s: Annotated[
        float | None, Field(gt=0, le=7 * DAY_S, description="s; targets hold what works a backlog off in so long")
    ] = None
    scale_down_delay_s: Annotated[
        float, Field(ge=0, le=7 * DAY_S, description="s; a scale-down waits for so long; 0 as in the paper")
    ] = 0.0

    def __post_init__(self) -> None:
        if not self.policy_interval_s > 0 or self.warm_up_intervals < 0 or self.activation_intervals < 1:
            raise ValueError(
                "policy_interval_s must be positive, warm_up_intervals 0 and activation_intervals 1 or more"
            )
        if not self.target_rate_ratio >= 1 or not self.scaling_factor >= 0:
            raise ValueError("target_rate_ratio must be 1 or more, scaling_factor 0 or more")
