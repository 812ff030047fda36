"""What a training was, in words for a person who opens its run or its model version in MLflow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from include.settings import Training
from include.utc import format_utc
from models.training.gate import Gate, Verdict
from spark_jobs.comparison_page import COMPARISON_PAGE
from spark_jobs.model_store import JOB_TABLE
from spark_jobs.train.training_data import TrainingInputs

COVERAGE_PLOT = "coverage.png"
CAPACITY_PLOT, RECOVERY_PLOT, FORECAST_PLOT = "capacity_curves.png", "recovery.png", "forecast_scores.png"
GATE_PLOT, GATE_TABLE, LATENCY_PLOT = "gate.png", "gate.json", "latency.png"
OPERATOR_TABLE, PRIOR_TABLE = "operators.json", "fleet_prior.json"


def describe_training(
    inputs: TrainingInputs,
    training: Training,
    result: Mapping[str, object],
    measured: Mapping[str, float],
    *,
    gate: Gate,
    source: str,
    run_id: str,
    changes: Sequence[str] = (),
) -> str:
    """Return a training's description in Markdown.

    ``result`` is the row of gold.model_versions without as_of, and ``curves``; metrics are NaN where there was nothing
    to measure; ``source`` is table and Delta version of the observations, and the run has the plots.
    """
    held, version = f"{training.holdout_share:.0%}", result["model_version"]
    both = f"{version} {result['champion_before'] or ''}".strip()
    paragraphs = [
        f"**Verdict: {gate.verdict}.** {_MEANING[gate.verdict]}",
        f"**Reason**: {gate.detail}.",
        f"**What to do**: {_TO_DO.get(gate.verdict, 'nothing.').format(version)} `tidewise models diff {both}` has "
        f"what differs from the champion, `tidewise models reject {version} --job CLUSTER/JOB --yes --reason ...` "
        "gives one job the models that it had, and `tidewise models show CLUSTER/JOB OPERATOR` an operator's curve.",
        _show(run_id, GATE_PLOT),
        "**Since the champion**:",
        "\n".join(f"- {line}" for line in changes or ["nothing is known of a champion"]),
        "**What the gate compared**, challenger (this model) against the reference:",
        "\n".join(
            f"- `{one.name}`: {one.reason}{'' if one.decides else ' (shown; a model is not refused for it)'}"
            for one in gate.criteria
        ),
        f"**Models** of {result['jobs']} jobs in one bundle: a capacity curve for {result['curves']} of "
        f"{result['operators']} operators, and each job's recovery time and latency.",
        f"**Trained on** {result['observations']:,} undisturbed observation windows from {result['trained_from']} UTC "
        f"up to {format_utc(inputs.as_of)}, from `{source}`; {held} of them were held back for the scores.",
        f"**Errors on what was held back** (mean, relative): capacity {_percent(measured['capacity_mape'])} of "
        f"{measured['capacity_held']:,.0f} observations, {_percent(measured['capacity_coverage_80'])} of them inside "
        f"the 80% band; recovery time {_percent(measured['recovery_mape'])} of {measured['recovery_events']:,.0f} "
        "events, each predicted from those before it, "
        f"{_percent(measured.get('recovery_coverage_80', float('nan')))} of them inside the 80% interval; latency "
        f"{_percent(measured['latency_mape'])}.",
        "**Intervals**, calibrated on hours ahead of a trial and checked on later ones: the 80% interval held "
        f"{_percent(measured['coverage_80_all'])}, that of 95% {_percent(measured['coverage_95_all'])}.",
        *(f"{caption}\n\n{_show(run_id, file)}" for file, caption in _CAPTIONS.items()),
        f"**Under Artifacts** besides: `{COMPARISON_PAGE}` (the champion beside it on one page: gate, jobs with their "
        f"coverage, worst operators), `{FORECAST_PLOT}` (the forecast's methods, once there are forecasts), "
        f"`{GATE_TABLE}` (the gate's criteria), `{JOB_TABLE}` (whose models each job has, and why), "
        f"`{OPERATOR_TABLE}` (a row for each operator), `{PRIOR_TABLE}` (what operators of one kind share).",
    ]
    return "\n\n".join(paragraphs)


def _show(run_id: str, file: str) -> str:
    """Return an artifact of a run as a picture; its address is relative to MLflow's own pages."""
    return f"![{file}](get-artifact?path={file}&run_uuid={run_id})"


_MEANING = {
    Verdict.FIRST: "It is the first model that knows the jobs which run, and plans use it from now on.",
    Verdict.PASSED: "No criterion found it worse than the champion, and plans use it from now on.",
    Verdict.FAILED: "It was worse, so plans go on with the model in use, if there is one.",
    Verdict.REVIEWED: "A person has chosen whose models single jobs have.",
    Verdict.KEPT: "Nothing could be compared: plans go on with the champion, with wider intervals and a warning.",
}
_USE = "`tidewise models approve {} --yes --reason ...` uses it all the same."
_TO_DO = {
    Verdict.FAILED: f"nothing; where the reason does not count, {_USE}",
    Verdict.KEPT: f"see why nothing could be compared (`tidewise doctor`); {_USE}",
}
_CAPTIONS = {
    COVERAGE_PLOT: "Share of later hours inside the intervals:",
    CAPACITY_PLOT: "Capacity curves with bands, and what was measured:",
    RECOVERY_PLOT: "Recovery times, predicted and measured:",
    LATENCY_PLOT: "Latency over utilisation:",
}


def _percent(share: float) -> str:
    return "unknown" if share != share else f"{share:.1%}"  # noqa: PLR0124 - NaN alone differs from itself
