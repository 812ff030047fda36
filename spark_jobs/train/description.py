"""What a training was, in words for a person who opens its run or its model version in MLflow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from include.settings import Training
from include.utc import format_utc
from models.training.gate import Gate, Verdict
from spark_jobs.comparison_page import COMPARISON_PAGE
from spark_jobs.model_store import JOB_TABLE
from spark_jobs.train.training_data import Inputs

COVERAGE_PLOT = "coverage.png"
CAPACITY_PLOT, RECOVERY_PLOT, FORECAST_PLOT = "capacity_curves.png", "recovery.png", "forecast_scores.png"
GATE_PLOT, GATE_TABLE, LATENCY_PLOT = "gate.png", "gate.json", "latency.png"
OPERATOR_TABLE, PRIOR_TABLE = "operators.json", "fleet_prior.json"


def describe_training(
    inputs: Inputs,
    training: Training,
    result: Mapping[str, object],
    measured: Mapping[str, float],
    *,
    gate: Gate,
    source: str,
    changes: Sequence[str] = (),
) -> str:
    """Return a training's description in Markdown.

    Args:
        inputs: what was read.
        training: the settings.
        result: the row of gold.model_versions without as_of, and ``curves``.
        measured: metrics by name; NaN where there was nothing to measure.
        gate: the verdict with its criteria.
        source: path and Delta version of the observations.
        changes: of changes.describe_changes.
    """
    held = f"{training.holdout_share:.0%}"
    since = "".join(f"- {line}\n" for line in changes) or "- nothing is known of a champion\n"
    return f"""**Gate**: {gate.verdict}; {gate.detail}. {_MEANING[gate.verdict]}

Models of {result["jobs"]} jobs in one bundle: a capacity curve for {result["curves"]} of
{result["operators"]} operators, and each job's recovery time and latency.

**Since the champion**:

{since}
**What the gate compared**, challenger (this model) against the reference:

{_criteria(gate)}

**Trained on** {result["observations"]:,} undisturbed observation windows from {result["trained_from"]} UTC up to
{format_utc(inputs.as_of)}, from `{source}`; {held} of them were held back for the scores.

**Errors on what was held back** (mean, relative): capacity {_percent(measured["capacity_mape"])} of
{measured["capacity_held"]:,.0f} observations, {_percent(measured["capacity_coverage_80"])} of them inside the 80% band;
recovery time {_percent(measured["recovery_mape"])} of {measured["recovery_events"]:,.0f} events, each predicted from
those before it, {_percent(measured.get("recovery_coverage_80", float("nan")))} of them inside the 80% interval; latency
{_percent(measured["latency_mape"])}.

**Intervals**, calibrated on hours ahead of a trial and checked on later ones: the 80% interval held
{_percent(measured["coverage_80_all"])}, that of 95% {_percent(measured["coverage_95_all"])} (`{COVERAGE_PLOT}`).

**Plots and tables** are under Artifacts: `{COMPARISON_PAGE}` (the champion beside it on one page: gate, jobs with
their coverage, worst operators), `{CAPACITY_PLOT}` (curves with bands and what was seen), `{RECOVERY_PLOT}`
(predicted against seen), `{LATENCY_PLOT}` (latency over utilisation),
`{FORECAST_PLOT}` (the forecast's methods, once there are forecasts), `{GATE_PLOT}` and `{GATE_TABLE}`
(the gate's criteria, by the hour), `{JOB_TABLE}` (whose models each job has, and why),
`{OPERATOR_TABLE}` (a row for each operator),
`{PRIOR_TABLE}` (what operators of one kind share).
"""


def _criteria(gate: Gate) -> str:
    """Return one line per criterion."""
    return "\n".join(
        f"- `{one.name}`: {one.reason}{'' if one.decides else ' (shown; a model is not refused for it)'}"
        for one in gate.criteria
    )


_MEANING = {
    Verdict.FIRST: "It is the first model that knows the jobs which run, and plans use it from now on.",
    Verdict.PASSED: "No criterion found it worse than the champion, and plans use it from now on.",
    Verdict.FAILED: "It was worse, so plans go on with the model in use, if there is one.",
    Verdict.REVIEWED: "A person has chosen whose models single jobs have.",
    Verdict.KEPT: "Nothing could be compared: plans go on with the champion, with wider intervals and a warning.",
}


def _percent(share: float) -> str:
    return "unknown" if share != share else f"{share:.1%}"  # noqa: PLR0124 - NaN alone differs from itself
