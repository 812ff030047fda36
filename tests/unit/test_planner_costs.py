"""What bins, changes, failures and overload cost, in examples worked out by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from overload import overload_probability
from scipy.stats import norm

from lab.scheduling.cost_model import (
    LONGEST_LATE_S,
    CurrentState,
    compute_costs,
    headroom,
    late_time_s,
    work_off_time_s,
)
from lab.scheduling.planner_settings import PlannerCosts, PlannerSettings, PlannerTiming, ReactiveSettings
from models.bundle.job_models import RecoveryModel
from models.scheduling.demand import LEVELS, Demand
from models.scheduling.expectation import Outlook
from models.scheduling.need import CapacityBounds
from models.scheduling.slot_problem import CostTables

# A rescale stops the job for 90 s; a failure for 125 s, and 30 s are processed twice.
RECOVERY = RecoveryModel(90.0, 0.0, 125.0, 0.0, 30.0, 5)
# 144 failures a day are one in a bin of 600 s.
COSTS = PlannerCosts(
    resource_weight=0.2, late_weight=0.4, rescale_weight=0.5, rescale_margin=3, late_after_s=60, failures_per_day=144
)
ALONE = PlannerSettings(costs=COSTS, reactive=ReactiveSettings(rescales_for_catch_up=False))
# With a reactive controller that looks every 40 s, so that 20 s pass on average.
CAUGHT_UP = PlannerSettings(costs=COSTS, timing=PlannerTiming(apply_every_s=40))
NOW = CurrentState(as_of_s=240, slots_max=32, lag_s=0.0)  # six minutes before the first bin ends


def outlook_of(
    loads_per_s: list[float], recovery: RecoveryModel = RECOVERY, load_sd: float = 0.0, capacity_sd: float = 0.0
) -> Outlook:
    """One operator that processes 100 records/s in each instance; bins of 600 s from 0 on."""
    load = np.array(loads_per_s)[None] + load_sd * norm.ppf(np.array(LEVELS))[:, None]
    mean = 100.0 * np.arange(1.0, 33.0)
    bounds = {"op": CapacityBounds(mean, np.full(32, capacity_sd), mean)}
    return Outlook(Demand(0, 600, ("op",), load, load[:, None]), bounds, recovery, 1.28)


def costs_of(
    outlook: Outlook, parallelism: list[int], options: PlannerSettings = ALONE, now: CurrentState = NOW
) -> CostTables:
    return compute_costs(outlook, np.array(parallelism)[:, None], now, options)


def test_slots_cost_their_minutes_at_their_own_and_at_an_additional_price() -> None:
    result = costs_of(outlook_of([100.0, 100.0]), [2, 4])
    assert result.minutes.tolist() == [6.0, 10.0]
    assert result.slots.tolist() == [2, 4]
    assert result.slot_price == pytest.approx(0.2 / 32)
    without = result.cost_per_bin() - result.bin_cost
    np.testing.assert_allclose(without, 0.2 / 32 * np.array([[12.0, 24.0], [20.0, 40.0]]))
    priced = result.cost_per_bin(np.array([1.0, 0.5])) - result.cost_per_bin()
    np.testing.assert_allclose(priced, [[12.0, 24.0], [10.0, 20.0]])


def test_a_change_costs_its_margin_and_the_minutes_that_records_wait_longer_than_allowed() -> None:
    # Late after 60 s: for 30 s until it runs again, then until the oldest record is 30 s younger.
    result = costs_of(outlook_of([100.0, 200.0]), [2, 4])
    late_s = np.array([[30 + 30.0, 30 + 10.0], [LONGEST_LATE_S, 30 + 30.0]])
    np.testing.assert_allclose(result.switch, 3 * 0.5 + 0.4 * late_s / 60)


def test_without_catch_up_a_failure_costs_what_the_configuration_takes_to_work_it_off() -> None:
    # Late after 30 s of 125; the oldest record is then 95 s too old.
    result = costs_of(outlook_of([100.0, 100.0]), [2, 4])
    failures = np.array([[0.6], [1.0]])
    late_s = np.array([95 + 95.0, 95 + 95 / 3])
    np.testing.assert_allclose(result.bin_cost, 2.0 * failures * 0.4 * late_s / 60)


def test_the_reactive_controller_works_a_failure_off_in_the_widest_configuration_where_that_is_cheaper() -> None:
    result = costs_of(outlook_of([400.0, 400.0]), [5, 16], CAUGHT_UP)
    # At 5 slots 475 s late. Rescaled to 16: 95 s until it runs, 20 s until somebody looks, 90 s for the rescale; then
    # 95 - 5 + 90 s of age at three seconds a second; 11 more slots meanwhile, and two rescales.
    late_s = 95 + 20 + 90 + 180 / 3
    rescaled = 0.4 * late_s / 60 + 11 * 0.2 / 32 * (90 + 60 + 20) / 60 + 2 * 0.5
    assert rescaled < 0.4 * 475 / 60
    stays = 0.4 * (95 + 95 / 3) / 60
    np.testing.assert_allclose(result.bin_cost, 2.0 * np.array([[0.6], [1.0]]) * np.array([rescaled, stays]))


def test_a_checkpoint_older_than_the_allowed_wait_makes_every_second_of_the_downtime_late() -> None:
    outlook = outlook_of([400.0], replace(RECOVERY, checkpoint_interval_s=100.0))
    result = costs_of(outlook, [5, 16], CAUGHT_UP)
    age_s = 100 + 125 - 60.0
    off_s = (age_s - 0.25 * 20 + 90) / 3
    rescaled = 0.4 * (125 + 20 + 90 + off_s) / 60 + 11 * 0.2 / 32 * (90 + off_s + 20) / 60 + 2 * 0.5
    np.testing.assert_allclose(result.bin_cost[0], 2.0 * 0.6 * np.array([rescaled, 0.4 * (125 + age_s / 3) / 60]))
    assert late_time_s(50.0, 100.0, np.array([2.0]), 60.0)[0] == 50 + 90


def test_a_backlog_costs_in_the_first_bin_what_it_takes_to_work_it_off() -> None:
    outlook = outlook_of([100.0, 150.0])
    behind = costs_of(outlook, [2, 4], now=replace(NOW, lag_s=160.0)).bin_cost
    extra = behind - costs_of(outlook, [2, 4]).bin_cost
    np.testing.assert_allclose(extra, [[0.4 * 100 / 60, 0.4 * 100 / 3 / 60], [0, 0]], atol=1e-12)
    within = costs_of(outlook, [2, 4], now=replace(NOW, lag_s=60.0)).bin_cost
    np.testing.assert_allclose(within, behind - extra)


NO_FAILURES = COSTS.model_copy(update={"failures_per_day": 0.0})


def test_an_overload_costs_its_probability_in_late_minutes_where_nothing_ends_it() -> None:
    outlook = outlook_of([100.0, 100.0], load_sd=10.0)  # half the time above what one instance processes
    alone = costs_of(outlook, [1], ALONE.model_copy(update={"costs": NO_FAILURES}))
    np.testing.assert_allclose(alone.bin_cost[:, 0], 0.4 * 0.5 * np.array([6.0, 10.0]))


@pytest.mark.parametrize(("load_per_s", "probability"), [(100.0, 0.5), (80.0, 0.0), (1000.0, 1.0)])
def test_an_overload_that_the_reactive_controller_ends_costs_slots_and_two_rescales_an_hour(
    load_per_s: float, probability: float
) -> None:
    outlook = outlook_of([load_per_s], load_sd=10.0 if probability == 0.5 else 0.0)
    costs = NO_FAILURES.model_copy(update={"overload_late_share": 0.06, "overload_slots_share": 0.3})
    result = costs_of(outlook, [1], CAUGHT_UP.model_copy(update={"costs": costs}))
    late = 0.06 + 0.94 * probability**2
    per_minute = probability * (0.4 * late + 2 * 0.5 / 60 + 0.2 * 0.3)
    np.testing.assert_allclose(result.bin_cost, [[6 * per_minute]], atol=1e-12)


@pytest.mark.parametrize(("tolerance", "score"), [(0.0, 0.0), (0.2, 2.5)])
def test_load_may_exceed_capacity_by_the_tolerance(tolerance: float, score: float) -> None:
    outlook = outlook_of([100.0], load_sd=10.0)
    assert overload_probability(outlook, np.array([[1]]), tolerance)[0, 0] == pytest.approx(norm.sf(score))
    costs = NO_FAILURES.model_copy(update={"overload_tolerance": tolerance})
    result = costs_of(outlook, [1], ALONE.model_copy(update={"costs": costs}))
    assert result.bin_cost[0, 0] == pytest.approx(6 * 0.4 * norm.sf(score))


def test_doubts_of_load_and_capacity_add_as_variances() -> None:
    outlook = outlook_of([80.0], load_sd=8.0, capacity_sd=6.0)
    assert overload_probability(outlook, np.array([[1]]))[0, 0] == pytest.approx(norm.sf(20 / 10))


@pytest.mark.parametrize("capacity_per_s", [20.0, 60.0, 99.0, 101.0, 150.0, 250.0, 399.0, 500.0])
def test_between_two_levels_the_load_is_linear_in_the_score_and_goes_on_beyond_the_last(capacity_per_s: float) -> None:
    quantiles, scores = np.array([50.0, 100.0, 200.0, 400.0]), norm.ppf(np.array(LEVELS))
    bounds = {"op": CapacityBounds(*(np.array([value]) for value in (capacity_per_s, 0.0, capacity_per_s)))}
    load = quantiles[:, None]
    outlook = Outlook(Demand(0, 600, ("op",), load, load[:, None]), bounds, RECOVERY, 1.28)
    lower = 0 if capacity_per_s < 100 else 1 if capacity_per_s < 200 else 2
    share = (capacity_per_s - quantiles[lower]) / (quantiles[lower + 1] - quantiles[lower])
    expected = norm.sf(scores[lower] + share * (scores[lower + 1] - scores[lower]))
    assert overload_probability(outlook, np.array([[1]]))[0, 0] == pytest.approx(expected, rel=1e-6)


def test_each_parallelism_has_its_own_capacity_and_an_operator_without_a_model_limits_nothing() -> None:
    load = np.tile(np.array([[50.0, 300.0]]), (4, 1))
    bounds = {"last": CapacityBounds(np.array([100.0, 200.0]), np.array([20.0, 50.0]), np.array([100.0, 200.0]))}
    demand = Demand(0, 600, ("first", "last"), load, np.stack([load, load], axis=1))
    outlook = Outlook(demand, bounds, RECOVERY, 1.28)
    result = overload_probability(outlook, np.array([[1, 2], [1, 1], [9, 2]]))
    at_one, at_two = norm.cdf([-50 / 20, 200 / 20]), norm.cdf([-150 / 50, 100 / 50])
    np.testing.assert_allclose(result, np.stack([at_two, at_one, at_two], axis=1), rtol=1e-6)
    np.testing.assert_allclose(headroom(outlook, np.array([[1, 2], [9, 1]]), 0.5), [[4, 2], [2 / 3, 1 / 3]])


def test_headroom_is_at_the_level_of_the_load_that_is_asked_for() -> None:
    outlook = outlook_of([100.0, 0.5, 0.0], load_sd=0.0)
    configuration = np.array([[2]])
    with np.errstate(all="raise"):  # where nothing comes, nothing is divided in vain
        assert headroom(outlook, configuration, 0.5)[:, 0].tolist() == [2.0, 400.0, np.inf]
    busier = outlook_of([100.0], load_sd=10.0)
    assert headroom(busier, configuration, 0.5)[0, 0] == pytest.approx(2.0)
    assert headroom(busier, configuration, 0.9)[0, 0] == pytest.approx(200 / (100 + 10 * norm.ppf(0.9)))


def test_nothing_to_process_with_and_nothing_to_process_is_no_limit() -> None:
    load = np.zeros((4, 1))
    bounds = {"op": CapacityBounds(np.zeros(1), np.zeros(1), np.zeros(1))}
    outlook = Outlook(Demand(0, 600, ("op",), load, load[:, None]), bounds, RECOVERY, 1.28)
    with np.errstate(all="raise"):
        assert headroom(outlook, np.array([[1]]), 0.5)[0, 0] == np.inf


def test_a_backlog_falls_with_the_headroom_above_one() -> None:
    with np.errstate(all="raise"):
        result = work_off_time_s([0.0, 0.5, 90.0, 90.0, 90.0], np.array([1.0, 1.5, 4.0, 1.0, 0.5]))
    assert result.tolist() == [0.0, 1.0, 30.0, LONGEST_LATE_S, LONGEST_LATE_S]
