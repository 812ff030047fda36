"""Raw replies, parsed."""

from __future__ import annotations

from include.tables.schema import AGGREGATES, DATE_HOUR, VERTEX_SAMPLE, Table

BRONZE_METRICS = Table(
    "bronze.metrics",  # samples of the metrics of a vertex, as aggregates over its subtasks
    {
        **VERTEX_SAMPLE,
        "metrics": AGGREGATES,  # null: broke a rule, kept in ops.quarantine
        "source_file": "STRING",
        **DATE_HOUR,  # of observed_at
    },
    keys=("cluster", "job_id", "vertex_id", "observed_at"),
    partition_by=("date",),
    checks={"job_id_hex": "job_id RLIKE '^[0-9a-f]{32}$'", "vertex_id_hex": "vertex_id RLIKE '^[0-9a-f]{32}$'"},
)

BRONZE_JOB_EVENTS = Table(
    "bronze.job_events",  # replies of all kinds but vertex_metrics: few, kept whole
    {
        "cluster": "STRING",
        "kind": "STRING",
        "job_id": "STRING",  # null for cluster-wide kinds
        "observed_at": "TIMESTAMP",
        "body": "STRING",
        "source_file": "STRING",
        **DATE_HOUR,
    },
    keys=("cluster", "kind", "job_id", "observed_at"),
    partition_by=("date",),
)
