"""The parts of training that need no Spark: batches of rows, the bundle, scores and the gate."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from benchmarks.pipeline.packed_models import pack_models
from lab.replay.train_alone import fit_jobs
from models.bundle.fleet_bundle import FleetBundle, JobKey
from models.bundle.job_models import LatencyModel
from models.capacity.interval_calibration import SupportRegion
from models.training.job_facts import JobEstimates
from models.training.job_windows import KnownOperator
from models.training.operator_fits import OperatorPoints, fit_operators
from spark_jobs.train.build_bundle import assemble
from spark_jobs.train.fits import count_batches, fit_batch
from spark_jobs.train.holdout_scores import capacity_at
from spark_jobs.train.recovery_scores import recovery_errors
from spark_jobs.train.training_plots import capacity_figure, operator_table, recovery_figure

KEYS = ["cluster", "job", "operator"]


NO_LATENCY = LatencyModel(np.zeros(0), np.zeros(0))
EU_RIDES, EU_ORDERS = ("eu", "rides"), ("eu", "orders")


def points(job: JobKey, operator: str, seen: list[int], slope: float, top: int = 16) -> OperatorPoints:
    at = np.array(seen)
    mean = slope * at / (1 + 0.02 * (at - 1))
    windows = tuple(one * (1 + 0.03 * np.linspace(-1.0, 1.0, 5)) for one in mean)
    return OperatorPoints(job, operator, at, windows, np.full(len(at), 0.8), False, max(seen), 128.0, top)


@pytest.fixture
def batch() -> list[OperatorPoints]:
    return [
        points(EU_ORDERS, "parse", [1, 2, 3, 6, 12], 50.0, top=20),
        points(EU_ORDERS, "sink", [3], 70.0),
        points(EU_RIDES, "map", [2, 4, 8], 100.0),
    ]


def events() -> pd.DataFrame:
    return pd.DataFrame({
        "cluster": "eu", "job": ["orders"] * 4 + ["gone"],
        "kind": ["rescale", "rescale", "restart", "rescale", "rescale"],
        "cause_kind": ["rescale", "rescale", "job_failure", "rescale", "rescale"], "state_size_bytes": 1e6,
        "started_at": pd.date_range("2026-01-01", periods=5, tz="UTC"), "downtime_s": [20.0, 22, 80, 18, 500],
        "checkpoint_age_s": [10.0, np.nan, 12, 8, 10],
    })  # fmt: skip


def assembled(batch: list[OperatorPoints]) -> FleetBundle:
    edges = {("parse", "sink"): 0.25, ("source", "parse"): float("nan")}
    latency = LatencyModel(np.array([0.2, 0.9]), np.array([5.0, 50.0]))
    jobs = [
        JobEstimates(EU_ORDERS, {}, tuple(batch[:2]), {"parse": 0.5}, edges, NO_LATENCY, {}, 300.0),
        JobEstimates(EU_RIDES, {}, tuple(batch[2:]), {"map": 2.0}, {}, latency, {}, 300.0),
    ]
    graph = {EU_ORDERS: (KnownOperator("source", (), 128), KnownOperator("parse", ("source",), 128))}
    jobs[0] = replace(jobs[0], kinds={"source": "source", "parse": "map"})
    return assemble("v1", jobs, fit_jobs([one.points for one in jobs]), events(), graph).bundle


def test_a_batch_gives_one_fit_per_operator(batch: list[OperatorPoints]) -> None:
    result = fit_operators(batch)
    assert [len(one.mean_per_s) for one in result] == [20, 16, 16]
    assert result[0].observed.tolist() == [1, 2, 3, 6, 12]
    assert [bool(np.isnan(one.length_scale)) for one in result] == [False, True, False]
    assert [len(one.left_out) for one in result] == [3, 0, 2]  # ends stay, and what is left has two points
    assert result[0].left_out_place.tolist() == [SupportRegion.BETWEEN, SupportRegion.BETWEEN, SupportRegion.BEYOND]


def test_one_operator_that_fails_spoils_no_other(batch: list[OperatorPoints]) -> None:
    broken = replace(batch[1], capacities_per_s=(np.zeros(5),))
    fitted = fit_batch([batch[0], broken, batch[2]], leaves_out=True)
    assert [one.operator for one, _ in fitted] == ["parse", "map"]


def test_one_wild_window_moves_no_curve(batch: list[OperatorPoints]) -> None:
    wild = [
        replace(one, capacities_per_s=tuple(np.append(each[:4], 3 * each[4]) for each in one.capacities_per_s))
        for one in batch
    ]
    result, usual = fit_operators(wild), fit_operators(batch)
    np.testing.assert_allclose(result[0].mean_per_s, usual[0].mean_per_s, rtol=0.03)


def test_bundle_knows_every_operator_and_borrows_what_a_job_lacks(batch: list[OperatorPoints]) -> None:
    bundle = assembled(batch)
    orders, rides = bundle.for_job("eu", "orders"), bundle.for_job("eu", "rides")
    assert list(orders.selectivity) == ["parse", "sink", "source"]
    assert orders.selectivity == {"parse": 0.5, "sink": 1.0, "source": 1.0}
    assert orders.edges == pytest.approx({("parse", "sink"): 0.25, ("source", "parse"): float("nan")}, nan_ok=True)
    assert rides.edges == {}
    assert set(orders.capacity) == {"parse", "sink"}  # of the source nothing was measured
    assert orders.latency.latency_ms(0.9) == pytest.approx(rides.latency.latency_ms(0.9))
    assert (orders.recovery.events, rides.recovery.events) == (4, 0)
    assert orders.recovery.downtime_rescale_s < rides.recovery.downtime_rescale_s * 1.1 < 40
    assert orders.recovery.downtime_restart_s > orders.recovery.downtime_rescale_s
    sink = orders.capacity["sink"]
    share = sink.sd_per_s / sink.mean_per_s
    assert share[2] == share.min()
    assert share[15] > 0.1
    assert FleetBundle.from_bytes(bundle.to_bytes()).for_job("eu", "rides").capacity["map"].slope_per_s > 0


def test_capacities_are_looked_up_and_unknown_ones_are_nan(batch: list[OperatorPoints]) -> None:
    bundle = assembled(batch)
    asked = pd.DataFrame(
        [
            ("eu", "orders", "parse", 12),
            ("eu", "orders", "parse", 21),
            ("eu", "orders", "source", 1),
            ("us", "x", "y", 1),
        ],
        columns=[*KEYS, "parallelism"],
    ).assign(cluster="eu")
    mean, widths = capacity_at(bundle, asked)
    curve = bundle.for_job("eu", "orders").capacity["parse"]
    assert mean[0] == curve.mean_per_s[11]
    assert widths[0, 1] > widths[0, 0] > 1.28 * curve.sd_per_s[11]
    wider = replace(bundle, arrays={**bundle.arrays, "interval_scale": np.array([[2.0, 3.0], [1.0, 1.0], [1.0, 1.0]])})
    np.testing.assert_allclose(capacity_at(wider, asked)[1][0], widths[0] * [2.0, 3.0])
    calibrated = wider.for_job("eu", "orders").capacity["parse"]
    assert calibrated.sd_per_s[11] == pytest.approx(2 * curve.sd_per_s[11])
    assert calibrated.sd_per_s[9] == curve.sd_per_s[9]  # 10 was not seen
    assert calibrated.tail_ratio is not None
    assert calibrated.tail_ratio[[11, 9]].tolist() == [1.5, 1.0]
    assert np.isnan(mean[1:]).all()
    assert np.isnan(capacity_at(None, asked)[0]).all()


def test_recovery_is_scored_to_the_resolution_of_what_was_seen() -> None:
    observed = pd.DataFrame({
        "seen_s": [400.0, 400.0, 400.0, np.nan, 400.0],
        "predicted_s": [150.0, 500.0, 50.0, 10.0, np.inf],
        "resolution_s": 300.0,
    })  # fmt: skip
    np.testing.assert_allclose(recovery_errors(observed), [0.0, 0.25, 0.125, np.nan, np.nan])


def test_batches_keep_every_slot_busy_and_no_task_without_work() -> None:
    assert count_batches(80, 4) == 4
    assert count_batches(2, 8) == 2
    assert count_batches(8000, 4) == 32


def test_pictures_and_table_are_made_even_of_nothing(batch: list[OperatorPoints]) -> None:
    bundle = assembled(batch)
    figure = capacity_figure(bundle)
    assert [axis.get_title() for axis in figure.axes if axis.get_visible()] == [
        "orders\nparse",
        "rides\nmap",
        "orders\nsink",
    ]
    assert len(capacity_figure(pack_models("v0", {})).axes) == 2
    none = pd.DataFrame(columns=["kind", "seen_s", "predicted_s", "resolution_s", "factor_80", "sd_log"], dtype=float)
    assert recovery_figure(none).axes[0].get_xlabel().startswith("measured recovery")
    known = pd.DataFrame(bundle.operators(), columns=KEYS).assign(
        selectivity=1.0, slope_per_s=1.0, length_scale=1.0, noise_share=0.1, idle=False, at_bound=False
    )
    scores = pd.DataFrame([("eu", "rides", "map", 10, 0.5)], columns=[*KEYS, "held", "error"])
    table = operator_table(bundle, known, scores).set_index("operator")
    assert table.loc["map", "held_out_error"] == pytest.approx(0.05)
    assert table.loc["sink", "capacity_at_observed"].startswith("3: 20")
    assert table.loc["source", "capacity_at_observed"] == ""
