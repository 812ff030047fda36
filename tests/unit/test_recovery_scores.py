"""Recoveries as they were to be expected: with the mix of sources, the backlog and the load of the event itself."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

from lab.replay.train_alone import fit_jobs
from models.bundle.fleet_bundle import FleetBundle
from models.bundle.job_models import LatencyModel
from models.training.job_facts import JobEstimates
from models.training.job_windows import KnownOperator
from models.training.operator_fits import OperatorPoints
from spark_jobs.train.build_bundle import assemble
from spark_jobs.train.recovery_scores import predict_batch

JOB = ("eu", "shop")
GRAPH = (KnownOperator("clicks", (), 128), KnownOperator("score", ("clicks",), 128), KnownOperator("views", (), 128))
LAG_S = 5.0
DOWN_S = 40.0
CAPACITY_PER_S = 1000.0  # of `score`, for records of `clicks` alone


@pytest.fixture
def bundle() -> FleetBundle:
    windows = tuple(np.full(5, per_s) for per_s in (0.5 * CAPACITY_PER_S, CAPACITY_PER_S))
    points = OperatorPoints(JOB, "score", np.array([2, 4]), windows, np.full(2, 0.8), False, 4, 128.0, 8)
    names = [one.name for one in GRAPH]
    none = LatencyModel(np.zeros(0), np.zeros(0))
    facts = JobEstimates(JOB, {}, (points,), dict.fromkeys(names, 1.0), {}, none, {}, 300.0)
    return assemble("v1", [facts], fit_jobs([facts.points]), pd.DataFrame([event()]), {}).bundle


def event(**changed: Any) -> dict[str, Any]:
    """A rescale at 600 records/s of clicks and 200 of views, which was down for 40 s; without counted records."""
    usual = {
        "cluster": "eu",
        "job": "shop",
        "kind": "rescale",
        "cause_kind": "rescale",
        "started_at": pd.Timestamp("2026-01-01", tz="UTC"),
        "parallelism_after": {"score": 4},
        "downtime_s": DOWN_S,
        "downtime_before_s": DOWN_S,
        "downtimes_before": 20.0,
        "catch_up_s": 120.0,
        "unseen_s": 60.0,
        "emitted_records": np.nan,
        "pending_records": np.nan,
        "pending_before_records": np.nan,
        "load_per_s": 800.0,
        "load_after_per_s": 800.0,
        "source_load_per_s": {"clicks": 600.0, "views": 200.0},
        "checkpoint_age_s": 30.0,
        "state_size_bytes": 1e6,
        "capacity_after_per_s": 1300.0,
        "graph": GRAPH,
        "source_rates": {"clicks": 500.0, "views": 500.0},
    }
    return usual | changed


def predicted(bundle: FleetBundle, **changed: Any) -> pd.Series:
    return predict_batch(bundle, pd.DataFrame([event(**changed)]), LAG_S).iloc[0]


def recovery_s(load_per_s: float, capacity_per_s: float, behind_s: float = 0.0) -> float:
    return DOWN_S + load_per_s * (DOWN_S + behind_s - LAG_S) / (capacity_per_s - load_per_s)


def test_the_mix_of_sources_is_the_events_own(bundle: FleetBundle) -> None:
    own = predicted(bundle)["predicted_s"]
    usual = predicted(bundle, source_load_per_s=None)["predicted_s"]
    assert own == pytest.approx(recovery_s(800.0, CAPACITY_PER_S / 0.75), rel=0.03)
    assert usual == pytest.approx(recovery_s(800.0, CAPACITY_PER_S / 0.5), rel=0.03)


def test_what_waited_before_the_stop_has_to_be_processed_too(bundle: FleetBundle) -> None:
    result = predicted(bundle, pending_before_records=8000.0)["predicted_s"]
    assert result == pytest.approx(recovery_s(800.0, CAPACITY_PER_S / 0.75, behind_s=10.0), rel=0.03)


def test_the_load_is_counted_where_the_records_are_known(bundle: FleetBundle) -> None:
    counted = {"emitted_records": 900.0 * 160.0, "pending_records": 0.0, "pending_before_records": 0.0}
    result = predicted(bundle, **counted)
    assert result["predicted_s"] == pytest.approx(recovery_s(900.0, CAPACITY_PER_S / 0.75), rel=0.03)
    assert result["resolution_s"] == 0.0
    assert result["seen_s"] == pytest.approx(recovery_s(900.0, 1300.0), rel=0.01)
    upgrade = predicted(bundle, cause_kind="upgrade", kind="restart", **counted)
    assert upgrade["predicted_s"] == pytest.approx(recovery_s(800.0, CAPACITY_PER_S / 0.75), rel=0.03)


def test_a_failure_reads_again_what_came_since_its_checkpoint(bundle: FleetBundle) -> None:
    lost = {"kind": "restart", "cause_kind": "taskmanager_lost"}
    expected = recovery_s(800.0, CAPACITY_PER_S / 0.75, behind_s=30.0)
    assert predicted(bundle, **lost)["predicted_s"] == pytest.approx(expected, rel=0.03)
    counted = {"emitted_records": 800.0 * 190.0, "pending_records": 0.0}
    assert predicted(bundle, **lost, **counted)["predicted_s"] == pytest.approx(expected, rel=0.03)
    unknown = predicted(bundle, **lost, checkpoint_age_s=None)["predicted_s"]
    assert unknown > predicted(bundle)["predicted_s"]


def test_an_unknown_job_is_not_predicted_and_few_downtimes_widen_the_interval(bundle: FleetBundle) -> None:
    assert np.isnan(predicted(bundle, job="other")["predicted_s"])
    assert predicted(bundle, downtimes_before=0.0)["sd_log"] > 1.5 * predicted(bundle)["sd_log"]
