"""A pin that a person sets on the page, beside pins of the settings, which go before."""

from __future__ import annotations

from typing import Any

import pytest

from controller.limits.limits_of_job import LimitsReader
from include.control.pins import ActivePins, PersonalPin
from models.control.limits import Limits
from tests.unit.test_limits_of_job import IDS, NOW_S, settings_of

PERSONAL = PersonalPin("live", "orders", 3, "ada", "release day")


def limits_of(pin: Any = None, job: str = "orders") -> Limits:
    """Return limits under a person's pin of ``orders`` and one of the settings."""
    settings = settings_of({"jobs": {} if pin is None else {"live/orders": {"pin": pin}}})
    pins = ActivePins((PERSONAL,))
    reader = LimitsReader(lambda: settings, lambda *_: [], lambda _: (), lambda: NOW_S, pins=lambda _: pins)
    return reader.read().limits_of("live", job, IDS)


@pytest.mark.parametrize(
    ("roles", "counts"),
    [
        ({}, True),
        ({"hold": ["ada"], "approve": ["boss"]}, False),
        ({"hold": ["ada"], "approve": ["boss"], "admin": ["ada"]}, True),
        ({"approve": ["ada"]}, True),
        ({"approve": ["ada"], "rescale": ["boss"]}, False),
        ({"approve": ["boss"], "rescale": ["ada"]}, True),
        ({"approve": ["boss"], "rescale": []}, True),
    ],
)
@pytest.mark.covers("harm hold-and-rescale")
def test_a_pin_of_somebody_who_may_not_rescale_holds_the_job_where_it_is(roles: dict[str, Any], counts: bool) -> None:
    settings = settings_of({}, roles=roles)
    pins = ActivePins((PERSONAL,))
    reader = LimitsReader(lambda: settings, lambda *_: [], lambda _: (), lambda: NOW_S, pins=lambda _: pins)
    limits = reader.read().limits_of("live", "orders", IDS)
    assert (limits.pin_all, limits.is_held) == ((3, False) if counts else (None, True))
    assert counts or "pinned by ada, whom roles.rescale does not name" in limits.hold_reason


def test_a_person_s_pin_is_of_its_own_job() -> None:
    assert (limits_of().pin, limits_of().pin_all) == (None, 3)
    assert limits_of(job="rides").pin_all is None


@pytest.mark.parametrize(("pin", "expected"), [(5, (None, 5)), ({"source": 2, "sink": 4}, ({"v1": 2, "v2": 4}, None))])
def test_a_pin_of_the_settings_goes_before(pin: Any, expected: tuple[Any, Any]) -> None:
    limits = limits_of(pin)
    assert (limits.pin, limits.pin_all) == expected
