"""Trust in a champion: what proves it, and that nothing makes plans stop."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from include.settings import Planner
from models.bundle.job_models import CapacityCurve, JobModels, LatencyModel
from models.capacity.interval_width import widen_intervals
from models.recovery.recovery_model import UNTRAINED
from spark_jobs.plan.model_trust import explain_no_champion, judge_trust

HOUR = timedelta(hours=1)
NOW = datetime(2026, 11, 20, 18, tzinfo=UTC)


def training(hours_ago: float, version: str, champion: str | None, gate: str, compared: int | None = 50) -> dict:
    made = {"as_of": NOW - hours_ago * HOUR, "model_version": version, "champion_before": champion}
    return made | {"gate": gate, "compared": compared}


OWN = training(80, "m0", None, "first")


@pytest.mark.parametrize(
    ("trainings", "warning"),
    [
        ([training(8, "m0", None, "first")], None),
        ([training(8, "m0", "m", "passed", None)], None),  # of an earlier release
        ([OWN], "last compared 80 h ago, more than planner.max_model_age_h = 72"),
        # Challengers that were worse every night prove the champion, however old it is.
        ([OWN, training(8, "m1", "m0", "failed")], None),
        ([OWN, training(76, "m1", "m0", "failed")], "last compared 76 h ago"),
        ([OWN, training(56, "m1", "m0", "failed"), training(8, "m2", "m0", "kept", 0)], "could not compare"),
        ([training(8, "m0", None, "first", 0)], "nothing could be compared with the champion since its training"),
        ([training(30, "m0", None, "first", 0), training(6, "m1", "m0", "failed")], None),
        ([], "no training of model m0 is recorded"),
    ],
)
@pytest.mark.covers("apply_review 2")
def test_a_champion_is_trusted_as_far_as_it_was_compared(trainings: list[dict], warning: str | None) -> None:
    trust = judge_trust(trainings, "m0", NOW, Planner())
    assert trust.interval_factor == (1.0 if warning is None else 2.0)
    assert (warning or "None") in str(trust.warning)


def test_intervals_are_widened_and_expectations_stay() -> None:
    p = np.arange(1, 5)
    curve = CapacityCurve(p, 100.0 * p, 5.0 * p, p[:2], 100.0 * p[:2], 100.0)
    models = JobModels({"map": curve}, {"map": 1.0}, UNTRAINED, LatencyModel(np.zeros(0), np.zeros(0)))
    wide = widen_intervals(models, 2.0).capacity["map"]
    assert wide.sd_per_s.tolist() == [10.0, 20.0, 30.0, 40.0]
    assert wide.mean_per_s.tolist() == curve.mean_per_s.tolist()
    assert widen_intervals(models, 1.0) is models


@pytest.mark.parametrize(
    ("gate", "told"),
    [
        (None, "no training has made one yet"),
        ("failed", "the gate of the training as of 2026-11-20 02:00 UTC failed: worse; the same training again"),
        ("first", "tidewise models approve v1 --yes"),
    ],
)
def test_without_a_champion_the_gate_and_its_reason_are_named(gate, told):
    row = training(16, "v1", None, str(gate)) | {"gate_detail": "worse"}
    before = training(20, "v0", None, "passed") | {"gate_detail": "better"}
    assert told in explain_no_champion([] if gate is None else [row, before])
