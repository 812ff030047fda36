"""Tables about the pipeline itself: quarantine, and the quality of each interval."""

from __future__ import annotations

from include.tables.schema import DATE_HOUR, Table

QUARANTINE = Table(
    "ops.quarantine",
    {
        "cluster": "STRING",
        "reason": "STRING",  # snake_case name of the rule that was broken
        "detail": "STRING",
        "raw": "STRING",  # the line or value as received
        "observed_at": "TIMESTAMP",  # null when it could not be read
        "source_file": "STRING",
        **DATE_HOUR,  # of the directory of the source file
    },
    keys=("source_file", "reason", "raw", "detail"),
    partition_by=("date", "hour"),
    checks={"reason_named": "reason IS NOT NULL AND length(reason) > 0"},
)

QUALITY = Table(
    "ops.quality",  # one row per ingest interval and cluster
    {
        "interval_start": "TIMESTAMP",
        "interval_end": "TIMESTAMP",
        "cluster": "STRING",
        "files": "BIGINT",
        "rows": "BIGINT",  # lines read from the interval's own files
        "metric_values": "BIGINT",
        "late": "BIGINT",  # rows observed before the interval, merged into their own hours
        "duplicate": "BIGINT",
        "missing_windows": "BIGINT",  # (job, operator, window) without a sample between the job's first and last
        "not_measured": "BIGINT",  # Flink's own "NaN" for busy, idle and backpressured time
        "quarantined": "BIGINT",
    },
    keys=("interval_start", "interval_end", "cluster"),
)
