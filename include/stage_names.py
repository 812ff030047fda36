"""Names of Spark stages, as arguments, files and tables write them."""

from __future__ import annotations

from enum import StrEnum


class Stage(StrEnum):
    """The Spark stages of the product, in the order of the data."""

    INGEST = "ingest"
    TRAIN = "train"
    FORECAST = "forecast"
    PLAN = "plan"
    REPORT = "report"


LEARN, PROFILING = "learn", "profiling"
"""Stages of the laboratory whose memories of policies a plan reads."""
PLAN_COSTS = "plan_costs"
"""Stage of the laboratory that tells what plans by a training's models would have cost."""
