"""Tables about the pipeline itself: quarantine, raw files, the quality of each interval, the controller's log."""

from __future__ import annotations

from include.tables.schema import DATE_HOUR, PARALLELISM, Table

QUARANTINE = Table(
    "ops.quarantine",  # lines, values and files that were refused, as they came
    {
        "cluster": "STRING",
        "reason": "STRING",  # snake_case name of the rule that was broken
        "detail": "STRING",
        "raw": "STRING",  # the line or value as received; of a file its name
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
        "modified_at": "TIMESTAMP",  # of the file, when it was read; whole milliseconds
        "lines": "BIGINT",
        "kept": "BIGINT",  # in bronze, by the hour of their observation
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

CONTROL_LOG = Table(
    # Append-only: one row per decision that the controller made on a job, and one per answer of Flink to a request.
    # The controller reads the last two weeks when it starts; the report three days.  Kept for a year: it is the record
    # of what was done to the jobs, and small.
    "ops.control_log",
    {
        "at": "TIMESTAMP",
        "cluster": "STRING",
        "job": "STRING",
        "job_id": "STRING",  # as observed
        "lease_number": "BIGINT",  # fencing number of the controller that decided
        "entry": "BIGINT",  # orders the rows of a job, after lease_number
        "verb": "STRING",  # wait, rescale, confirm, roll_back, refuse
        "reason": "STRING",  # named rule that decided
        "detail": "STRING",  # one sentence for a person
        "answer": "STRING",  # of Flink to the request, in a row of its own
        "origin": "STRING",  # of what is desired: plan, reactive, pin, schedule
        "step_id": "STRING",  # of the step or request that the decision is about
        "mode": "STRING",
        "is_dry_run": "BOOLEAN",
        "parallelism_from": PARALLELISM,  # by operator where its name is known, else by vertex id
        "parallelism_to": PARALLELISM,  # requested, or desired where nothing is requested
        "slots_from": "INT",
        "slots_to": "INT",
        "wish_changed": "STRING",  # why something else is wanted than in the row before
        "decided_at_s": "DOUBLE",  # exact; from it and the next six the decision can be made again
        "observed": "STRING",  # JSON, as the five that follow
        "desired": "STRING",
        "limits": "STRING",
        "outcome": "STRING",  # of the last confirmed request
        "history_before": "STRING",
        "history": "STRING",  # after the decision
        "request": "STRING",
        "operators": "MAP<STRING, STRING>",  # vertex id -> operator
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
    # Append-only: what the controller remembers of a job and what it wants the job to run at.  The newest row of the
    # last hours counts; of days that are over upkeep keeps one evaluation an hour, to look into a decision.
    "ops.controller_memory",
    {
        "at": "TIMESTAMP",
        "cluster": "STRING",
        "job": "STRING",
        "plan_as_of": "TIMESTAMP",  # newest plan that it knew
        "memory": "STRING",  # JSON
        "standing": "STRING",  # JSON of the standing intention
        "operators": "STRING",  # JSON of the operators by whose names both are
        "date": "DATE",  # of at
    },
    keys=("at", "cluster", "job"),
    partition_by=("date",),
)

INTERVENTIONS = Table(
    # Append-only: what persons did, by the commands and in Airflow.  Nothing is decided from it.
    "ops.interventions",
    {
        "at": "TIMESTAMP",
        "act": "STRING",  # hold, release, approve, deny, lift, undo, pin, unpin, and what was done to models
        "scope": "STRING",  # all, a cluster, or cluster/job
        "by": "STRING",  # who
        "reason": "STRING",  # why, in their words
        "detail": "STRING",  # what it was about, one sentence for a person
        "step_id": "STRING",  # null where it is about no step
        "until": "TIMESTAMP",  # its end; null without one
        "date": "DATE",  # of at
    },
    keys=("at", "act", "scope", "by"),
    partition_by=("date",),
)
