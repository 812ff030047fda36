"""The configurations that a plan may choose from: enough of them, and beyond what was seen too."""

import numpy as np
import pytest

from models.scheduling.candidates import MOST, list_candidates
from models.scheduling.demand import LEVELS, Demand
from models.scheduling.need import CapacityBounds


def _demand(peak_per_s: float) -> Demand:
    load = np.full((len(LEVELS), 1), peak_per_s)
    return Demand(0, 600, ("source", "map"), load, np.repeat(load[:, None], 2, axis=1))


def _bounds(lower_per_s: np.ndarray) -> CapacityBounds:
    p = np.arange(1.0, len(lower_per_s) + 1)
    return CapacityBounds(100.0 * p, 40.0 * p, lower_per_s)


@pytest.mark.parametrize("most", [20, 63, 64, 90, 500])
def test_all_slots_are_offered_up_to_the_number_of_candidates(most: int) -> None:
    bounds = {name: _bounds(100.0 * np.arange(1.0, most + 1)) for name in ("source", "map")}
    result = list_candidates(_demand(1000.0), bounds, np.array([1, 1]), np.array([most, most]))
    slots = np.unique(result.max(axis=1))
    assert len(result) <= MOST
    assert slots[-1] == most
    assert len(slots) >= min(most, MOST - 4)
    assert (np.diff(slots)[:10] == 1).all()


def test_a_job_seen_at_one_instance_only_is_offered_more_than_its_lower_bound_asks_for() -> None:
    flat = np.minimum(100.0 * np.arange(1.0, 33), 500.0)  # far from what was seen the bound does not rise any more
    result = list_candidates(
        _demand(1000.0), {"source": _bounds(flat), "map": _bounds(flat)}, np.array([1, 1]), np.array([32, 32])
    )
    assert result.max() == 32
