"""Every table of the lake in one place: columns, partitions, keys, CHECK constraints.

A stage reads tables of the layers to its left and writes only its own; each row can be written twice with the same
result.  Times are UTC.  ``job`` is the job's name in Flink and ``operator`` the vertex's name: both survive a
resubmission, while ``job_id`` and ``vertex_id`` (Flink's hex ids) are carried along for REST calls.
"""

from __future__ import annotations

from include.tables.bronze import BRONZE_JOB_EVENTS, BRONZE_METRICS
from include.tables.gold import (
    BACKTESTS,
    CERTIFICATES,
    EVENT_RESULTS,
    FORECAST_SCORES,
    FORECASTS,
    JOB_DAYS,
    MODEL_JOBS,
    MODEL_VERSIONS,
    PLANS,
    POLICY_MEMORY,
    PROFILES,
    RESCALE_OUTCOMES,
    STEP_RESULTS,
)
from include.tables.ops import CONTROL_LOG, CONTROLLER_MEMORY, FILES, INTERVENTIONS, QUALITY, QUARANTINE
from include.tables.schema import AGGREGATES, PARALLELISM, Table
from include.tables.silver import JOB_GRAPHS, JOB_WINDOWS, JOBS, OBSERVATIONS, OPERATOR_KEYS, RESCALES, SOURCE_LOADS

__all__ = [
    "AGGREGATES",
    "BACKTESTS",
    "BRONZE_JOB_EVENTS",
    "BRONZE_METRICS",
    "BY_PERSONS",
    "CERTIFICATES",
    "CONTROLLED",
    "CONTROLLER_MEMORY",
    "CONTROL_LOG",
    "EVENT_RESULTS",
    "FILES",
    "FORECASTS",
    "FORECAST_SCORES",
    "INGESTED",
    "INTERVENTIONS",
    "JOBS",
    "JOB_DAYS",
    "JOB_GRAPHS",
    "JOB_WINDOWS",
    "MODEL_JOBS",
    "MODEL_VERSIONS",
    "OBSERVATIONS",
    "OPERATOR_KEYS",
    "PARALLELISM",
    "PLANS",
    "POLICY_MEMORY",
    "PROFILES",
    "QUALITY",
    "QUARANTINE",
    "RESCALES",
    "RESCALE_OUTCOMES",
    "SOURCE_LOADS",
    "STEP_RESULTS",
    "TABLES",
    "Table",
]

INGESTED: tuple[Table, ...] = (
    BRONZE_METRICS,
    BRONZE_JOB_EVENTS,
    QUARANTINE,
    FILES,
    QUALITY,
    OBSERVATIONS,
    JOB_GRAPHS,
    JOBS,
    OPERATOR_KEYS,
    RESCALES,
)
"""The tables that ingestion writes."""

TABLES: tuple[Table, ...] = (
    *INGESTED,
    SOURCE_LOADS,
    JOB_WINDOWS,
    MODEL_VERSIONS,
    MODEL_JOBS,
    FORECASTS,
    FORECAST_SCORES,
    PLANS,
    POLICY_MEMORY,
    PROFILES,
    BACKTESTS,
    JOB_DAYS,
    STEP_RESULTS,
    EVENT_RESULTS,
    CERTIFICATES,
)
"""The tables that stages write."""

CONTROLLED: tuple[Table, ...] = (CONTROL_LOG, CONTROLLER_MEMORY, RESCALE_OUTCOMES)
"""The tables that the controller writes, without Spark."""

BY_PERSONS: tuple[Table, ...] = (INTERVENTIONS,)
"""The tables that commands of persons write, without Spark."""
