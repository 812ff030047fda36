"""Parameters of Daedalus."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from include.utc import DAY_S


@dataclass(frozen=True, slots=True)
class DaedalusOptions:
    """Settings of Daedalus; all but the first two are the project's choice."""

    recovery_max_s: Annotated[
        float, Field(gt=0, le=DAY_S, description="s; after a change the backlog has to be worked off within this")
    ] = 600.0
    forecast_s: Annotated[int, Field(ge=60, le=DAY_S, description="s; how far the load is forecast")] = 900
    desired_use: Annotated[
        float, Field(gt=0, le=1, description="utilisation at which a scale-out's capacity is read from its regression")
    ] = 1.0
    error_max: Annotated[
        float,
        Field(gt=0, le=100, description="WAPE of the last forecast from which a straight line replaces the next one"),
    ] = 0.25
    settle_s: Annotated[int, Field(ge=0, le=DAY_S, description="s; no change so soon after one")] = 180
    scale_in_wait_s: Annotated[int, Field(ge=0, le=DAY_S, description="s; no scale-in so soon after a change")] = 600
