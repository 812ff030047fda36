"""Events that people know of: settings, forecasts, and the law of the load."""

from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest

from include.settings import SettingsError, check_settings
from lab.replay.forecasts import raise_forecast
from models.forecasting.known_events import KnownEvent, find_event_bins, list_events, raise_rates
from models.policies.tidewise.programme_memory import PlannedLoad
from models.programme.event_path import EventPath, raise_outlook
from models.programme.load_outlook import LoadOutlook, LoadReference
from models.programme.load_paths import STEP_S
from models.scheduling.demand import LEVELS, MEDIAN, SourceForecast

FRIDAY = {"starts_at": "2026-11-27T08:00:00Z", "ends_at": "2026-11-27T20:00:00Z"}


def settings(**events: Any) -> Any:
    return check_settings({"clusters": {"prod": {}}, "events": events})


def test_an_event_has_a_range_around_its_factor() -> None:
    event = settings(sale={**FRIDAY, "jobs": ["prod/orders"], "factor": 3.0}).events["sale"]
    assert event.range == (2.4, 3.0, 3.75)
    given = settings(sale={**FRIDAY, "jobs": ["prod/orders"], "factor": 3.0, "low": 2.0, "high": 3.5}).events["sale"]
    assert given.range == (2.0, 3.0, 3.5)


@pytest.mark.parametrize(
    ("event", "says"),
    [
        ({"jobs": ["prod/orders"]}, "needs a factor or a rate_per_s"),
        ({"jobs": ["prod/orders"], "factor": 2, "rate_per_s": 5}, "needs a factor or a rate_per_s"),
        ({"factor": 2.0}, "names neither jobs nor sources"),
        ({"jobs": ["prod/orders"], "rate_per_s": 900.0}, "rate_per_s is of a source"),
        ({"jobs": ["prod/orders"], "sources": {"prod/orders": ["a"]}, "factor": 2.0}, "in jobs and in sources"),
        ({"jobs": ["prod/orders"], "factor": 2.0, "low": 2.5}, "do not enclose 2"),
        ({"jobs": ["prod/orders"], "factor": 2.0, "starts_at": "2026-11-27T08:00:00"}, "has no time zone"),
        ({"jobs": ["prod/orders"], "factor": 2.0, "ends_at": "2026-11-27T07:00:00Z"}, "no later than starts_at"),
        ({"jobs": ["prdo/orders"], "factor": 2.0}, 'there is no cluster "prdo"'),
        ({"jobs": ["orders"], "factor": 2.0}, 'must be "cluster/job"'),
    ],
)
def test_an_event_that_cannot_be_used_is_refused_by_name(event: dict[str, Any], says: str) -> None:
    with pytest.raises(SettingsError, match=r"events\.sale") as refused:
        settings(sale={**FRIDAY, **event})
    assert says in str(refused.value)


def test_two_events_of_one_source_at_one_time_are_refused_and_of_two_sources_are_not() -> None:
    sale = {**FRIDAY, "jobs": ["prod/orders"], "factor": 3.0}
    late = {**sale, "starts_at": "2026-11-27T18:00:00+01:00", "ends_at": "2026-11-28T00:00:00Z"}
    with pytest.raises(SettingsError, match=r"events\.sale and events\.night both say") as refused:
        settings(sale=sale, night=late)
    assert "2026-11-27T18:00:00+01:00 to 2026-11-27T20:00:00+00:00" in str(refused.value)
    settings(sale=sale, night={**late, "jobs": ["prod/payments"]})
    after = {**sale, "starts_at": "2026-11-27T20:00:00Z", "ends_at": "2026-11-28T00:00:00Z"}
    settings(sale=sale, night=after)


def test_events_are_those_of_a_source_by_time() -> None:
    known = settings(
        b={**FRIDAY, "sources": {"prod/orders": ["Source: web"]}, "rate_per_s": 900.0},
        a={**FRIDAY, "starts_at": "2026-11-20T08:00:00Z", "ends_at": "2026-11-20T09:00:00Z", "factor": 2}
        | {"jobs": ["prod/orders"]},
    ).events
    assert [one.name for one in list_events(known, "prod/orders", "Source: web")] == ["a", "b"]
    assert [one.name for one in list_events(known, "prod/orders", "Source: shop")] == ["a"]
    assert list_events(known, "prod/payments", "Source: web") == ()
    (_, web) = list_events(known, "prod/orders", "Source: web")
    assert (web.is_rate, web.starts_s) == (True, datetime(2026, 11, 27, 8, tzinfo=UTC).timestamp())


def rates(bins: int) -> np.ndarray:
    return np.array([80.0, 100.0, 130.0, 140.0])[:, None] * np.ones((1, bins))


