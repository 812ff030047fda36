"""Tables about the pipeline itself: quarantine, the raw files that were read, and the quality of each interval."""

from __future__ import annotations

from include.tables.schema import DATE_HOUR, Table

QUARANTINE = Table(
    "ops.quarantine",
    {
        "cluster": "STRING",
        "reason": "STRING",  # snake_case name of the rule that was broken
        "detail": "STRING",
        "raw": "STRING",  # the line or value as received; of a file its name
        "raw_bytes": "BINARY",  # of a line that is no UTF-8: as received
        "line_number": "BIGINT",  # in its file, from 1; null for a file or folder
        "observed_at": "TIMESTAMP",  # null when it could not be read
        "source_file": "STRING",
        **DATE_HOUR,  # of the directory of the source file
    },
    keys=("source_file", "line_number", "reason", "raw", "detail"),
    partition_by=("date", "hour"),
    checks={"reason_named": "reason IS NOT NULL AND length(reason) > 0"},
)

FILES = Table(
    "ops.files",  # one row per raw file; every line of it is kept, a duplicate or quarantined
    {
        "cluster": "STRING",
        "source_file": "STRING",
        "bytes": "BIGINT",
        "modified_at": "TIMESTAMP",  # of the file, when it was read; whole milliseconds
        "lines": "BIGINT",
        "kept": "BIGINT",  # in bronze, by the hour of their observation
        "duplicate": "BIGINT",
        "quarantined": "BIGINT",
        "quarantined_values": "BIGINT",  # of metrics, in lines that are kept
        "reason": "STRING",  # why the file could not be read to its end; null when it could
        **DATE_HOUR,  # of its directory
    },
    keys=("source_file",),
    partition_by=("date", "hour"),
)

QUALITY = Table(
    "ops.quality",  # one row per ingest interval and cluster
    {
        "interval_start": "TIMESTAMP",
        "interval_end": "TIMESTAMP",
        "cluster": "STRING",
        "files": "BIGINT",
        "rows": "BIGINT",  # lines of the interval's own files: kept + duplicate + quarantined
        "kept": "BIGINT",
        "metric_values": "BIGINT",
        "late": "BIGINT",  # rows observed before the interval, merged into their own hours
        "duplicate": "BIGINT",
        "missing_windows": "BIGINT",  # (job, operator, window) without a sample between the job's first and last
        "not_measured": "BIGINT",  # Flink's own "NaN" for busy, idle and backpressured time
        "quarantined": "BIGINT",  # lines
        "quarantined_values": "BIGINT",  # of metrics, in lines that are kept
        "quarantined_files": "BIGINT",  # files and folders that could not be read to their end, or are misplaced
    },
    keys=("interval_start", "interval_end", "cluster"),
)
