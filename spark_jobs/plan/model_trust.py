"""How far a champion is trusted: an old one, or one that could not be compared, has wider intervals and a warning.

Plans go on with it.  They are never refused for the model's age: a gate that finds every challenger worse for days
proves the champion each time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from include.settings import Planner
from spark_jobs.timestamps import timestamp_column


@dataclass(frozen=True, slots=True)
class ModelTrust:
    """What is thought of a model.

    Attributes:
        interval_factor: by which the standard deviations of its capacities are multiplied.
        warning: for plans and the report; None for a model that was compared lately.
    """

    interval_factor: float = 1.0
    warning: str | None = None


def read_trust(versions: DataFrame, model_version: str, as_of: datetime, options: Planner) -> ModelTrust:
    """Return the trust in a champion from the trainings up to ``as_of``."""
    about = (F.col("model_version") == model_version) | (F.col("champion_before") == model_version)
    seconds = F.unix_timestamp("as_of").alias("as_of_s")
    rows = versions.where(about & (F.col("as_of") <= timestamp_column(as_of))).select(
        seconds, "model_version", "champion_before", "gate", "compared"
    )
    return judge_trust([row.asDict() for row in rows.collect()], model_version, as_of.timestamp(), options)


def explain_no_champion(versions: DataFrame, as_of: datetime) -> str:
    """Return why there is no champion, by the last training up to ``as_of``, and what to do."""
    row = (
        versions.where(F.col("as_of") <= timestamp_column(as_of))
        .orderBy(F.desc("as_of"))
        .select(F.date_format("as_of", "yyyy-MM-dd HH:mm").alias("at"), "model_version", "gate", "gate_detail")
        .first()
    )
    return explain_gate(None if row is None else row.asDict())


def explain_gate(row: Mapping[str, Any] | None) -> str:
    """Return why the last training, a row of gold.model_versions with its time as text, made no champion."""
    if row is None:
        return "no training has made one yet; run the train stage"
    reported = f"the gate of the training as of {row['at']} UTC {row['gate']}: {row['gate_detail']}"
    remedy = f"tidewise models approve {row['model_version']} --yes"
    if row["gate"] in {"first", "passed"}:
        return f"{reported}; it is not in use, by training.promotion or by what somebody said of it: {remedy}"
    return (
        f"{reported}; the same training again gives the same model: see to the jobs that the gate names, or use it all "
        f"the same: {remedy}"
    )


def judge_trust(
    trainings: Iterable[Mapping[str, Any]], model_version: str, as_of_s: float, options: Planner
) -> ModelTrust:
    """Judge a champion.

    It is proven by a training that compared it: by its own, and by each in which a challenger was found worse.

    Args:
        trainings: rows of gold.model_versions of this model, and of challengers when it was champion.
        model_version: of the champion.
        as_of_s: now.
        options: of the planner.
    """
    ordered = sorted(trainings, key=lambda row: row["as_of_s"])
    wide = options.unproven_interval_factor
    if not ordered:
        return ModelTrust(wide, f"no training of model {model_version} is recorded; its intervals are widened")
    proofs = [row for row in ordered if _has_compared(row) and _is_for(row, model_version)]
    if not proofs:
        why = "nothing could be compared with the champion since its training"
        return ModelTrust(wide, f"{why}; its intervals are widened")
    if ordered[-1]["gate"] == "kept":
        return ModelTrust(wide, "the last training could not compare the champion; its intervals are widened")
    age_h = (as_of_s - proofs[-1]["as_of_s"]) / 3600.0
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
