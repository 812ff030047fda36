"""Smallest parallelism whose lower capacity bound covers a rate."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from include.domain.graph import JobGraph, Operator
from lab.policies.need_vector.needs import smallest_parallelism
from lab.policies.spread_selectivity import spread_selectivity
from lab.scheduling.quantiles import quantile_at_level
from models.bundle.job_models import CapacityCurve
from models.scheduling.demand import (
    DemandError,
    SourceForecast,
    demand,
    quantiles_at_scores,
    resample_to_bins,
)
from models.scheduling.need import capacity_bounds, upper_limits


def curve(mean: list[float], sd: list[float], observed: list[int], seen: list[float]) -> CapacityCurve:
    grid = np.arange(1, len(mean) + 1)
    return CapacityCurve(grid, np.array(mean), np.array(sd), np.array(observed), np.array(seen), mean[0])


def test_within_the_trust_region_the_lower_bound_decides() -> None:
    bounds = capacity_bounds(curve([100, 190, 270], [10, 5, 20], [2], [190]), 3, trust_region=1, z=2.0)
    assert bounds.lower_per_s.tolist() == [80, 180, 230]


def test_outside_the_trust_region_the_smaller_of_bound_and_line_decides() -> None:
    # observed at 2 only: 80 per instance; the GP promises more than the line from p = 4 on
    result = capacity_bounds(curve([90, 160, 250, 400, 90], [0, 0, 0, 0, 0], [2], [160]), 5, trust_region=1, z=1.0)
    assert result.lower_per_s.tolist() == [90, 160, 250, 320, 320]  # p = 5: 90 is less than the line, and kept monotone


def test_beyond_the_grid_capacity_grows_in_proportion_and_is_not_trusted_further() -> None:
    result = capacity_bounds(curve([100, 180], [0, 10], [2], [170]), 4, trust_region=0, z=1.0)
    assert result.mean_per_s.tolist() == [100, 180, 270, 360]
    assert result.lower_per_s.tolist() == [85, 170, 255, 340]


def test_never_observed_means_the_slope_bounds() -> None:
    result = capacity_bounds(curve([100, 300], [0, 0], [], []), 2, trust_region=9, z=1.0)
    assert result.lower_per_s.tolist() == [100, 200]


def test_exact_capacity_suffices_and_the_next_record_does_not() -> None:
    need, short = smallest_parallelism(np.array([0.0, 100.0, 100.1, 300.0, 300.1]), np.array([100.0, 200.0, 300.0]))
    assert need.tolist() == [1, 1, 2, 3, 3]
    assert short.tolist() == [False, False, False, False, True]


curves = st.integers(1, 40).flatmap(
    lambda n: st.tuples(
        st.lists(st.floats(0, 1e6), min_size=n, max_size=n),
        st.lists(st.floats(0, 1e5), min_size=n, max_size=n),
        st.sets(st.integers(1, n), max_size=n).map(sorted),
    )
)


@given(curves, st.integers(1, 60), st.integers(0, 5), st.floats(0, 3), st.lists(st.floats(0, 2e6), min_size=2))
def test_need_never_falls_with_load_and_is_the_smallest(
    parts: tuple[list[float], list[float], list[int]], p_max: int, alpha: int, z: float, rates: list[float]
) -> None:
    mean, sd, observed = parts
    fitted = curve(mean, sd, observed, [mean[p - 1] for p in observed])
    lower = capacity_bounds(fitted, p_max, trust_region=alpha, z=z).lower_per_s
    assert (np.diff(lower) >= 0).all()
    load = np.sort(np.array(rates))
    need, short = smallest_parallelism(load, lower)
    assert (np.diff(need) >= 0).all()
    assert ((need >= 1) & (need <= p_max)).all()
    assert (short | (lower[need - 1] >= load)).all()
    smaller = need > 1
    assert (lower[need[smaller] - 2] < load[smaller]).all()


def test_limits_are_key_groups_and_slots() -> None:
    graph = JobGraph.from_operators([Operator("a", (), 4), Operator("b", ("a",), 128)])
    assert upper_limits(graph, 10).tolist() == [4, 10]


def forecast(values: list[float], start_s: int = 0, bin_s: int = 300) -> SourceForecast:
    return SourceForecast(start_s, bin_s, {"src": np.array([values] * 4)})


def test_a_bin_takes_the_highest_of_the_forecast_bins_it_touches() -> None:
    result = resample_to_bins(forecast([1, 2, 9, 3, 4, 5]), as_of_s=400, bin_s=600, horizon_s=86_400)
    assert (result.start_s, result.bins) == (0, 3)
    assert result.quantiles["src"][0].tolist() == [2, 9, 5]


def test_coarse_forecasts_fill_finer_bins_and_the_horizon_ends_the_plan() -> None:
    result = resample_to_bins(forecast([7, 8], bin_s=3600), as_of_s=3000, bin_s=600, horizon_s=1800)
    assert (result.start_s, result.quantiles["src"][0].tolist()) == (3000, [7, 8, 8])


def test_a_forecast_that_starts_later_starts_the_bins() -> None:
    result = resample_to_bins(forecast([5, 6, 7], start_s=1500), as_of_s=1000, bin_s=600, horizon_s=86_400)
    assert (result.start_s, result.quantiles["src"][0].tolist()) == (1200, [5, 7])


def test_a_forecast_of_the_past_is_refused() -> None:
    with pytest.raises(DemandError, match="ends before"):
        resample_to_bins(forecast([1, 2]), as_of_s=600, bin_s=600, horizon_s=3600)


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -1.0])
def test_rates_that_are_none_are_refused(bad: float) -> None:
    with pytest.raises(DemandError, match="src"):
        forecast([1.0, bad])


def test_quantiles_between_levels_are_normal_and_beyond_them_continue() -> None:
    from scipy.stats import norm

    values = 100 + 10 * norm.ppf(np.array([0.1, 0.5, 0.9, 0.95]))[:, None]
    assert quantile_at_level(values, 0.75)[0] == pytest.approx(100 + 10 * norm.ppf(0.75))
    assert quantiles_at_scores(values, np.array([3.0, -3.0]))[:, 0] == pytest.approx([130, 70])


def test_demand_goes_in_full_to_every_successor() -> None:
    graph = JobGraph.from_operators(
        [Operator("a"), Operator("b"), Operator("join", ("a", "b")), Operator("x", ("join",)), Operator("y", ("join",))]
    )
    quantiles = {"a": np.full((4, 2), 10.0), "b": np.full((4, 2), 5.0)}
    selectivity = {"a": 1.0, "b": 1.0, "join": 0.2, "x": 1.0, "y": 1.0}
    result = demand(graph, spread_selectivity(graph, selectivity), SourceForecast(0, 600, quantiles))
    assert result.operators == ("a", "b", "join", "x", "y")
    assert result.rates_per_s[2, :, 1].tolist() == [10, 5, 15, 3, 3]
    assert result.load_per_s[0].tolist() == [15, 15]
