"""The protocol of a forecaster and the registry of those that compete for each series."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Protocol

from models.arrays import Floats, Ints
from models.forecasting.rate_history import RateHistory


class Forecaster(Protocol):
    """One method that predicts many series at once.

    Contract (``tests/unit/test_forecast_conformance.py`` holds every registered method to it): a forecast from an
    origin depends only on bins before that origin; a series' forecast does not depend on its neighbours in the batch
    unless it was constructed with a fitted model; the same input gives the same output; no input array is changed.

    Attributes:
        name: name of the method in the tables.
        min_history_days: with less history than this before an origin the prediction is NaN.
        rounds_by_batch: whether the last bits of a series' forecast depend on which others are in the batch, as those
            of a product of matrices do.
    """

    @property
    def name(self) -> str: ...  # noqa: D102

    @property
    def min_history_days(self) -> float: ...  # noqa: D102

    @property
    def rounds_by_batch(self) -> bool: ...  # noqa: D102

    def predict(self, history: RateHistory, origins: Ints, horizon: int) -> Floats:
        """Predict the middle of the rates in bins ``[origin, origin + horizon)``.

        Origins come together so that a method can share work between those of a backtest.

        Returns:
            records/s, shape (n_origins, n_series, horizon).
        """
        ...


Registry = Mapping[str, Forecaster]


def registry(forecasters: Iterable[Forecaster]) -> Registry:
    """Return the forecasters by name, in the order given: the first is the incumbent that others must beat.

    Raises:
        ValueError: there is none, or two share a name.
    """
    listed = list(forecasters)
    names = [forecaster.name for forecaster in listed]
    if not names or len(set(names)) < len(names):
        raise ValueError(f"forecasters need one name each, and there must be one; given {names}")
    return MappingProxyType(dict(zip(names, listed, strict=True)))
