"""Parameters of the policy ``need_vector``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from include.utc import DAY_S


@dataclass(frozen=True, slots=True)
class NeedVectorOptions:
    """What a rescale has to be worth."""

    min_step_s: Annotated[int, Field(ge=0, le=DAY_S, description="s; no step lasts less than this")] = 3600
    rescale_cost_slot_s: Annotated[
        float, Field(ge=0, le=1e9, description="slot-seconds; a step must save this many")
    ] = 14_400.0
