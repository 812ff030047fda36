"""The forecasts that the hourly DAG would have made: from the arrivals before each full hour, with a day's horizon."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from include.settings import Forecast
from lab.replay.rolling import Rolling, roll
from models.arrays import Floats
from models.forecasting import Calendar, ForecastSettings
from models.forecasting.base import Registry
from models.forecasting.known_events import KnownEvent, find_event_bins, raise_rates
from models.scheduling.demand import SourceForecast


@dataclass(frozen=True)
class LoadForecast:
    """Forecasts of one load, the same for every row, since arrivals are counted at the broker.

    All of them are made when the first is asked for; each from nothing but what came before its origin.

    Attributes:
        sources: (S,) names.
        start_s: epoch seconds of the first bin; bins are the windows.
        rates_per_s: (W, S) mean rate of each window.
        every_s: origins are whole multiples of it, epoch seconds.
        options: of the forecast stage.
        begin: the first bin from which a forecast is wanted.
        methods: those that compete; None for all of the forecast stage.
        events: source -> events that people know of.
    """

    sources: Sequence[str]
    start_s: int
    rates_per_s: Floats
    every_s: int
    options: Forecast
    begin: int = 0
    methods: Registry | None = None
    events: Mapping[str, Sequence[KnownEvent]] = field(default_factory=dict)

    def at(self, origin: int) -> SourceForecast | None:
        """Return the forecast from the end of the first ``origin`` windows; None before there is any.

        It says so where some source has no season to learn from yet.
        """
        place = (origin - self._first) // self._distance
        if origin < 1 or place < 0:
            return None
        fallback = next((one.reason[place] for one in self._made if one.reason[place] is not None), None)
        quantiles = {name: one.quantiles[place] for name, one in zip(self.sources, self._made, strict=True)}
        start_s = self.start_s + origin * self.options.bin_s
        return raise_forecast(SourceForecast(start_s, self.options.bin_s, quantiles, fallback), self.events)

    @property
    def _distance(self) -> int:
        return self.every_s // self.options.bin_s

    @property
    def _first(self) -> int:
        """First bin from ``begin`` on that is an origin."""
        return self.begin + (-self.start_s // self.options.bin_s - self.begin) % self._distance

    @cached_property
    def _made(self) -> list[Rolling]:
        options = self.options
        calendar = Calendar(self.start_s, options.bin_s)
        settings = ForecastSettings(
            calendar.bins(options.horizon_h * 3600),
            options.backtest_origins,
            options.champion_margin,
            options.history_days,
        )
        origins = np.arange(self._first, len(self.rates_per_s) + 1, self._distance)
        return [roll(rates, calendar, origins, settings, methods=self.methods) for rates in self._list_usual()]

    def _list_usual(self) -> list[Floats]:
        """Return the (W,) rates of each source, NaN in windows of events: they tell nothing of usual days."""
        result = []
        for name, rates in zip(self.sources, self.rates_per_s.T, strict=True):
            touched = find_event_bins(self.events.get(name, ()), self.start_s, self.options.bin_s, len(rates))
            result.append(np.where(touched, np.nan, rates))
        return result


def raise_forecast(forecast: SourceForecast, events: Mapping[str, Sequence[KnownEvent]]) -> SourceForecast:
    """Return the forecast of a job with the events of its sources.

    Args:
        forecast: without them.
        events: source -> its events.
    """
    made = {
        source: raise_rates(values, events.get(source, ()), forecast.start_s, forecast.bin_s)
        for source, values in forecast.quantiles.items()
    }
    if not any((one.factor != 1.0).any() or (one.spread > 0).any() for one in made.values()):
        return forecast
    return replace(
        forecast,
        quantiles={source: one.quantiles for source, one in made.items()},
        factor={source: one.factor for source, one in made.items()},
        spread={source: one.spread for source, one in made.items()},
    )
