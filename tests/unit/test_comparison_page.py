"""The page of a challenger beside the champion: equal is no difference, jobs with their coverage, escaped names."""

from __future__ import annotations

import json
import math
import re
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pandas as pd

from models.training.gate import compare, judge
from models.training.job_gate import JobVerdict, ModelChoice
from spark_jobs.comparison_page import render_comparison
from spark_jobs.train.comparison_rows import describe_criterion, list_comparison, measure_job_coverage
from spark_jobs.train.forward_scores import ForwardScores
from spark_jobs.train.train_fleet import TrainingResult
from spark_jobs.train.training_measures import TrainingScores

ERRORS = np.full(50, 0.0163)
JOB, OTHER = ("eu", "<b>orders"), ("eu", "rides")


def criterion(ours: float, theirs: float, count: int = 50):
    values = np.full(count, ours), np.full(count, theirs)
    return compare("capacity_held", "capacity error", *values, against="champion", tolerance=0.02)


def held(job: tuple[str, str], operator: str, error: float, champion_error: float, inside: list[float]) -> pd.DataFrame:
    return pd.DataFrame(
        {"cluster": job[0], "job": job[1], "operator": operator, "error": error, "champion_error": champion_error,
         "inside": inside, "champion_inside": [1.0] * len(inside)}
    )  # fmt: skip


SCORES = pd.concat(
    [held(JOB, "map", 0.02, 0.03, [1.0, 1.0, 1.0, 0.0]), held(OTHER, "join", 0.3, 0.1, [0.0, 1.0])], ignore_index=True
)


def rows() -> dict[str, Any]:
    """What a training logs, as it is read again."""
    gate = judge([criterion(0.0163, 0.0170)], has_champion=True, champion_knows=2)
    judged = [JobVerdict(JOB, ModelChoice.NEW), JobVerdict(OTHER, ModelChoice.KEPT, "worse: 30.0%", is_worse=True)]
    scores = TrainingScores(SCORES, pd.DataFrame(), pd.DataFrame(), ForwardScores.none())
    result = {"model_version": "m1", "champion_before": "m0"}
    trained = TrainingResult(None, scores, {}, gate, result, pd.DataFrame(), None, None, judged)  # type: ignore[arg-type]
    return json.loads(json.dumps(list_comparison(trained, datetime(2026, 11, 20, 2, tzinfo=UTC)), allow_nan=False))


def page() -> str:
    costs = {JOB: -0.08, OTHER: math.nan}
    return render_comparison(rows(), "-8.0% against the champion's on 1 of 2 jobs", costs)


def test_a_reviewer_reads_verdict_jobs_and_worst_operators() -> None:
    text = re.sub(r"<[^>]+>", " ", page())
    words = " ".join(text.split())
    assert "passed : no worse than the champion: capacity_held" in words
    assert "What plans would have cost , by the challenger: -8.0% against the champion" in words
    kept, new = words.index("eu/rides kept 50.0% 100.0% 2 worse: 30.0%"), words.index("new 75.0% 100.0% 4 -8.0%")
    assert kept < new
    assert words.index("join eu/rides 30.0% 10.0% 2") < words.index("2.0% 3.0% 4")


def test_without_plan_costs_the_page_has_all_the_rest() -> None:
    shown, with_costs = render_comparison(rows()), page()
    assert "What plans would have cost" not in shown
    lines = set(with_costs.splitlines()) - set(shown.splitlines())
    assert len(lines) == 2  # the sentence, and the job that was replayed
    assert "<bdi>eu/rides</bdi>" in shown


def test_names_are_text_and_nothing_is_loaded() -> None:
    shown = page()
    assert "<b>orders" not in shown
    assert "&lt;b&gt;orders" in shown
    assert not re.search(r"(?:src|href)=", shown)


def test_figures_that_read_the_same_are_no_difference() -> None:
    assert describe_criterion(criterion(0.01630, 0.01631))["result"] == "no difference"
    assert describe_criterion(criterion(0.0163, 0.0170))["result"] == "better"
    assert describe_criterion(criterion(0.0172, 0.0170))["result"] == "worse, within the tolerance"
    assert describe_criterion(criterion(0.3, 0.1))["colour"] == "worse"
    assert describe_criterion(criterion(0.3, 0.1, count=0))["challenger"] == "–"


def test_coverage_is_of_the_windows_of_each_job() -> None:
    rows = measure_job_coverage(SCORES).to_dict("index")
    assert rows[JOB] == {"windows": 4, "inside": 0.75, "champion_inside": 1.0}
    assert rows[OTHER]["inside"] == 0.5
