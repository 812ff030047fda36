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
PLAN_COSTS, BACKTEST = "plan_costs", "backtest"
"""Stages of the laboratory that DAGs run: what plans by a training's models, or other policies, would have cost."""
