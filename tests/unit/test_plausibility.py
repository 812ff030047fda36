"""A figure of a single poll raises no forecast, and moves no job by more than a share; two that agree are believed."""

from __future__ import annotations

import numpy as np
import pytest

from models.policies.observations import MEASURES, Observations
from models.polling.plausibility import agree, find_single_spikes, limit_rise


def series(*changes: tuple[int, float]) -> np.ndarray:
    rates = 1000.0 + 100.0 * np.sin(np.arange(288) / 30.0)
    for place, rate in changes:
        rates[place] = rate
    return rates


@pytest.mark.parametrize("place", [0, 100, 287])
@pytest.mark.parametrize("rate", [8531.0, 1e12])
def test_a_rate_that_stands_alone_is_found(place: int, rate: float) -> None:
    result = find_single_spikes(series((place, rate))[None])
    assert np.flatnonzero(result[0]).tolist() == [place]


def test_rates_in_a_row_and_heights_that_recur_are_loads() -> None:
    assert not find_single_spikes(series((100, 9000.0), (101, 8000.0))[None]).any()
    assert not find_single_spikes(series((50, 9000.0), (100, 8000.0), (150, 9500.0))[None]).any()
    assert not find_single_spikes(series((50, 2500.0))[None]).any()
    sporadic = np.zeros((1, 100))
    sporadic[0, ::10] = 500.0
    assert not find_single_spikes(sporadic).any()


def test_gaps_do_not_hide_a_spike() -> None:
    rates = series((100, 1e12), (99, np.nan), (101, np.nan))
    assert np.flatnonzero(find_single_spikes(rates[None])[0]).tolist() == [100]


def two(rates: tuple[float, float], ages_ms: tuple[float, float] = (0.0, 0.0), disturbed: bool = False) -> Observations:
    measured = np.array(rates)[:, None]
    return Observations(
        window_start_s=np.array([0, 60]),
        window_s=60,
        parallelism=np.ones((2, 1), np.int64),
        disturbed=np.array([disturbed, False]),
        **dict.fromkeys(MEASURES, measured) | {"latency_ms": np.array(ages_ms)[:, None]},
    )


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        (two((1000.0, 1100.0)), True),
        (two((1000.0, 1e10)), False),
        (two((1e10, 1000.0)), False),
        (two((1000.0, 1000.0), (0.0, 1e12)), False),  # a backlog of 1e12 records within a minute
        (two((1000.0, 1000.0), (300_000.0, 420_000.0)), True),
        (two((1000.0, 1000.0), disturbed=True), False),
    ],
)
@pytest.mark.covers("harm odd-poll")
def test_two_windows_agree_or_not(seen: Observations, expected: bool) -> None:
    assert agree(seen, [0]) is expected


def test_a_rise_is_limited_to_a_share_and_a_fall_is_not() -> None:
    assert limit_rise({"a": 64, "b": 1, "c": 9}, {"a": 4, "b": 3, "c": 1}, 1.0) == {"a": 8, "b": 1, "c": 2}
    assert limit_rise({"a": 64}, {"a": 4}, 0.1) == {"a": 5}
