"""From when on a figure of the fleet's health needs a person."""

from __future__ import annotations

from pydantic import Field

from include.settings.section import HoursOrNone, Section, Share
from include.utc import DAY_S


class Health(Section):
    """Thresholds of what `tidewise status` reports."""

    controller_late_s: float = Field(
        180.0, gt=0, le=DAY_S, description="s; time without a tick, after which a controller is late"
    )
    plan_old_h: HoursOrNone = Field(2.0, description="h; largest age of a cluster's newest plan; 0: none is made here")
    metrics_old_h: HoursOrNone = Field(3.0, description="h; largest age of the last ingested metrics; 0: none are here")
    models_old_h: HoursOrNone = Field(49.0, description="h; largest age of models; 0: none are trained here")
    quarantined_share_max: Share = Field(0.01, description="largest share of a day's lines in quarantine")
    job_late_s: float = Field(900.0, gt=0, le=DAY_S, description="s; longest time for which a job may be late")
    job_down_s: float = Field(300.0, gt=0, le=DAY_S, description="s; longest time for which a job may be down")
    refusals_max: int = Field(6, ge=1, le=100_000, description="refused decisions on a job within a day")
    roll_backs_max: int = Field(1, ge=1, le=100_000, description="steps of a job taken back within a day")
    coverage_off_max: Share = Field(
        0.1,
        description="how far the share of load below forecasts' q90 may be from 0.9",
    )
    disk_free_min: Share = Field(0.05, description="least share of free space on a disk of Tidewise's")
