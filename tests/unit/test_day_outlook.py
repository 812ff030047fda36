"""What is expected of a whole day: the next hours by what was right an hour or two ahead, the rest by what was far."""

from __future__ import annotations

import numpy as np
import pytest

from models.programme.day_outlook import look_ahead_day, look_from
from models.programme.law_state import LawState
from models.programme.load_law import observe
from models.programme.load_outlook import look_ahead
from models.programme.load_paths import DAY, STEP_S

MONDAY = 1_700_438_400 // STEP_S


@pytest.fixture(scope="module")
def state() -> LawState:
    """Return the law after four days of a wave with a walk on top, whose next step is told best by the last one."""
    generator, result = np.random.default_rng(4), LawState.first()
    walk = np.zeros(4 * DAY)
    for step in range(1, len(walk)):
        walk[step] = 0.97 * walk[step - 1] + 0.05 * generator.standard_normal()
    loads = 3e4 * (1.5 + np.sin(2 * np.pi * np.arange(4 * DAY) / DAY)) * np.exp(walk)
    for step, load in enumerate(loads):
        observe(result, MONDAY + step, float(load), lambda at: None)
    return result


def test_its_next_two_hours_are_those_of_an_evaluation(state: LawState) -> None:
    near, day = look_ahead(state, lambda at: None), look_ahead_day(state, lambda at: None, None)
    assert (len(day.mean), len(day.sd)) == (DAY, DAY)
    assert day.mean[:24] == pytest.approx(near.mean[:24])
    assert day.sd[:24] == pytest.approx(near.sd[:24])


def test_a_day_that_is_known_is_followed_far_ahead(state: LawState) -> None:
    day = look_ahead_day(state, lambda at: None, None)
    usual = 1.5 + np.sin(2 * np.pi * np.arange(DAY) / DAY)
    expected = (np.exp(day.mean) - day.offset) / 3e4
    assert expected[48:] == pytest.approx(usual[48:], rel=0.35)
    assert (np.diff(day.sd) >= 0).all()


def test_what_is_followed_later_is_said_of_later_steps(state: LawState) -> None:
    day = look_ahead_day(state, lambda at: None, None)
    later = day.later or day.followed
    assert later.source in {"profile", "yesterday"}
    assert look_from(day, 0).followed == day.followed
    assert look_from(day, 60).followed == later
    assert len(look_from(day, 60).mean) == DAY - 60


def test_before_a_day_is_known_the_level_is_held() -> None:
    state = LawState.first()
    for step in range(100):
        observe(state, MONDAY + step, 100.0 + step, lambda at: None)
    day = look_ahead_day(state, lambda at: None, None)
    assert np.ptp(day.mean) == pytest.approx(0.0, abs=1e-9)
    assert look_from(day, 60).followed.source == ""
