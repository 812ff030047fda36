"""The window of a calibration's errors from which the offsets of some origins are made."""

from __future__ import annotations

from models.arrays import Floats, Ints
from models.forecasting.calibration import Calibration, ErrorWindow


def cut_window(calibration: Calibration, errors: Floats, shapes: Floats, at: Ints, first: int) -> ErrorWindow:
    """Return the window of all origins ``at``; the proportion is chosen before the one of index ``first``."""
    leads = calibration.grid.leads
    history = calibration._sort(errors[:, :, leads], shapes[:, :, leads], at)
    return calibration._window(history, 0, len(at), first)
