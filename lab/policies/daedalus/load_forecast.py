"""The load of the next minutes, from the windows until now: ARIMA(3, 1, 0), or a straight line after a bad forecast.

Deviation: the paper's order of ARIMA was not in the text at hand; here three differences are weighed by least squares.
"""

from __future__ import annotations

import numpy as np

from models.arrays import Floats

ORDER = 3
LINE_WINDOWS = 6
_FEWEST = 4 * ORDER


def forecast_by_differences(load_per_s: Floats, steps: int) -> Floats:
    """Return (steps,) loads: each difference is a weighted sum of the three before it; not negative.

    The weights' absolute values add up to one at most, so that differences do not grow. Of a short history nothing is
    weighed: the load stays.

    Args:
        load_per_s: (T,) at equal distances, T at least 1.
        steps: to forecast.
    """
    differences = np.diff(load_per_s)
    if len(differences) < _FEWEST:
        return np.full(steps, float(load_per_s[-1]))
    lagged = np.lib.stride_tricks.sliding_window_view(differences, ORDER)[:-1]
    weights, *_ = np.linalg.lstsq(lagged, differences[ORDER:], rcond=None)
    weights = weights / max(1.0, float(np.abs(weights).sum()))
    recent, loads = list(differences[-ORDER:]), [float(load_per_s[-1])]
    for _ in range(steps):
        recent = [*recent[1:], float(np.dot(weights, recent))]
        loads.append(loads[-1] + recent[-1])
    return np.asarray(np.maximum(np.array(loads[1:]), 0.0), float)


def forecast_by_line(load_per_s: Floats, steps: int) -> Floats:
    """Return (steps,) loads on the line through the last windows; not negative."""
    recent = load_per_s[-LINE_WINDOWS:]
    if len(recent) < 2:
        return np.full(steps, float(recent[-1]))
    slope, start = np.polyfit(np.arange(len(recent)), recent, 1)
    return np.asarray(np.maximum(start + slope * (len(recent) - 1 + np.arange(1, steps + 1)), 0.0), float)


def weighted_error(expected_per_s: Floats, measured_per_s: Floats) -> float:
    """Return the WAPE: what a forecast missed over what was measured; 0 of no load."""
    total = float(np.abs(measured_per_s).sum())
    return float(np.abs(expected_per_s - measured_per_s).sum()) / total if total > 0 else 0.0
