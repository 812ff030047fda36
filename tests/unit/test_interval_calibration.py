"""Conformal scales of intervals, and where a parallelism lies."""

import numpy as np
import pytest

from models.capacity.conformal import LEVELS, Z
from models.capacity.interval_calibration import SupportRegion, find_places_of, half_widths, learn_scales

NONE = np.zeros(0), np.zeros(0, np.int64)


def test_places_of_what_was_seen_between_and_beyond() -> None:
    result = find_places_of(np.arange(1, 8), np.array([3, 5]))
    assert result.tolist() == [2, 2, 0, 1, 0, 2, 2]
    assert find_places_of(np.arange(1, 3), np.zeros(0, np.int64)).tolist() == [SupportRegion.BEYOND] * 2


@pytest.mark.parametrize("place", list(SupportRegion))
def test_scales_hold_the_promised_share_of_what_comes_later(place: SupportRegion) -> None:
    draws = np.random.default_rng(5)
    earlier, later = 1.7 * draws.standard_t(4, (2, 20_000))
    scale = learn_scales(earlier, np.full(len(earlier), place), *NONE)
    for column, level in enumerate(LEVELS):
        assert np.mean(np.abs(later) <= scale[place, column] * Z[column]) == pytest.approx(level, abs=0.01)
    others = [one for one in SupportRegion if one is not place]
    np.testing.assert_allclose(scale[others], 1.0, atol=0.15)


def test_hidden_points_stand_for_what_was_not_seen_yet_and_give_way_to_it() -> None:
    draws = np.random.default_rng(6)
    hidden, observed = 3.0 * draws.standard_normal(500), draws.standard_normal(2_000)
    beyond = np.full(500, SupportRegion.BEYOND)
    alone = learn_scales(*NONE, hidden, beyond)
    both = learn_scales(observed, np.full(2_000, SupportRegion.BEYOND), hidden, beyond)
    assert alone[SupportRegion.BEYOND, 0] > 2.5
    assert both[SupportRegion.BEYOND, 0] == pytest.approx(1.0, abs=0.1)
    assert learn_scales(np.array([np.nan]), np.array([0]), *NONE) == pytest.approx(learn_scales(*NONE, *NONE))


def test_half_widths_grow_from_the_80_to_the_95_percent_interval() -> None:
    tail = np.array([1.0, 2.0])
    assert half_widths(1.0, None) == 1.0
    np.testing.assert_allclose(half_widths(1.28, tail), 1.28)
    np.testing.assert_allclose(half_widths(-Z[1], tail), [-Z[1], -2 * Z[1]])
    np.testing.assert_allclose(half_widths(0.5 * (Z[0] + Z[1]), tail)[1], 0.75 * (Z[0] + Z[1]))  # type: ignore[index]
