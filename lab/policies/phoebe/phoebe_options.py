"""Parameters of Phoebe and TWRES; the defaults are those of the paper's evaluation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from include.settings.section import SLOTS_MAX
from include.utc import DAY_S

RECOVERY_TARGET_S = 180.0
EVALUATION_INTERVAL_S = 600
TWRES_WINDOW_S = 600.0
ABNORMAL_LATENCY_MS = 2000.0
Rule = Literal["logged", "algorithm 1"]


@dataclass(frozen=True, slots=True)
class PhoebeOptions:
    """Settings of Phoebe."""

    scale_out_min: Annotated[
        int, Field(ge=1, le=SLOTS_MAX, description="S_min: workers; S_max is the number of slots the job may have")
    ] = 2
    recovery_target_s: Annotated[
        float, Field(gt=0, le=DAY_S, description="s; RC_tar: a failure is to be recovered from within this")
    ] = RECOVERY_TARGET_S
    evaluation_interval_s: Annotated[
        int, Field(ge=1, le=DAY_S, description="s; E: between two evaluations, and after an interruption")
    ] = EVALUATION_INTERVAL_S
    horizon_s: Annotated[int, Field(ge=1, le=DAY_S, description="s; H_max: how far the load is projected")] = 600
    bins: Annotated[int, Field(ge=1, le=1000, description="averaging bins of the projected load")] = 5
    rule: Annotated[Rule, Field(description="logged (the prototype's) or algorithm 1 (the paper's)")] = "logged"

    def candidates(self, slots_max: int) -> tuple[int, ...]:
        """Return every scale-out from the least to the number of slots, which is always among them."""
        return tuple(range(min(self.scale_out_min, slots_max), slots_max + 1))


@dataclass(frozen=True, slots=True)
class TwresOptions:
    """Settings of TWRES, which may go down to one worker."""

    evaluation_interval_s: Annotated[
        int, Field(ge=1, le=DAY_S, description="s; a job is left alone for so long after an interruption")
    ] = EVALUATION_INTERVAL_S
    window_s: Annotated[
        float, Field(ge=1, le=DAY_S, description="s; the records expected within this are to be sustained")
    ] = TWRES_WINDOW_S
    # Deviation: the paper's TWRES has no headroom; 0 is its form.
    headroom: Annotated[
        float, Field(ge=0, le=100, description="the forecast counts as so much higher: 0.2 for 20%; 0 as in the paper")
    ] = 0.0
    abnormal_latency_ms: Annotated[
        float, Field(gt=0, le=1e9, description="ms; with a higher latency one worker is added")
    ] = ABNORMAL_LATENCY_MS
