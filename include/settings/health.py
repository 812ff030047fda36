"""From when on a figure of the fleet's health needs a person."""

from __future__ import annotations

from pydantic import Field

from include.settings.section import HoursOrNone, Section, Share
from include.utc import DAY_S


class Health(Section):
    """Thresholds of what `tidewise status` reports; nothing is decided or stopped by them."""

    controller_late_s: float = Field(
        180.0, gt=0, le=DAY_S, description="s; a controller that has not ticked for so long is late"
    )
    plan_old_h: HoursOrNone = Field(
        2.0, description="h; a cluster's newest plan that is older needs a person; 0: none is made here"
    )
    metrics_old_h: HoursOrNone = Field(
        3.0, description="h; metrics that were ingested last until longer ago are old; 0: none are here"
    )
    models_old_h: HoursOrNone = Field(
        49.0, description="h; models that were trained longer ago are old; 0: none are trained here"
    )
    quarantined_share_max: Share = Field(
        0.01, description="share of the lines of a day that were quarantined, above which a person should look"
    )
    job_late_s: float = Field(
        900.0, gt=0, le=DAY_S, description="s; a job that has been late for longer needs a person, who is told why"
    )
    job_down_s: float = Field(
        300.0, gt=0, le=DAY_S, description="s; a job that has been down for longer needs a person"
    )
    refusals_max: int = Field(
        6, ge=1, le=100_000, description="refused decisions on a job within a day, from which on a person should look"
    )
    roll_backs_max: int = Field(
        1, ge=1, le=100_000, description="steps of a job taken back within a day, from which on a person should look"
    )
    coverage_off_max: Share = Field(
        0.1,
        description="how far the share of past load at or below a cluster's forecast q90 may be from 0.9; further off, "
        "its forecasts' bands need a person",
    )
    disk_free_min: Share = Field(
        0.05, description="share of a disk with the lake, the raw files or Tidewise's own files that has to be free"
    )
