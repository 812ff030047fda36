"""The comparison of the forecast: its reference methods on real computations, its verdicts and its tables."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from benchmarks.forecasting import comparison
from benchmarks.forecasting.references import (
    MissingLibraryError,
    forecast_lightgbm,
    forecast_mstl_autoets,
    lag_features,
)
from benchmarks.forecasting.traces import last_third, pinball, read_trace, select_after
from cli.arguments import UsageError
from models.forecasting import QUANTILES, Calendar
from tools.marked_page import put_between_marks

CALENDAR = Calendar(1_772_409_600, 1800)  # Monday 2026-03-02, UTC
DAY = CALENDAR.day


def load(days: int) -> np.ndarray:
    bins = np.arange(days * DAY)
    noise = np.random.default_rng(0).normal(0, 50, len(bins))
    return np.asarray(1000 + 500 * np.sin(2 * np.pi * bins / DAY) + noise)


def test_lightgbm_is_calibrated_on_a_stationary_load_and_beats_the_day_before() -> None:
    rates = load(18)
    origins = last_third(rates, CALENDAR, 6)[:-4]
    made = forecast_lightgbm(rates, CALENDAR, origins, DAY)
    assert made.shape == (len(origins), len(QUANTILES), DAY)
    observed = select_after(rates, origins, DAY)
    assert 0.8 < (observed <= made[:, QUANTILES.index(0.9)]).mean() < 0.96
    repeated = comparison.repeat_day_before(rates, origins, CALENDAR)
    assert pinball(observed, made[:, QUANTILES.index(0.5)], 0.5) < 0.9 * pinball(observed, repeated, 0.5)


def test_lightgbm_knows_nothing_after_an_origin_and_nothing_from_two_days() -> None:
    rates = load(9)
    origins = np.array([2 * DAY, 8 * DAY + 7])
    other = rates.copy()
    other[8 * DAY + 7 :] *= 4
    first, second = (forecast_lightgbm(values, CALENDAR, origins, DAY) for values in (rates, other))
    np.testing.assert_array_equal(first, second)
    assert np.isnan(first[0]).all()
    assert np.isfinite(first[1]).all()


def test_lag_features_are_shares_of_the_day_before_and_stop_at_the_origin() -> None:
    rates = np.repeat(np.arange(1.0, 17.0), DAY)  # n on the n-th day
    features, level = lag_features(rates, CALENDAR, np.array([15 * DAY]), np.arange(DAY))
    assert level.tolist() == [15.0]
    names = dict(enumerate(features[0, 5]))
    assert names[0] == 2.5  # hours of lead
    assert names[1] == 2.75  # the middle of the bin, hours
    assert names[2] == 1  # Tuesday
    recent, like = features[0, 5, 3:8], features[0, 5, 8:10]
    np.testing.assert_allclose(recent, 1.0)
    np.testing.assert_allclose(like, [14 / 15, 8 / 15])
    np.testing.assert_allclose(features[0, 5, 10:], np.repeat([15, 14, 9, 2], 2) / 15)


def test_mstl_continues_day_and_week_or_says_what_to_install() -> None:
    rates = load(16)
    origins = np.array([DAY, 15 * DAY])
    if find_spec("statsforecast") is None:
        with pytest.raises(MissingLibraryError, match="pip install statsforecast"):
            forecast_mstl_autoets(rates, CALENDAR, origins, DAY)
        return
    made = forecast_mstl_autoets(rates, CALENDAR, origins, DAY)
    assert np.isnan(made[0]).all()
    assert (np.diff(made[1], axis=0) >= 0).all()
    assert np.abs(made[1, QUANTILES.index(0.5)] - rates[15 * DAY :]).mean() < 100


def test_origins_are_as_far_apart_as_asked() -> None:
    assert np.unique(np.diff(last_third(load(9), CALENDAR, 6))).tolist() == [12]
    assert np.unique(np.diff(last_third(load(9), CALENDAR))).tolist() == [2]


def row(coverage: float, q50: float, q90: float) -> dict[str, float]:
    return {"coverage_q90": coverage, "pinball_q50": q50, "pinball_q90": q90}


@pytest.mark.parametrize(
    ("ours", "expected"),
    [
        (row(0.9, 1.0, 0.5), "all"),
        (row(0.8796, 1.0, 0.5), "all"),  # 88.0% as it is shown
        (row(0.8794, 1.0, 0.5), "not coverage"),
        (row(0.921, 1.1, 0.5), "not coverage, pinball q50"),
        (row(0.9, 1.0, 0.51), "not pinball q90"),
    ],
)
def test_ours_is_held_to_the_smaller_loss_of_the_others(ours: dict[str, float], expected: str) -> None:
    assert comparison.judge(ours, [row(0.5, 1.0, 0.6), row(0.5, 2.0, 0.5)]) == expected


def test_every_trace_is_on_one_side() -> None:
    tuning, test = map(comparison.list_traces, comparison.SIDES)
    assert {path.name.split(".")[0] for path in comparison.TRACES.glob("*.csv.gz")} <= {*tuning, *test}
    assert not {*tuning} & {*test}


def test_the_last_days_of_a_trace_keep_their_times() -> None:
    rates, calendar = comparison.cut_days(np.arange(10.0 * DAY), CALENDAR, 3)
    assert rates[0] == 7 * DAY
    assert calendar.start_s == CALENDAR.start_s + 7 * 86_400
    assert comparison.cut_days(rates, calendar, 4)[1] == calendar


def test_a_run_on_a_trace_writes_tables_between_the_marks_and_keeps_other_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    name, rates, _ = read_trace(comparison.TRACES / "nab_nyc_taxi_30min.csv.gz")
    monkeypatch.setattr(comparison, "list_traces", lambda side: [name] if side == "test" else [])
    retained, page = tmp_path / "kept.json", tmp_path / "page.md"
    page.write_text(f"# Before\n{comparison.BEGIN}\nold\n{comparison.END}\nAfter\n", encoding="utf-8")
    arguments = ["--side", "test", "--last-days", "9", "--origin-every-h", "12", "--json", str(retained)]
    arguments += ["--table", str(tmp_path / "table.md"), "--page", str(page)]
    for method in (comparison.OURS, "lightgbm"):
        assert comparison.main([*arguments, "--methods", method]) == 0
    result = json.loads(retained.read_text(encoding="utf-8"))
    assert [one["method"] for one in result["last_third"]] == [comparison.OURS, "lightgbm"]
    assert [one["day"] for one in result["first_days"]] == list(comparison.FIRST_DAYS)
    written = page.read_text(encoding="utf-8")
    assert written.startswith("# Before\n")
    assert written.endswith("After\n")
    assert "old" not in written
    ours, other = result["last_third"]
    assert f"| {ours['pinball_q90']:.3f} | {other['pinball_q90']:.3f} | - |" in written
    assert len(rates) > 9 * DAY  # it was cut
    with pytest.raises(SystemExit):
        comparison.main([*arguments, "--last-days", "10", "--methods"])
    assert "was made with" in capsys.readouterr().err


def test_a_page_without_marks_is_refused() -> None:
    with pytest.raises(UsageError, match="begin"):
        put_between_marks("# A page\n", (comparison.BEGIN, comparison.END), "part")
