"""Windows that no restart disturbs, and the least that counts as load."""

from __future__ import annotations

import numpy as np

from models.policies.observations import Observations

# One record in 17 minutes: less is no load, and ratios to it would leave the range of floating point.
NO_LOAD_PER_S = 1e-3


def undisturbed_windows(observations: Observations) -> Observations:
    """Return the windows without a rescale or restart; all of them when none is without."""
    rows = np.flatnonzero(~observations.disturbed)
    return observations.rows(rows) if len(rows) else observations
