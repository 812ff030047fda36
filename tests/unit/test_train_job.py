"""Models of a job from its windows and events: which windows count, and how far its intervals reach."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from include.settings import Training
from lab.replay.train_alone import find_first_s, train_alone
from models.bundle.job_models import JobModels
from models.training.busy_choice import choose_busy, keep_trusted
from models.training.held_out import find_held
from models.training.job_facts import learn_facts
from models.training.job_tests import find_since, list_tests, measure_sustained
from models.training.job_windows import KnownOperator, TrainingHistory, TrainingWindows
from models.training.recovery_fits import RecoveryEvents

START_S, WINDOW_S = 1_780_000_200, 300
HOURS = 72
OPTIONS = Training()
NAMES = ("in", "work")
NO_EVENTS = RecoveryEvents(
    np.zeros(0, np.int64), *(np.zeros(0, str) for _ in range(2)), *(np.zeros(0) for _ in range(3))
)


def history(*, skew: float = 1.0, noise: float = 0.02, busiest: float = 0.9) -> TrainingHistory:
    """Windows of a source and an operator whose capacity is 100 p / (1 + 0.02 (p - 1)), with parallelism 2 to 8."""
    count = HOURS * 12
    draws = np.random.default_rng(3)
    at = 2 + np.arange(count) // 60 % 7
    per_s = 100.0 * at / (1 + 0.02 * (at - 1)) * (1 + noise * draws.standard_normal(count))
    busy = busiest * (0.7 + 0.3 * np.sin(np.arange(count) / 20.0))
    rate = busy * per_s
    both = np.stack([rate, rate], axis=1)
    return TrainingHistory(
        ("eu", "line"),
        TrainingWindows(
            NAMES,
            start_s=START_S + WINDOW_S * np.arange(count),
            window_s=np.full(count, float(WINDOW_S)),
            parallelism=np.stack([at, at], axis=1),
            rate_per_s=both,
            output_per_s=both * [0.5, 0.0],
            true_rate_per_s=np.stack([10.0 * per_s, per_s], axis=1),
            busy=np.stack([0.1 * busy, busy], axis=1),
            busy_most=np.stack([0.1 * busy, skew * busy], axis=1),
            held_up=np.zeros((count, 2)),
            latency_ms=np.stack([50.0 / (1.0 - busy), np.full(count, np.nan)], axis=1),
            is_demand=np.ones((count, 2), bool),
            is_source=np.array([True, False]),
        ),
        (KnownOperator("in", (), 128), KnownOperator("work", ("in",), 128)),
        16,
    )


def end_s(given: TrainingHistory) -> float:
    return float(given.windows.end_s.max())


def train(given: TrainingHistory, events: RecoveryEvents = NO_EVENTS) -> JobModels:
    as_of_s = end_s(given)
    since = find_since(find_first_s(given.windows), as_of_s, None, OPTIONS)
    (models,) = train_alone([given], [events], OPTIONS, as_of_s, [since])
    assert models is not None
    return models


def test_a_job_alone_is_learnt_from_its_own_windows() -> None:
    models = train(history())
    curve = models.capacity["work"]
    true = 100.0 * curve.parallelism / (1 + 0.02 * (curve.parallelism - 1))
    assert len(curve.parallelism) == 16
    np.testing.assert_allclose(curve.mean_per_s[1:8], true[1:8], rtol=0.05)
    assert models.selectivity == pytest.approx({"in": 0.5, "work": 0.0})
    assert models.edges == pytest.approx({("in", "work"): 1.0})
    assert models.latency.latency_ms(0.5) == pytest.approx(100.0, rel=0.1)
    assert models.recovery.downtime_rescale_s == pytest.approx(40.0)  # the prior: nothing happened
    assert models.recovery.events == 0


def test_several_jobs_in_one_batch_are_learnt_as_each_alone() -> None:
    given = [history(), history(noise=0.1)]
    as_of_s = end_s(given[0])
    both = train_alone(given, [NO_EVENTS] * 2, OPTIONS, as_of_s, [as_of_s - 86_400.0] * 2)
    for one, own in zip(given, both, strict=True):
        (alone,) = train_alone([one], [NO_EVENTS], OPTIONS, as_of_s, [as_of_s - 86_400.0])
        assert own is not None
        assert alone is not None
        for name in NAMES:
            np.testing.assert_allclose(own.capacity[name].sd_per_s, alone.capacity[name].sd_per_s, rtol=1e-9)


def test_the_busiest_subtask_ends_the_growth() -> None:
    even, skewed = train(history(skew=1.05)), train(history(skew=2.2))
    ratio = even.capacity["work"].mean_per_s[4] / skewed.capacity["work"].mean_per_s[4]
    assert ratio == pytest.approx(2.0, rel=0.02)  # 2.2 over the 1.1 that is no skew


def test_intervals_hold_what_a_trial_did_not_foresee() -> None:
    given = history(noise=0.0)
    late = given.windows.start_s >= end_s(given) - 86_400.0
    given.windows.true_rate_per_s[late] *= 1.3  # the job becomes faster in its last day
    changed, steady = train(given), train(history(noise=0.0))
    share = [one.capacity["work"].sd_per_s[4] / one.capacity["work"].mean_per_s[4] for one in (changed, steady)]
    assert share[0] > 2.0 * share[1]


def test_what_is_held_out_is_not_learnt_from() -> None:
    given = history()
    held = find_held(given.job, given.windows.start_s, OPTIONS.holdout_share)
    assert held.mean() == pytest.approx(OPTIONS.holdout_share, abs=0.05)
    usual = learn_facts(given, OPTIONS, end_s(given))
    given.windows.true_rate_per_s[held] *= 7.0
    other = learn_facts(given, OPTIONS, end_s(given))
    for one, same in zip(usual.points, other.points, strict=True):
        np.testing.assert_array_equal(np.concatenate(one.capacities_per_s), np.concatenate(same.capacities_per_s))
    assert list_tests(given, OPTIONS, None).held.capacity_per_s.max() > 4_000.0


def test_an_idle_operator_is_learnt_from_its_busiest_windows_and_judges_no_interval() -> None:
    given = history()
    chosen = choose_busy(given.windows, np.ones(len(given.windows.start_s), bool), OPTIONS)
    assert set(chosen.operator[chosen.idle].tolist()) == {0}
    assert (keep_trusted(chosen).busy[keep_trusted(chosen).operator == 1] >= 0.4).all()
    tests = list_tests(given, OPTIONS, end_s(given) - 86_400.0)
    assert set(tests.ahead.operator.tolist()) == {1}
    assert (np.bincount(tests.ahead.parallelism) <= 3).all()
    assert set(tests.hours.operator.tolist()) == {0, 1}


@pytest.mark.parametrize(("champion_h", "since_h"), [(None, 48.0), (60.0, 60.0), (10.0, 48.0), (HOURS - 0.1, None)])
def test_what_is_ahead_begins_after_the_champion_was_trained(champion_h: float | None, since_h: float | None) -> None:
    champion_s = None if champion_h is None else champion_h * 3600.0
    found = find_since(0.0, HOURS * 3600.0, champion_s, Training(gate_forward_h=24))
    wanted = {48.0: (HOURS - 0.25 * HOURS)}
    assert found == (None if since_h is None else wanted.get(since_h, since_h) * 3600.0)


def test_downtimes_of_the_job_are_drawn_towards_the_prior() -> None:
    seconds = np.array([60.0, 62.0, 58.0])
    same = np.full(3, "rescale")
    events = RecoveryEvents(np.zeros(3, np.int64), same, same, seconds, np.full(3, np.nan), np.full(3, np.nan))
    recovery = train(history(), events).recovery
    assert 40.0 < recovery.downtime_rescale_s < 60.0
    assert recovery.events == 3


def test_a_job_that_showed_no_capacity_has_no_models() -> None:
    given = history()
    given.windows.busy[:] = np.nan
    assert train_alone([given], [NO_EVENTS], OPTIONS, end_s(given), [None]) == [None]


def spans(*pairs: tuple[float, float]) -> Sequence[np.ndarray]:
    return [START_S + 3600.0 * np.array(side) for side in zip(*pairs, strict=True)]


def test_what_a_job_sustained_is_measured_after_an_event() -> None:
    given = history(noise=0.0)
    sustained = measure_sustained(given.windows, *spans((0.0, 1.0), (500.0, 501.0)))
    # What the source emits, half of what it takes in, over the share that `work` is busy: half of its capacity.
    assert sustained[0] == pytest.approx(0.5 * 200.0 / 1.02, abs=1e-3)
    assert np.isnan(sustained[1])
