"""How far a champion is trusted: an old one, or one that could not be compared, has wider intervals and a warning.

Plans go on with it.  They are never refused for the model's age: a gate that finds every challenger worse for days
proves the champion each time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from include.settings import Planner


@dataclass(frozen=True, slots=True)
class ModelTrust:
    """What is thought of a model.

    Attributes:
        interval_factor: by which the standard deviations of its capacities are multiplied.
        warning: for plans and the report; None for a model that was compared lately.
    """

    interval_factor: float = 1.0
    warning: str | None = None


def explain_no_champion(trainings: Iterable[Mapping[str, Any]]) -> str:
    """Return why there is no champion, by the last of some rows of gold.model_versions, and what to do."""
    row = max(trainings, key=lambda row: row["as_of"], default=None)
    if row is None:
        return "no training has made one yet; run the train stage"
    reported = f"the gate of the training as of {row['as_of']:%Y-%m-%d %H:%M} UTC {row['gate']}: {row['gate_detail']}"
    remedy = f"tidewise models approve {row['model_version']} --yes"
    if row["gate"] in {"first", "passed"}:
        return f"{reported}; it is not in use, by training.promotion or by what somebody said of it: {remedy}"
    return (
        f"{reported}; the same training again gives the same model: see to the jobs that the gate names, or use it all "
        f"the same: {remedy}"
    )


def judge_trust(
    trainings: Iterable[Mapping[str, Any]], model_version: str, as_of: datetime, options: Planner
) -> ModelTrust:
    """Judge a champion.

    It is proven by a training that compared it: by its own, and by each in which a challenger was found worse. Of the
    rows of gold.model_versions those of this model count, and of challengers when it was champion.
    """
    own = [row for row in trainings if model_version in {row["model_version"], row["champion_before"]}]
    ordered = sorted(own, key=lambda row: row["as_of"])
    wide = options.unproven_interval_factor
    if not ordered:
        return ModelTrust(wide, f"no training of model {model_version} is recorded; its intervals are widened")
    proofs = [row for row in ordered if _has_compared(row) and _is_for(row, model_version)]
    if not proofs:
        why = "nothing could be compared with the champion since its training"
        return ModelTrust(wide, f"{why}; its intervals are widened")
    if ordered[-1]["gate"] == "kept":
        return ModelTrust(wide, "the last training could not compare the champion; its intervals are widened")
    age_h = (as_of - proofs[-1]["as_of"]).total_seconds() / 3600.0
    if age_h <= options.max_model_age_h:
        return ModelTrust()
    limit = f"more than planner.max_model_age_h = {options.max_model_age_h:g}"
    return ModelTrust(
        wide,
        f"the champion was last compared {age_h:.0f} h ago, {limit}; its intervals are widened: does training run?",
    )


def _has_compared(row: Mapping[str, Any]) -> bool:
    """Whether the gate compared something; a row of an earlier release does not say, and its gate did."""
    return row["compared"] is None or bool(row["compared"] > 0)


def _is_for(row: Mapping[str, Any], model_version: str) -> bool:
    """Whether a training speaks for the model: its own one, or one whose challenger was worse."""
    return bool(row["model_version"] == model_version or row["gate"] == "failed")
