"""Parameters of OptScaler; the defaults are those of Section 5.2 and 5.4 of the paper where it has one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from include.settings.section import SLOTS_MAX
from include.utc import DAY_S


@dataclass(frozen=True, slots=True)
class OptScalerOptions:
    """Settings of OptScaler."""

    target_use: Annotated[
        float, Field(gt=0, le=1, description="c*: utilisation that a worker is to come close to and not to exceed")
    ] = 0.5
    confidence: Annotated[
        float, Field(ge=0.5, lt=1, description="alpha: probability with which the utilisation stays below target_use")
    ] = 0.95
    interval_s: Annotated[int, Field(ge=60, le=DAY_S, description="s; h: between two decisions")] = 1800
    horizon: Annotated[int, Field(ge=1, le=100, description="D: intervals that a decision looks ahead")] = 11
    # Deviation: the paper trains on a quantile loss and compares at the median; a level of the plan's forecast here.
    load_quantile: Annotated[
        float, Field(ge=0.1, le=0.95, description="level of the forecast whose peaks count as the load")
    ] = 0.5
    # Deviation: eta = 2e-4 is of the paper's unit of workload; here it is the share of an error that one window takes
    # away, eta times the square of the workload of a worker.  The value is the project's choice.
    feedback: Annotated[
        float, Field(ge=0, lt=2, description="share of the estimator's error that a window corrects; 0: no feedback")
    ] = 0.1
    worker_s: Annotated[float, Field(gt=0, le=DAY_S, description="s; tau: to add or remove a worker")] = 300.0
    concurrency: Annotated[
        int, Field(ge=1, le=SLOTS_MAX, description="s: workers that are added or removed at the same time")
    ] = 4
    workers_min: Annotated[int, Field(ge=1, le=SLOTS_MAX, description="X_min: fewest workers")] = 1
    refit_s: Annotated[
        int, Field(ge=3600, le=30 * DAY_S, description="s; the estimator is fitted anew after so long")
    ] = DAY_S

    @property
    def change_max(self) -> int:
        """Workers that an interval can add or remove, Eq. 6: h s / tau; one at least."""
        return max(1, int(self.interval_s * self.concurrency / self.worker_s))
