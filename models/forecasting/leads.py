"""Leads of a forecast: every so many bins one is kept, and neighbouring leads form a group."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from include.utc import HOUR_S
from models.arrays import Floats, Ints
from models.forecasting.calendar import Calendar

GROUP_S = 3 * HOUR_S
"""Length of a group of leads."""
SAMPLE_S = 25 * 60
"""One lead in so much time is kept: neighbours have similar errors.  It does not divide the hour, so that the leads
fall on different minutes of it."""


@dataclass(frozen=True, slots=True)
class LeadGrid:
    """The leads whose errors are kept.

    Attributes:
        horizon: H, bins of a forecast.
        step: bins between two leads.
        group: leads in a group.
    """

    horizon: int
    step: int
    group: int

    @classmethod
    def of(cls, calendar: Calendar, horizon: int) -> LeadGrid:
        """Return the grid for forecasts of ``horizon`` bins."""
        step = min(calendar.bins(SAMPLE_S), horizon)
        count = len(range(step // 2, horizon, step))
        return cls(horizon, step, min(max(1, GROUP_S // (step * calendar.bin_s)), count))

    @property
    def leads(self) -> Ints:
        """(H',) bins from the origin, ascending."""
        return np.arange(self.step // 2, self.horizon, self.step, dtype=np.int64)

    @property
    def groups(self) -> int:
        """G, number of groups."""
        return -(-len(self.leads) // self.group)

    @property
    def group_of_lead(self) -> Ints:
        """(H',) the group of each lead."""
        return np.asarray(np.arange(len(self.leads)) // self.group, np.int64)

    def expand(self, by_group: Floats) -> Floats:
        """Return values of shape (..., G) for every bin of the horizon, shape (..., H)."""
        group = np.minimum(np.arange(self.horizon) // (self.group * self.step), by_group.shape[-1] - 1)
        return np.asarray(by_group[..., group])