def test_a_factor_raises_the_median_and_widens_around_it() -> None:
    event = KnownEvent("sale", 600.0, 1800.0, 2.0, 3.0, 4.5)
    raised = raise_rates(rates(4), [event], 0.0, 600.0)
    assert raised.names == ("", "sale", "sale", "")
    assert raised.factor.tolist() == [1.0, 3.0, 3.0, 1.0]
    assert raised.quantiles[:, [0, 3]].tolist() == rates(2).tolist()
    low, median, high, highest = raised.quantiles[:, 1]
    assert median == pytest.approx(300.0)
    assert low < 300 * 2 / 3 < high < highest  # wider than the event's own range
    assert high > 300 * 1.5
    assert (np.diff(raised.quantiles, axis=0) >= 0).all()


def test_a_bin_of_which_an_event_covers_half_gets_half_of_it() -> None:
    raised = raise_rates(rates(1), [KnownEvent("sale", 300.0, 900.0, 3.0, 3.0, 3.0)], 0.0, 600.0)
    assert raised.factor.tolist() == [2.0]
    assert raised.spread.tolist() == [0.0]


def test_a_rate_stands_whatever_the_forecast_says() -> None:
    event = KnownEvent("replay", 0.0, 600.0, 800.0, 1000.0, 1250.0, is_rate=True)
    for base in (rates(1), 0.0 * rates(1)):
        made = raise_rates(base, [event], 0.0, 600.0)
        assert made.quantiles[:3, 0] == pytest.approx([800.0, 1000.0, 1250.0])


def test_no_event_leaves_a_forecast_as_it_is_and_history_keeps_its_windows() -> None:
    forecast = SourceForecast(0, 600, {"a": rates(3)})
    assert raise_forecast(forecast, {"a": [KnownEvent("sale", 9000.0, 9600.0, 2.0, 2.0, 2.0)]}) is forecast
    assert find_event_bins([KnownEvent("sale", 700.0, 1200.0, 2.0, 2.0, 2.0)], 0.0, 600.0, 4).tolist() == [
        False,
        True,
        False,
        False,
    ]


def planned() -> PlannedLoad:
    """A day of 100 and 50 records/s, of which one source has an event of 3x from step 10 to 19."""
    event = KnownEvent("sale", 10.0 * STEP_S, 20.0 * STEP_S, 2.0, 3.0, 4.5)
    base = SourceForecast(0, STEP_S, {"a": rates(300), "b": rates(300) / 2})
    return PlannedLoad.of(raise_forecast(base, {"a": [event]}))


def test_the_programme_keeps_a_forecast_without_its_events_and_the_events_beside_it() -> None:
    load = planned()
    total = load.total(0, 30)
    assert total is not None
    assert total == pytest.approx(np.full(30, 150.0), rel=2e-3)
    assert load.read(12, 1)["a"] == pytest.approx([300.0], rel=2e-3)
    change = load.find_change(10)
    assert change.factor == pytest.approx(350 / 150, rel=2e-3)
    assert change.is_edge
    assert not load.find_change(11).is_edge
    assert load.find_change(20).is_edge
    assert load.find_change(25).factor == 1.0
    assert PlannedLoad.of(SourceForecast(0, STEP_S, {"a": rates(9)})).read_events(0, 5) is None


def test_an_event_is_prepared_for_a_step_before_and_kept_a_step_after() -> None:
    path = planned().read_events(5, 20)
    assert path is not None
    raised = path.factor > 1.5
    assert np.flatnonzero(raised).tolist() == list(range(4, 16))  # steps 9 to 20


def outlook(steps: int) -> LoadOutlook:
    level, sd = np.log(np.full(steps, 110.0)), np.full(steps, 0.05)
    return LoadOutlook(level, sd, 0.02, 1.0, 1.0, 10.0, (0, 0, 8, 0, 0, 0, 0, 0), LoadReference("", 0.0), 0.1)


def test_the_outlook_of_the_load_has_the_event_and_is_less_sure_of_it() -> None:
    path = EventPath(np.array([1.0, 1.0, 3.0, 3.0]), np.array([0.0, 0.0, 0.3, 0.3]))
    raised = raise_outlook(outlook(3), path, newest=0)
    assert np.exp(raised.mean) - 10.0 == pytest.approx([100.0, 300.0, 300.0])
    assert raised.sd[0] == pytest.approx(0.05)
    assert raised.sd[1] > 0.25
    assert "3 times as high" in raised.event
    inside = EventPath(np.full(4, 3.0), np.full(4, 0.3))
    assert raise_outlook(outlook(3), inside, newest=0).sd.max() < 0.06  # the measured height tells
    assert raise_outlook(outlook(3), None, newest=0).event == ""


def test_levels_of_an_event_are_those_of_a_forecast() -> None:
    levels = KnownEvent("sale", 0.0, 1.0, 2.0, 3.0, 4.5).levels
    assert len(levels) == len(LEVELS)
    assert levels[MEDIAN] == 3.0
    assert levels[-1] > 4.5
