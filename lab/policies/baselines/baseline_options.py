"""Parameters of the baselines: random search, the CPU rule, a fixed configuration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from include.settings.section import SLOTS_MAX
from include.utc import DAY_S

# The larger of the two bounds of ContTune's random search (the p_max that ContTune reached on the query).
BOUND = 32


@dataclass(frozen=True, slots=True)
class RandomSearchOptions:
    """Settings of random search."""

    bound: Annotated[int, Field(ge=1, le=SLOTS_MAX, description="p_max: largest parallelism that is tried")] = BOUND
    # Deviation: the paper's has no headroom; 0 is its form.
    headroom: Annotated[
        float, Field(ge=0, le=100, description="lambda counts as so much higher: 0.2 for 20%; 0 as in the paper")
    ] = 0.0


@dataclass(frozen=True, slots=True)
class StaticOptions:
    """Settings of a configuration that never changes."""

    workers: Annotated[
        int | None, Field(ge=1, le=SLOTS_MAX, description="parallelism of every operator; unset: as it is found")
    ] = None

    def __post_init__(self) -> None:
        if self.workers is not None and self.workers < 1:
            raise ValueError(f"workers must be at least 1, is {self.workers}")


@dataclass(frozen=True, slots=True)
class ReactiveOptions:
    """Settings of the CPU rule; apart from the target they are the pod autoscaler's defaults."""

    target: Annotated[float, Field(gt=0, le=1, description="share of a core that a worker should use")] = 0.35
    tolerance: Annotated[
        float, Field(ge=0, le=100, description="relative distance of the use from the target that is let be")
    ] = 0.1
    stabilisation_s: Annotated[
        int, Field(ge=0, le=DAY_S, description="s; a scale-in goes no lower than what was recommended within this")
    ] = 300
    growth_workers: Annotated[
        int, Field(ge=0, le=SLOTS_MAX, description="a scale-out adds at most so many workers, or growth_share if more")
    ] = 4
    growth_share: Annotated[
        float, Field(ge=0, le=1000, description="share of the workers that a scale-out may add within the period")
    ] = 1.0
    growth_period_s: Annotated[int, Field(ge=0, le=DAY_S, description="s; period that limits the growth")] = 15
    use_window_s: Annotated[int, Field(ge=1, le=DAY_S, description="s; processor use is the mean of so long")] = 60
    unmeasured_s: Annotated[
        int, Field(ge=0, le=DAY_S, description="s; workers younger than this have no metrics and count as idle")
    ] = 120

    def __post_init__(self) -> None:
        if not 0 < self.target <= 1 or not self.tolerance >= 0:
            raise ValueError("0 < target <= 1 and tolerance >= 0 are needed")
