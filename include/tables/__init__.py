"""Every table of the lake in one place: columns, partitions, keys, CHECK constraints.

A stage reads tables of the layers to its left and writes only its own; each row can be written twice with the same
result.  Times are UTC.  ``job`` is the job's name in Flink and ``operator`` the vertex's name: both survive a
resubmission, while ``job_id`` and ``vertex_id`` (Flink's hex ids) are carried along for REST calls.
"""

from __future__ import annotations

from include.tables.bronze import BRONZE_JOB_EVENTS, BRONZE_METRICS
from include.tables.gold import (
    APPLIED_STEPS,
    BACKTESTS,
    FORECAST_SCORES,
    FORECASTS,
    LOOKS,
    MODEL_VERSIONS,
    PLANS,
    POLICY_MEMORY,
    PROFILES,
)
from include.tables.ops import FILES, QUALITY, QUARANTINE
from include.tables.schema import AGGREGATES, PARALLELISM, Table
from include.tables.silver import JOB_GRAPHS, OBSERVATIONS, OPERATOR_KEYS, RESCALES

__all__ = [
    "AGGREGATES",
    "APPLIED_STEPS",
    "BACKTESTS",
    "BRONZE_JOB_EVENTS",
    "BRONZE_METRICS",
    "FILES",
    "FORECASTS",
    "FORECAST_SCORES",
    "INGESTED",
    "JOB_GRAPHS",
    "LOOKS",
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
    OPERATOR_KEYS,
    RESCALES,
)
"""The tables that ingestion writes."""

TABLES: tuple[Table, ...] = (
    *INGESTED,
    MODEL_VERSIONS,
    FORECASTS,
    FORECAST_SCORES,
    PLANS,
    POLICY_MEMORY,
    PROFILES,
    LOOKS,
    APPLIED_STEPS,
    BACKTESTS,
)
