"""Forecasts that cannot be used, quantiles between levels, bins at the edges, and candidates that are left out."""

from __future__ import annotations

import numpy as np
import pytest

from lab.scheduling.quantiles import quantile_at_level
from models.scheduling.demand import (
    SCORES,
    DemandError,
    SourceForecast,
    quantiles_at_scores,
    resample_to_bins,
)
from models.scheduling.shortest_path import drop_dominated


@pytest.mark.parametrize(
    ("shapes", "told"),
    [
        ([(3, 5)], "[(3, 5)]"),
        ([(4, 0)], "[(4, 0)]"),
        ([(4, 5), (4, 6)], "[(4, 5), (4, 6)]"),
        ([(4, 6), (3, 6)], "[(3, 6), (4, 6)]"),
    ],
)
def test_quantiles_of_other_shapes_are_refused(shapes: list[tuple[int, int]], told: str) -> None:
    with pytest.raises(DemandError) as refused:
        SourceForecast(0, 300, {str(number): np.ones(shape) for number, shape in enumerate(shapes)})
    assert str(refused.value) == f"quantiles must share one shape (4, bins >= 1), found {told}"


def test_quantiles_are_read_between_their_two_levels_and_beyond_the_outer_ones() -> None:
    values = np.array([[50.0, 0.1], [100.0, 0.2], [200.0, 0.3], [400.0, 0.4]])
    middle = (SCORES[:-1] + SCORES[1:]) / 2
    np.testing.assert_allclose(quantiles_at_scores(values, middle), [[75, 0.15], [150, 0.25], [300, 0.35]])
    np.testing.assert_allclose(quantiles_at_scores(values, SCORES), values)
    below, above = 2 * SCORES[0] - SCORES[1], 2 * SCORES[3] - SCORES[2]
    np.testing.assert_allclose(quantiles_at_scores(values, np.array([below, above])), [[0, 0], [600, 0.5]], atol=1e-9)
    assert quantiles_at_scores(values, np.array([-9.0])).tolist() == [[0.0, 0.0]]
    assert quantile_at_level(values, 0.95).tolist() == pytest.approx([400.0, 0.4])


def forecast(values: list[float]) -> SourceForecast:
    return SourceForecast(0, 300, {"src": np.array([values] * 4)})


def test_a_last_bin_that_the_forecast_covers_in_part_has_what_it_covers() -> None:
    result = resample_to_bins(forecast([1, 2, 3, 4, 9]), as_of_s=0, bin_s=600, horizon_s=86_400)
    assert result.quantiles["src"].tolist() == [[2, 4, 9]] * 4


@pytest.mark.parametrize("as_of_s", [900, 950])
def test_a_forecast_that_has_just_ended_is_refused_also_within_its_last_bin(as_of_s: int) -> None:
    assert resample_to_bins(forecast([1, 2, 3]), as_of_s=899, bin_s=600, horizon_s=3600).bins == 1
    with pytest.raises(DemandError, match=r"^the forecast ends before the plan begins$"):
        resample_to_bins(forecast([1, 2, 3]), as_of_s=as_of_s, bin_s=600, horizon_s=3600)


def test_a_candidate_that_another_of_no_more_slots_beats_in_every_bin_is_left_out() -> None:
    """The first runs; two are best in a bin each, one is best in all; the last two are dearer than that everywhere."""
    own = np.array([[9.0, 1.0, 8.0, 3.0, 4.0, 3.5], [9.0, 8.0, 1.0, 3.0, 4.0, 3.5]])
    equal, dearer = np.full((2, 6), 2.0), np.full((2, 6), 2.0)
    assert drop_dominated(own, equal, np.array([5, 5, 5, 5, 5, 5])).tolist() == [0, 1, 2, 3]
    assert drop_dominated(own, equal, np.array([5, 5, 5, 5, 5, 4])).tolist() == [0, 1, 2, 3, 5]
    dearer[:, 3] += 0.75  # to change to it costs more than the last saves by it, and less than the one before
    assert drop_dominated(own, dearer, np.array([5] * 6)).tolist() == [0, 1, 2, 3, 5]
