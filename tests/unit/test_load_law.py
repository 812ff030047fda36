"""The law of a job's load: its bands hold, it follows what is right, and its state survives as text."""

from __future__ import annotations

import numpy as np
import pytest

from models.programme.law_state import LawState
from models.programme.load_law import choose_hypothesis, observe
from models.programme.load_outlook import look_ahead
from models.programme.load_paths import DAY, STEP_S

MONDAY = 1_700_438_400 // STEP_S
DAYS = 4


def day_shape() -> np.ndarray:
    return 1.5 + np.sin(2 * np.pi * np.arange(DAYS * DAY) / DAY)


def random_walk(generator: np.random.Generator, sd: float) -> np.ndarray:
    return np.exp(np.cumsum(sd * generator.standard_normal(DAYS * DAY)))


def learn(loads: np.ndarray) -> tuple[LawState, list[tuple[int, float]]]:
    """Return the state after all loads, and the standard scores of what came at each lead, as the law saw it."""
    state, scores = LawState.first(), []
    for step, load in enumerate(loads):
        observe(state, MONDAY + step, float(load), lambda at: None)
        if step > 2 * DAY and step % 7 == 0 and step + 24 < len(loads):
            expected = look_ahead(state, lambda at: None)
            for lead in (1, 3, 12, 24):
                spread = np.hypot(expected.sd[lead - 1], expected.noise)
                came = np.log(loads[step + lead] + expected.offset)
                scores.append((lead, float((came - expected.mean[lead - 1]) / spread)))
    return state, scores


@pytest.mark.parametrize("kind", ["walk", "noise", "day"])
def test_bands_hold_what_they_say_at_every_lead(kind: str) -> None:
    generator = np.random.default_rng(7)
    noise = np.exp(0.05 * generator.standard_normal(DAYS * DAY))
    loads = {"walk": 3e4 * random_walk(generator, 0.02), "noise": 3e4 * noise, "day": 3e4 * day_shape() * noise}[kind]
    _, scores = learn(loads)
    for lead in (1, 3, 12, 24):
        held = np.mean([abs(score) < 1.2816 for at, score in scores if at == lead])
        assert 0.62 <= held <= 0.97  # 80%, of less than a hundred that overlap


def test_a_day_that_repeats_is_followed_and_a_walk_is_not() -> None:
    generator = np.random.default_rng(3)
    state, _ = learn(3e4 * day_shape() * np.exp(0.02 * generator.standard_normal(DAYS * DAY)))
    assert look_ahead(state, lambda at: None).followed.source in {"yesterday", "profile"}
    expected = look_ahead(state, lambda at: None)
    shape = day_shape()[:24]  # the last day ends where the next begins
    assert np.exp(expected.mean[:24]) - expected.offset == pytest.approx(3e4 * shape, rel=0.1)
    walking, _ = learn(3e4 * random_walk(generator, 0.03))
    level = look_ahead(walking, lambda at: None)
    assert np.ptp(level.mean[:12]) < 0.1


def test_a_forecast_with_skill_gets_weight_and_one_without_loses_it() -> None:
    generator = np.random.default_rng(5)
    loads = 3e4 * np.concatenate([random_walk(generator, 0.03), np.ones(100)])

    def foresee(at: int) -> np.ndarray:
        return loads[at - MONDAY : at - MONDAY + 97]

    def mislead(at: int) -> np.ndarray:
        return 3e4 * np.exp(np.sin(np.arange(at, at + 97) / 5.0))

    for forecast, is_good in ((foresee, True), (mislead, False)):
        state = LawState.first()
        for step in range(2 * DAY):
            observe(state, MONDAY + step, float(loads[step]), forecast)
        expected = look_ahead(state, forecast)
        assert (expected.followed.source == "champion") == is_good
        assert (expected.forecast_missed < 0.05) == is_good


def test_white_noise_is_no_change_of_the_level() -> None:
    generator = np.random.default_rng(11)
    state, _ = learn(3e4 * np.exp(0.5 * generator.standard_normal(DAYS * DAY)))
    expected = look_ahead(state, lambda at: None)
    assert expected.noise > 2 * expected.sd[0]


def test_the_state_is_small_and_the_same_as_text() -> None:
    generator = np.random.default_rng(1)
    loads = 3e4 * day_shape() * np.exp(0.1 * generator.standard_normal(DAYS * DAY))
    kept, again = LawState.first(), LawState.first()
    for step, load in enumerate(loads[:400]):
        kept = LawState.read(kept.write())
        observe(kept, MONDAY + step, float(load), lambda at: None)
        again = LawState.read(LawState.read(again.write()).write())
        observe(again, MONDAY + step, float(load), lambda at: None)
    assert kept.write() == again.write()
    assert len(kept.write()) < 16_000
    with pytest.raises(ValueError, match="layout"):
        LawState.read(kept.write()[:400])


def test_gaps_odd_values_and_hidden_loads_do_no_lasting_harm() -> None:
    state = LawState.first()
    for step in range(DAY):
        observe(state, MONDAY + step, 100.0, lambda at: None)
    observe(state, MONDAY + DAY, 1e9, lambda at: None)  # one odd poll
    observe(state, MONDAY + DAY + 4, 100.0, lambda at: None)  # and three windows that are missing
    for step in range(DAY + 5, DAY + 48):
        observe(state, MONDAY + step, 100.0, lambda at: None)
    expected = look_ahead(state, lambda at: None)
    assert np.exp(expected.mean[0]) - expected.offset == pytest.approx(100.0, rel=0.05)
    observe(state, MONDAY + DAY + 48, 10.0, lambda at: None, is_least=True)
    hidden = look_ahead(state, lambda at: None)
    assert np.exp(hidden.mean[0]) - hidden.offset == pytest.approx(100.0, rel=0.1)
    assert choose_hypothesis(state)[0] in range(3)


def follow_day(state: LawState, steps: range, missing: range = range(0)) -> None:
    """Let a state see a day of a known shape, but for some steps."""
    for step in steps:
        if step not in missing:
            observe(state, MONDAY + step, float(3e4 * day_shape()[step % DAY]), lambda at: None)


def expect_hours(state: LawState) -> np.ndarray:
    """Return the load expected of the next two hours, as a share of the largest usual one."""
    expected = look_ahead(state, lambda at: None)
    return (np.exp(expected.mean[:24]) - expected.offset) / 3e4


def test_missing_windows_leave_no_hole_in_the_usual_day() -> None:
    state = LawState.first()
    follow_day(state, range(DAY + 144), range(100, 110))
    assert not np.isnan(state.profile).any()
    assert expect_hours(state) == pytest.approx(day_shape()[144:168], rel=0.15)


def test_after_a_gap_of_six_hours_the_usual_day_is_followed_at_the_measured_height() -> None:
    state = LawState.first()
    follow_day(state, range(3 * DAY), range(2 * DAY + 96, 2 * DAY + 168))
    assert state.seen > 2 * DAY
    assert expect_hours(state) == pytest.approx(day_shape()[:24], rel=0.1)


def test_a_day_that_is_not_known_is_begun_anew_after_a_gap() -> None:
    state = LawState.first()
    follow_day(state, range(144))
    observe(state, MONDAY + DAY, 50.0, lambda at: None)
    assert state.seen == 1
    assert np.isfinite(look_ahead(state, lambda at: None).mean).all()
