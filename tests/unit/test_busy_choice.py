"""Capacity points of operators whose capacity depends on load, and the windows that judge no model."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from include.settings import Training
from models.training.busy_choice import choose_busy
from models.training.job_tests import list_tests
from models.training.job_windows import TrainingHistory, TrainingWindows
from models.training.operator_fits import OperatorPoints, fit_operators, list_points
from spark_jobs.train.job_tables import read_windows

START_S = 1_780_000_000
Rows = dict[str, list[tuple[int, float, float]]]


def windows(operators: Rows) -> TrainingWindows:
    """Windows of one job as Spark hands them on: operator -> (parallelism, busy share, capacity) every five minutes."""
    rows = [
        {
            "operator": name,
            "start_s": START_S + 300 * number,
            "window_s": 300,
            "is_source": False,
            "parallelism": at,
            "rate_per_s": busy * per_s,
            "output_per_s": None,
            "true_rate_per_s": per_s,
            "busy_share": busy,
            "busy_share_max": None,
            "backpressured_share": None,
            "latency_ms": None,
            "is_demand": True,
        }
        for name, measured in reversed(operators.items())
        for number, (at, busy, per_s) in enumerate(measured)
    ]
    return read_windows(pa.Table.from_pylist(rows, _SCHEMA))


_SCHEMA = pa.schema(
    [("operator", pa.string()), ("start_s", pa.int64()), ("window_s", pa.int32()), ("is_source", pa.bool_())]
    + [("parallelism", pa.int32())]
    + [
        (name, pa.float64())
        for name in ("rate_per_s", "output_per_s", "true_rate_per_s", "busy_share", "busy_share_max", "latency_ms")
    ]
    + [("backpressured_share", pa.float64()), ("is_demand", pa.bool_())]
)


def history(operators: Rows) -> TrainingHistory:
    return TrainingHistory(("eu", "q"), windows(operators), (), 4)


def points(operators: Rows) -> dict[str, OperatorPoints]:
    given = history(operators)
    every = np.ones(len(given.windows.start_s), bool)
    return {one.operator: one for one in list_points(given, choose_busy(given.windows, every, Training()), Training())}


def test_rows_in_any_order_are_arrays_in_the_order_of_names_and_time() -> None:
    result = windows({"b": [(1, 0.5, 10.0)], "a": [(2, 0.5, 20.0), (3, 0.25, 30.0)]})
    assert result.operators == ("a", "b")
    assert result.start_s.tolist() == [START_S, START_S + 300]
    assert result.parallelism.tolist() == [[2, 1], [3, 0]]
    assert result.capacity_per_s[0].tolist() == [20.0, 10.0]
    assert np.isnan(result.output_per_s).all()
    assert result.window_s.tolist() == [300.0, 300.0]
    assert result.is_demand.tolist() == [[True, True], [True, False]]


def test_points_come_from_windows_that_are_busy_enough() -> None:
    result = points(
        {
            "join": [(2, 0.52, 1100.0)] * 3 + [(2, 0.2, 1900.0)] * 9,
            "window": [(3, 0.71, 784.0)] + [(3, 0.29, 500.0)] * 9 + [(2, 0.2, 300.0)],
            "sink": [(1, 0.06, 2850.0), (1, 0.03, 4000.0), (1, 0.06, 2850.0)],
        }
    )
    assert [each.tolist() for each in result["join"].capacities_per_s] == [[1100.0] * 3]
    assert [each.tolist() for each in result["window"].capacities_per_s] == [[300.0], [784.0]]
    assert [each.tolist() for each in result["sink"].capacities_per_s] == [[2850.0]]
    assert {name: one.busiest.tolist() for name, one in result.items()} == {
        "join": [0.52],
        "sink": [0.06],
        "window": [0.2, 0.71],
    }
    assert {name: one.idle for name, one in result.items()} == {"join": False, "sink": True, "window": False}
    assert {one.largest for one in result.values()} == {3}
    fits = dict(zip(result, fit_operators(list(result.values())), strict=True))
    for operator, at, true in (("join", 2, 1147.0), ("window", 3, 728.0)):
        assert fits[operator].mean_per_s[at - 1] == pytest.approx(true, rel=0.1)
    sink = fits["sink"]
    assert sink.sd_per_s[0] >= 0.5 * sink.mean_per_s[0]  # 6% busy: it may well do half of that
    assert {name: one.busiest_share for name, one in fits.items()} == {"join": 0.52, "sink": 0.06, "window": 0.71}


def test_no_model_is_judged_on_what_light_use_made_of_a_parallelism() -> None:
    given = history({"join": [(2, 0.52, 1100.0), (4, 0.16, 5000.0)], "sink": [(1, 0.06, 2850.0)]})
    held = list_tests(given, Training(holdout_share=0.99999), None).held
    names = given.windows.operators
    judged = {
        (names[place], at, idle) for place, at, idle in zip(held.operator, held.parallelism, held.idle, strict=True)
    }
    assert judged == {("join", 2, False), ("sink", 1, True)}


def test_a_window_in_which_all_operators_are_slow_at_once_is_left_out() -> None:
    calm, slow = [(2, 0.3, 1000.0)] * 9, [(2, 0.75, 400.0)] * 3
    both = points({"map": calm + slow, "join": [(2, 0.5, 600.0)] * 9 + [(2, 0.95, 290.0)] * 3})
    assert both["join"].capacities_per_s[0].tolist() == [600.0] * 5
    alone = points({"map": [(2, 0.3, 1000.0)] * 12, "join": [(2, 0.5, 600.0)] * 9 + [(2, 0.95, 290.0)] * 3})
    assert 290.0 in alone["join"].capacities_per_s[0].tolist()
