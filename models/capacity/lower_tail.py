"""How unlikely it is that a capacity of a wide interval is far below its mean."""

from __future__ import annotations

from typing import Final

import numpy as np

from models.arrays import Floats

NORMAL_UP_TO: Final = 0.25  # of the mean: up to this standard deviation a capacity is taken as normal,
LOGNORMAL_FROM: Final = 0.35  # from this one as lognormal


def sd_towards(mean_per_s: Floats, sd_per_s: Floats, rate_per_s: Floats) -> Floats:
    """Return the standard deviation that stands between a capacity's mean and a rate, (...) of all three, records/s.

    Curves are fitted to ln C.  A normal distribution is near enough where the deviation is a few per cent; where it is
    a half of the mean, as of a lightly used operator, it would have every fiftieth capacity below 0, and such an
    operator would hide how likely the busy ones are to be overloaded.  For a lognormal capacity the distance to a rate
    in standard deviations is ln(mean / rate) / s, s the share sd / mean: as if the deviation were s times the
    logarithmic mean of both.  Above the mean, and with a narrow interval, the deviation stays what it is.
    """
    mean, sd = np.asarray(mean_per_s, float), np.asarray(sd_per_s, float)
    with np.errstate(divide="ignore", invalid="ignore"):
        share = sd / mean
        remaining = np.clip(rate_per_s / mean, 1e-12, 1.0)
        shrink = np.where(
            remaining < 1.0, (1.0 - remaining) / -np.log(remaining), 1.0
        )  # logarithmic mean, as a share of the mean
    weight = np.clip((share - NORMAL_UP_TO) / (LOGNORMAL_FROM - NORMAL_UP_TO), 0.0, 1.0)
    return np.asarray(np.where(mean > 0, sd * (1.0 - weight * (1.0 - shrink)), sd), float)
