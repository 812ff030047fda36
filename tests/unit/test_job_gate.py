"""The gate for single jobs: one that is wrong keeps what it has, whatever the size of its fleet."""

from __future__ import annotations

import math

import numpy as np
import pytest

from models.training.gate import Gate, Verdict, compare
from models.training.job_gate import (
    JobErrors,
    JobVerdict,
    ModelChoice,
    apply_orders,
    judge_jobs,
    judge_with_jobs,
)

SIZES = [14, 50, 200]
ROWS = 60  # held-back windows of a job
TOLERANCE = 0.05


def fleet(size: int, wrong: dict[int, float], seed: int = 0, naive: float = 0.2) -> JobErrors:
    """Errors of 3% with the noise of windows; capacities of some jobs are off by more."""
    random = np.random.default_rng(seed)
    job = np.repeat(np.arange(size), ROWS)
    ours, theirs = (np.abs(random.normal(0.0, 0.04, len(job))) for _ in range(2))
    off = np.array([wrong.get(at, 0.0) for at in range(size)])[job]
    return JobErrors("capacity_held", "capacity error", job, ours + off, theirs, np.full(len(job), naive))


def judge_one(errors: JobErrors, size: int, known: bool = True) -> tuple[list[JobVerdict], Gate]:
    jobs = [("eu", f"job-{at:03}") for at in range(size)]
    judged = judge_jobs(jobs, np.full(size, known), [errors], TOLERANCE)
    taken = np.array([one.choice is ModelChoice.NEW for one in judged])[errors.job]
    reference = errors.champion if known else errors.naive
    criterion = compare(
        "capacity_held", "capacity error", errors.challenger[taken], reference[taken], against="x", tolerance=0.02
    )
    gate = judge_with_jobs([criterion], judged, has_champion=known, champion_knows=size * known, worse_max=0.25)
    return judged, gate


def names(judged: list[JobVerdict], choice: ModelChoice) -> list[str]:
    return [one.job[1] for one in judged if one.choice is choice]


@pytest.mark.parametrize("size", SIZES)
def test_one_job_half_wrong_keeps_its_models_and_the_others_have_new_ones(size: int) -> None:
    judged, gate = judge_one(fleet(size, {7: 0.5}), size)
    assert names(judged, ModelChoice.KEPT) == ["job-007"]
    assert gate.verdict is Verdict.PASSED
    assert "models of an earlier version are kept by eu/job-007 (capacity error 5" in gate.detail


@pytest.mark.parametrize("size", SIZES)
def test_a_fleet_as_good_as_before_has_no_worse_job_in_a_hundred_nights(size: int) -> None:
    kept = [len(names(judge_one(fleet(size, {}, seed), size)[0], ModelChoice.KEPT)) for seed in range(100)]
    assert sum(kept) <= 5


@pytest.mark.parametrize("size", SIZES)
def test_more_than_the_share_of_worse_jobs_is_refused_with_the_share(size: int) -> None:
    limit = size // 4
    _, passed = judge_one(fleet(size, dict.fromkeys(range(limit), 0.5)), size)
    assert passed.verdict is Verdict.PASSED
    _, refused = judge_one(fleet(size, dict.fromkeys(range(limit + 1), 0.5)), size)
    assert refused.verdict is Verdict.FAILED
    assert f"{limit + 1} of {size} jobs are worse, more than training.gate_worse_jobs_max = 0.25" in refused.detail


@pytest.mark.parametrize("size", SIZES)
def test_a_first_training_takes_the_good_jobs_and_leaves_out_one_that_a_line_beats(size: int) -> None:
    judged, gate = judge_one(fleet(size, {3: 0.5}), size, known=False)
    assert names(judged, ModelChoice.LEFT_OUT) == ["job-003"]
    assert gate.verdict is Verdict.FIRST
    assert "no models yet for eu/job-003 (capacity error" in gate.detail
    half, gate = judge_one(fleet(size, dict.fromkeys(range(size // 2), 0.5)), size, known=False)
    assert (len(names(half, ModelChoice.NEW)), gate.verdict) == (size - size // 2, Verdict.FIRST)


def test_a_first_training_without_one_good_job_is_refused() -> None:
    _, gate = judge_one(fleet(3, dict.fromkeys(range(3), 0.5)), 3, known=False)
    assert gate.verdict is Verdict.FAILED
    assert "no job has models that may be used: eu/job-000, eu/job-001, eu/job-002" in gate.detail


def test_what_cannot_be_compared_is_taken_and_one_row_proves_nothing() -> None:
    job, nothing = np.array([0, 1, 1]), np.full(3, math.nan)
    errors = JobErrors("capacity_held", "e", job, np.array([0.9, 0.9, math.nan]), np.full(3, 0.1), nothing)
    judged = judge_jobs([("eu", "a"), ("eu", "b"), ("eu", "c")], np.ones(3, bool), [errors], TOLERANCE)
    assert [one.choice for one in judged] == [ModelChoice.NEW] * 3
    assert [one.compared for one in judged] == [1, 1, 0]
    assert judge_jobs([], np.zeros(0, bool), [], TOLERANCE) == []


def test_a_new_job_beside_a_champion_is_compared_with_the_linear_model_and_counts_in_no_share() -> None:
    errors = fleet(2, {1: 0.5})
    judged = judge_jobs([("eu", "a"), ("eu", "b")], np.array([True, False]), [errors], TOLERANCE)
    assert [one.choice for one in judged] == [ModelChoice.NEW, ModelChoice.LEFT_OUT]
    assert "of the linear model on 60 rows" in judged[1].detail
    assert judge_with_jobs([], judged, has_champion=True, champion_knows=1, worse_max=0.0).verdict is Verdict.KEPT


def test_what_a_person_ordered_stands_above_errors_and_counts_in_no_share() -> None:
    judged, _ = judge_one(fleet(4, {0: 0.5}), 4)
    orders = {("eu", "job-000"): (3, "pinned to version 3"), ("eu", "job-001"): (None, "rejected in version 4")}
    ordered = apply_orders(judged, orders)
    assert [(one.choice, one.source) for one in ordered[:2]] == [(ModelChoice.KEPT, 3), (ModelChoice.LEFT_OUT, None)]
    assert ordered[2:] == judged[2:]
    gate = judge_with_jobs([], ordered, has_champion=True, champion_knows=4, worse_max=0.0)
    assert gate.verdict is Verdict.KEPT
