"""The description of a training that MLflow shows."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np

from benchmarks.pipeline.packed_models import pack_models
from include.settings import Training
from models.bundle.fleet_bundle import FleetBundle
from models.bundle.job_models import CapacityCurve, JobModels, LatencyModel, RecoveryModel
from models.training.gate import compare, judge
from spark_jobs.train.changes import describe_changes
from spark_jobs.train.description import describe_training
from spark_jobs.train.training_data import TrainingInputs

RESULT = {
    "jobs": 14,
    "curves": 70,
    "operators": 72,
    "observations": 394_474,
    "trained_from": "2026-10-30 20:00:00",
    "model_version": "b6a1",
    "champion_before": "c7d2",
}
ERRORS, OTHERS = np.full(50, 0.0163), np.full(50, 0.0170)
HELD = compare(
    "capacity_held", "capacity error of held-back windows", ERRORS, OTHERS, against="champion", tolerance=0.02
)
AHEAD = compare("recovery", "error of recovery times ahead", OTHERS[:0], OTHERS[:0], against="champion", tolerance=0.1)
UNSEEN = compare(
    *("capacity_unseen", "capacity error of the hours ahead", ERRORS[:2], OTHERS[:2]),
    against="champion",
    tolerance=0.02,
)
MEASURED = {
    "capacity_mape": 0.0163,
    "capacity_held": 5000.0,
    "capacity_coverage_80": 0.81,
    "coverage_80_all": 0.8,
    "coverage_95_all": float("nan"),
    "recovery_mape": float("nan"),
    "recovery_events": 0.0,
    "latency_mape": 0.079,
}


def test_says_what_it_learnt_from_what_the_gate_compared_and_where_the_plots_are():
    inputs = TrainingInputs(datetime(2026, 11, 20, 20, tzinfo=UTC), None, None, [], ("", ""), {})
    gate = judge([HELD, AHEAD, UNSEEN], has_champion=True, champion_knows=1)
    source = "silver.observations, Delta version 3"
    text = describe_training(inputs, Training(), RESULT, MEASURED, gate=gate, source=source, run_id="4f2e")
    for reported in (
        "**Models** of 14 jobs in one bundle: a capacity curve for 70 of 72 operators",
        "394,474 undisturbed observation windows from 2026-10-30 20:00:00 UTC up to 2026-11-20T20:00:00Z",
        "`silver.observations, Delta version 3`; 20% of them were held back",
        "**Verdict: passed.** No criterion found it worse than the champion, and plans use it from now on.\n\n"
        "**Reason**: no worse than the champion: capacity_held.\n\n"
        "**What to do**: nothing. `tidewise models diff b6a1 c7d2`",
        "\n\n![gate.png](get-artifact?path=gate.png&run_uuid=4f2e)\n\n",
        "- `capacity_held`: capacity error of held-back windows 1.63% against 1.70% of the champion on 50 rows",
        "- `capacity_unseen`: capacity error of the hours ahead: 1.63% against 1.70% of the champion, "
        "too few rows to judge (2)\n",
        "- `recovery`: error of recovery times ahead: nothing to compare with",
        "`gate.json`",
        "capacity 1.6% of 5,000 observations, 81.0% of them inside the 80% band",
        "recovery time unknown of 0 events, each predicted from those before it",
        "of them inside the 80% interval; latency 7.9%",
        "path=capacity_curves.png&",
        "path=recovery.png&",
        "`operators.json`",
    ):
        assert reported in text


def bundle(version: str, downtime_s: float, jobs: dict[str, float]) -> FleetBundle:
    """Jobs of one operator that was observed with two subtasks at the given rate."""
    latency = LatencyModel(np.zeros(0), np.zeros(0))
    recovery = RecoveryModel(downtime_s, 1.0, 90.0, 1.0, 10.0, 3)
    models = {}
    for name, rate in jobs.items():
        grid, at = np.arange(1, 5), np.array([2])
        curve = CapacityCurve(grid, rate / 2 * grid, grid * 1.0, at, np.array([rate]), rate / 2)
        models["eu", name] = JobModels({"map": curve}, {"map": 1.0}, recovery, latency)
    return pack_models(version, models)


def test_ten_lines_tell_what_changed_since_the_champion() -> None:
    worse = compare("latency", "latency error", OTHERS + 0.5, ERRORS, against="champion", tolerance=0.02)
    gate = judge([HELD, AHEAD, worse], has_champion=True, champion_knows=1)
    champion = bundle("old", 40.0, {"rides": 100.0, "gone": 50.0})
    lines = describe_changes(bundle("new", 30.0, {"rides": 110.0, "fresh": 70.0}), champion, gate)
    assert len(lines) <= 10
    text = " ".join(lines)
    for reported in (
        "`old`",
        "Jobs: 2 -> 2; 1 new (eu/fresh); 1 gone (eu/gone).",
        "most at rides/map with 2 subtasks (+10.0%); 1 points are new",
        "rescale 40.0 -> 30.0 s",
        "Better: capacity_held 1.63% against 1.70%.",
        "Worse, beyond the tolerance: latency 51.70% against 1.63%.",
        "Not judged: recovery (nothing to compare with).",
    ):
        assert reported in text
    assert describe_changes(champion, None, gate) == ["There was no champion before: this is the first model."]
