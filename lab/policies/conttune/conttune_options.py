"""Parameters of ContTune; of all of them the paper publishes values for alpha and K alone."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated

from pydantic import Field

from include.utc import DAY_S
from lab.policies.tuning.tuning_options import ALPHA, Acquisition
from lab.policies.tuning_thresholds import Thresholds
from models.policies.tuning import KEEP


@dataclass(frozen=True, slots=True)
class ContTuneOptions:
    """Settings."""

    alpha: Annotated[
        int, Field(ge=0, le=1000, description="alpha: radius of the known region around an observed parallelism")
    ] = ALPHA
    acquisition: Annotated[
        Acquisition, Field(description="function of the Small phase: feasible (Eq. 5), cei (Eq. 4), linear (DS2)")
    ] = Acquisition.FEASIBLE
    keep: Annotated[int, Field(ge=1, le=100_000, description="K: samples kept per parallelism")] = KEEP
    thresholds: Annotated[Thresholds, Field(description="of the controller")] = field(default_factory=Thresholds)
    always_big: Annotated[
        bool, Field(description="go through the Big phase even though the rates at which records arrive are known")
    ] = False
    settle_s: Annotated[
        float,
        Field(
            ge=0,
            le=DAY_S,
            description="s; so long after a change of the Small phase backpressure counts as catching up",
        ),
    ] = 900.0
    # Deviation: the paper has none of the next four; as they are by default they change nothing.
    headroom: Annotated[
        float, Field(ge=0, le=100, description="lambda counts as so much higher: 0.2 for 20%; 0 as in the paper")
    ] = 0.0
    scale_down_delay_s: Annotated[
        float, Field(ge=0, le=7 * DAY_S, description="s; a scale-down waits for so long; 0 as in the paper")
    ] = 0.0
    catch_up_s: Annotated[
        float | None, Field(gt=0, le=7 * DAY_S, description="s; lambda holds what works a backlog off in so long")
    ] = None
    interval_s: Annotated[
        float, Field(ge=0, le=DAY_S, description="s; least time between two decisions; 0: every observation window")
    ] = 0.0

    def __post_init__(self) -> None:
        if self.alpha < 0 or self.keep < 1:
            raise ValueError("alpha must be 0 or more, keep 1 or more")
