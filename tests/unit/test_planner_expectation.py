"""What is expected of a configuration, against figures worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm

from models.bundle.job_models import RecoveryModel
from models.scheduling.demand import LEVELS, Demand
from models.scheduling.expectation import Outlook
from models.scheduling.need import CapacityBounds

RECOVERY = RecoveryModel(20.0, 2.0, 40.0, 4.0, 30.0, 5)
ONE = np.array([1, 1])


def outlook(sd: float, *, map_mean: float = 120.0, mean_load: float = 100.0, load_sd: float = 10.0) -> Outlook:
    """A source that never limits, and a map that gets twice the source's records."""
    load = (mean_load + load_sd * norm.ppf(np.array(LEVELS)))[:, None] * np.ones((1, 2))
    rates = np.stack([load, 2 * load], axis=1)
    bounds = {
        "src": CapacityBounds(np.array([1e9]), np.array([0.0]), np.array([1e9])),
        "map": CapacityBounds(np.array([2 * map_mean]), np.array([2 * sd]), np.array([2 * map_mean])),
    }
    return Outlook(Demand(0, 600, ("src", "map"), load, rates), bounds, RECOVERY, 1.28)


def test_p_late_of_normal_load_and_normal_capacity_is_that_of_their_difference() -> None:
    exact = norm.sf((120 - 100) / np.hypot(10, 5))
    assert outlook(5.0).p_late(ONE, slice(0, 2)) == pytest.approx([exact, exact], rel=0.01)


def test_p_late_with_certain_capacity_is_the_tail_of_the_load() -> None:
    assert outlook(0.0, map_mean=131.0).p_late(ONE, slice(0, 1))[0] == pytest.approx(norm.sf(3.1), rel=0.15)


def test_p_late_counts_every_operator_that_may_fail() -> None:
    job = outlook(5.0, load_sd=1e-6)
    twice = Outlook(job.demand, {"src": job.bounds["map"], "map": job.bounds["map"]}, RECOVERY, 1.28)
    one = norm.sf(20 / 5)
    assert job.p_late(ONE, slice(0, 1))[0] == pytest.approx(one, rel=1e-3)
    # the source gets half the records: its capacity lies 28 standard deviations above them
    assert twice.p_late(ONE, slice(0, 1))[0] == pytest.approx(one, rel=1e-3)


def test_figures_of_a_configuration() -> None:
    result = outlook(5.0).expect(ONE, 0, 2)
    assert result.load_q50_per_s == pytest.approx(100)
    assert result.load_q90_per_s == pytest.approx(100 + 10 * norm.ppf(0.9))
    assert result.capacity_per_s == pytest.approx(120)
    assert result.capacity_lower_per_s == pytest.approx(120 - 1.28 * 5)
    assert result.capacity_upper_per_s == pytest.approx(120 + 1.28 * 5)
    assert result.utilisation == pytest.approx(100 / 120)
    assert result.recovery_s == pytest.approx(40 + 100 * 70 / 20)


def test_without_load_nothing_limits() -> None:
    result = outlook(5.0, mean_load=0.0, load_sd=0.0).expect(ONE, 0, 1)
    assert (result.capacity_per_s, result.utilisation, result.p_late) == (float("inf"), 0.0, 0.0)


def test_without_capacity_nothing_recovers() -> None:
    result = outlook(0.0, map_mean=0.0).expect(ONE, 0, 1)
    assert result.utilisation == result.recovery_s == float("inf")
    assert result.p_late == pytest.approx(1.0)
