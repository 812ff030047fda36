"""Tables about the pipeline itself: quarantine, raw files, the quality of each interval, the controller's log."""

from __future__ import annotations

from include.tables.schema import DATE_HOUR, PARALLELISM, Table

QUARANTINE = Table(
    "ops.quarantine",  # lines, values and files that were refused, as they came
    {
        "cluster": "STRING",
        "reason": "STRING",  # rule that was broken
        "detail": "STRING",
        "raw": "STRING",  # line or value as received; a file's name
        "raw_bytes": "BINARY",  # of a line that is no UTF-8
        "line_number": "BIGINT",  # in its file, from 1
        "observed_at": "TIMESTAMP",  # as far as it could be read
        "source_file": "STRING",
        **DATE_HOUR,  # of the directory of the source file
    },
    keys=("source_file", "line_number", "reason", "raw", "detail"),
    partition_by=("date",),
    checks={"reason_named": "reason IS NOT NULL AND length(reason) > 0"},
)

FILES = Table(
    "ops.files",  # one row per raw file; every line of it is kept, a duplicate or quarantined
    {
        "cluster": "STRING",
        "source_file": "STRING",
        "bytes": "BIGINT",
        "modified_at": "TIMESTAMP",  # when it was read
        "lines": "BIGINT",
        "kept": "BIGINT",  # in bronze
        "duplicate": "BIGINT",
        "quarantined": "BIGINT",
        "quarantined_values": "BIGINT",  # of metrics, in lines that are kept
        "reason": "STRING",  # why the file could not be read to its end
        **DATE_HOUR,  # of its directory
    },
    keys=("source_file",),
    partition_by=("date",),
)

QUALITY = Table(
    "ops.quality",  # one row per ingest interval and cluster
    {
        "interval_start": "TIMESTAMP",
        "interval_end": "TIMESTAMP",
        "cluster": "STRING",
        "files": "BIGINT",
        "rows": "BIGINT",  # kept + duplicate + quarantined
        "kept": "BIGINT",
        "metric_values": "BIGINT",
        "late": "BIGINT",  # observed before the interval, merged into their hours
        "duplicate": "BIGINT",
        "missing_windows": "BIGINT",  # of an operator without a sample, between the job's first and last
        "not_measured": "BIGINT",  # "NaN" by Flink for busy, idle, backpressured time
        "quarantined": "BIGINT",
        "quarantined_values": "BIGINT",  # of metrics, in lines that are kept
        "quarantined_files": "BIGINT",  # that could not be read to their end, or are misplaced
    },
    keys=("interval_start", "interval_end", "cluster"),
)

CONTROL_LOG = Table(
    # Append-only: each decision of the controller on a job, and each answer of Flink to a request. The controller
    # reads the last two weeks when it starts.
    "ops.control_log",
    {
        "at": "TIMESTAMP",
        "cluster": "STRING",
        "job": "STRING",
        "job_id": "STRING",
        "lease_number": "BIGINT",  # of the controller that decided
        "entry": "BIGINT",  # orders the rows of a job and lease
        "verb": "STRING",  # wait, rescale, confirm, roll_back, refuse
        "reason": "STRING",
        "detail": "STRING",
        "answer": "STRING",
        "origin": "STRING",  # plan, reactive, pin, schedule
        "step_id": "STRING",
        "mode": "STRING",
        "is_dry_run": "BOOLEAN",
        "parallelism_from": PARALLELISM,  # by operator, else by vertex id
        "parallelism_to": PARALLELISM,  # requested, else desired
        "slots_from": "INT",
        "slots_to": "INT",
        "wish_changed": "STRING",  # why something else is wanted than before
        "decided_at_s": "DOUBLE",
        "observed": "STRING",  # JSON, as desired, limits, outcome, history_before, history: they remake the decision
        "desired": "STRING",
        "limits": "STRING",
        "outcome": "STRING",
        "history_before": "STRING",
        "history": "STRING",
        "request": "STRING",
        "operators": "MAP<STRING, STRING>",
        "plan_as_of": "TIMESTAMP",
        "model_version": "STRING",
        "code_version": "STRING",
        "date": "DATE",  # of at
    },
    keys=("cluster", "job", "lease_number", "entry"),
    partition_by=("date",),
    checks={
        "verb_known": "verb IN ('wait', 'rescale', 'confirm', 'roll_back', 'refuse')",
        "a_reason_is_named": "reason <> ''",
    },
)

CONTROLLER_MEMORY = Table(
    # Append-only: what the controller remembers of a job and what it wants the job to run at. The newest row counts;
    # of days that are over upkeep keeps one evaluation an hour.
    "ops.controller_memory",
    {
        "at": "TIMESTAMP",
        "cluster": "STRING",
        "job": "STRING",
        "plan_as_of": "TIMESTAMP",
        "memory": "STRING",
        "standing": "STRING",  # what stays wanted; JSON, as memory and operators
        "operators": "STRING",
        "date": "DATE",  # of at
    },
    keys=("at", "cluster", "job"),
    partition_by=("date",),
)

INTERVENTIONS = Table(
    # Append-only: what persons did, by commands and in Airflow.
    "ops.interventions",
    {
        "at": "TIMESTAMP",
        "act": "STRING",  # hold, release, approve, deny, lift, undo, pin, unpin, or an act on models
        "scope": "STRING",  # all, a cluster, or cluster/job
        "by": "STRING",
        "reason": "STRING",
        "detail": "STRING",
        "step_id": "STRING",
        "until": "TIMESTAMP",
        "date": "DATE",  # of at
    },
    keys=("at", "act", "scope", "by"),
    partition_by=("date",),
)
