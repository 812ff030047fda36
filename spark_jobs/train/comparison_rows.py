"""What the page of a challenger beside the champion shows: the gate, each job, the worst operators, as text."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import pandas as pd

from include.short_names import shorten_name
from models.training.gate import Criterion
from models.training.job_gate import ModelChoice
from spark_jobs.train.day_windows import JOB, OPERATOR
from spark_jobs.train.train_fleet import TrainingResult

WORST = 10


def list_comparison(trained: TrainingResult, as_of: datetime) -> dict[str, Any]:
    """Return what :func:`spark_jobs.comparison_page.render_comparison` shows, in values that JSON holds."""
    return {
        "title": f"{as_of:%Y-%m-%d %H:%M}",
        "version": trained.result["model_version"],
        "champion": trained.result["champion_before"] or "none before",
        "verdict": str(trained.gate.verdict),
        "detail": trained.gate.detail,
        "criteria": [describe_criterion(criterion) for criterion in trained.gate.criteria],
        "jobs": list_jobs(trained),
        "operators": list_worst(trained.scores.capacity),
    }


def describe_criterion(one: Criterion) -> dict[str, object]:
    """Return a row of the gate; figures that read the same are no difference."""
    return {
        "name": one.name,
        "result": one.result,
        "colour": one.result if one.result in {"better", "worse"} else "",
        "challenger": format_share(one.challenger, 2),
        "reference": format_share(one.reference, 2),
        "against": one.against,
        "count": f"{one.count:,}",
        "decides": "yes" if one.decides else "shown only",
    }


def measure_job_coverage(scores: pd.DataFrame) -> pd.DataFrame:
    """Return by job (index) how many held-back windows there are, and the shares inside the 80% intervals of both."""
    grouped = scores.astype({"inside": float, "champion_inside": float}).groupby(list(JOB))
    return grouped.agg(
        windows=("inside", "count"), inside=("inside", "mean"), champion_inside=("champion_inside", "mean")
    )


def list_jobs(trained: TrainingResult) -> list[dict[str, str]]:
    """Return the rows of all jobs, those without new models first."""
    coverage: Mapping[Any, Mapping[Any, float]] = measure_job_coverage(trained.scores.capacity).to_dict("index")
    rows = []
    for judged in sorted(trained.judged, key=lambda judged: (judged.choice is ModelChoice.NEW, judged.job)):
        known = coverage.get(judged.job, {"windows": 0, "inside": math.nan, "champion_inside": math.nan})
        rows.append(
            {
                "cluster": judged.job[0],
                "job": judged.job[1],
                "name": shorten_name("/".join(judged.job)),
                "models": str(judged.choice),
                "inside": format_share(known["inside"]),
                "champion_inside": format_share(known["champion_inside"]),
                "windows": f"{known['windows']:,.0f}",
                "detail": judged.detail,
            }
        )
    return rows


def list_worst(scores: pd.DataFrame) -> list[dict[str, str]]:
    """Return the operators with the largest mean errors of held-back windows, the worst first."""
    known = scores.dropna(subset=["error"]).astype({"error": float, "champion_error": float})
    grouped = known.groupby(list(OPERATOR)).agg(
        error=("error", "mean"), champion_error=("champion_error", "mean"), windows=("error", "count")
    )
    worst = grouped.sort_values("error", ascending=False, kind="stable").head(WORST).reset_index()
    return [
        {
            "operator": shorten_name(row["operator"]),
            "job": shorten_name(f"{row['cluster']}/{row['job']}"),
            "error": format_share(row["error"]),
            "champion_error": format_share(row["champion_error"]),
            "windows": f"{row['windows']:,}",
            "colour": "worse" if row["error"] > row["champion_error"] else "",
        }
        for row in worst.to_dict("records")
    ]


def format_share(share: float, digits: int = 1) -> str:
    """Return a share in percent; nothing where it is not known."""
    return f"{share:.{digits}%}" if math.isfinite(share) else "–"
