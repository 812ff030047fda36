"""Silver tables: measurements of each job."""

from __future__ import annotations

from include.tables.schema import DATE_HOUR, PARALLELISM, Table

OBSERVATIONS = Table(
    "silver.observations",  # rates, shares of time and backlog of each operator in each window
    {
        "cluster": "STRING",
        "job": "STRING",
        "job_id": "STRING",
        "operator": "STRING",
        "vertex_id": "STRING",
        "window_start": "TIMESTAMP",
        "window_s": "INT",
        "parallelism": "INT",
        "is_source": "BOOLEAN",
        "observed_processing_rate_per_s": "DOUBLE",  # Eq. 3 of DS2; a source's: what it takes in; null: not told
        "observed_output_rate_per_s": "DOUBLE",  # Eq. 4 of DS2
        "true_processing_rate_per_s": "DOUBLE",  # of the whole operator: Eq. 5 of DS2 = PA(p), Eq. 1 of ContTune
        "true_output_rate_per_s": "DOUBLE",  # Eq. 6 of DS2
        "target_data_rate_per_s": "DOUBLE",  # sources: what arrives in Kafka, else taken + growth of backlog
        # A source that shows no backlog and is backpressured, and event time does not tell: more may have arrived.
        "target_is_lower_bound": "BOOLEAN",
        "busy_share": "DOUBLE",  # mean over subtasks, 0..1
        "busy_share_max": "DOUBLE",  # of the busiest subtask
        "idle_share": "DOUBLE",
        "backpressured_share": "DOUBLE",
        "selectivity": "DOUBLE",  # records out, over all edges, per record in
        "pending_records": "DOUBLE",  # backlog at a source at the end of the window
        "latency_ms": "DOUBLE",  # time to work off a source's backlog: pending / rate
        # Of a source, at the end of the window: what is pending and what is in buffers, without what stands there; null
        # where that is not known.
        "outstanding_records": "DOUBLE",
        "age_s": "DOUBLE",  # of the oldest of them; of the oldest that is pending where buffers are not known
        "samples": "INT",  # 0 in a window of which only Kafka's brokers tell
        "disturbed": "BOOLEAN",  # overlaps a rescale or restart: not used for training
        **DATE_HOUR,  # of window_start
    },
    keys=("cluster", "job", "operator", "window_start"),
    partition_by=("date",),
    checks={
        "parallelism_positive": "parallelism IS NULL OR parallelism >= 1",
        "busy_is_a_share": "busy_share IS NULL OR busy_share BETWEEN 0 AND 1.05",
        "rates_not_negative": "observed_processing_rate_per_s IS NULL OR observed_processing_rate_per_s >= 0",
    },
)

SOURCE_LOADS = Table(
    # the windows of each source and hour, or day that is over, as arrays: read from silver.observations by the stage
    # that needs them first
    "silver.source_loads",
    {
        "cluster": "STRING",
        "job": "STRING",
        "operator": "STRING",  # null, as are its job and cluster, in the one row of an hour or day without a source
        "vertex_id": "STRING",
        "start_s": "ARRAY<BIGINT>",  # of each window, epoch seconds, ascending
        "window_s": "ARRAY<INT>",
        "demand_per_s": "ARRAY<DOUBLE>",  # target data rate; null: unknown, or a lower bound of the demand
        "date": "DATE",  # of the windows
        "hour": "INT",  # of the windows; -1: of all hours of a day that is over
        "made_from": "STRING",  # hash of the files of silver.observations that the rows were read from
    },
    keys=("cluster", "job", "operator", "vertex_id", "date", "hour"),
    partition_by=("date", "hour", "made_from"),
)

JOB_WINDOWS = Table(
    # what a training reads of the windows of each job and closed day, made by the first training that needs them
    "silver.job_windows",
    {
        "cluster": "STRING",
        "job": "STRING",  # null, as is its cluster, in a row of every day that was looked at
        "date": "DATE",  # of the windows
        "rows": "BIGINT",  # windows of operators, without disturbed ones
        "operators": "ARRAY<STRING>",  # their names, as they were on that day
        "first_at": "TIMESTAMP",  # when the first window began
        "last_s": "BIGINT",  # when the last one began, epoch seconds
        "hash_sum": "DECIMAL(38,0)",  # sum of the rows' hashes, by which a training knows its data
        "windows": "BINARY",  # the rows, as a stream of Arrow
        "made_from": "STRING",  # hash of the files of silver.observations that they were read from
    },
    keys=("cluster", "job", "date"),
    partition_by=("date", "made_from"),
)

JOB_GRAPHS = Table(
    "silver.job_graphs",  # the last observed graph of each hour
    {
        "cluster": "STRING",
        "job": "STRING",
        "job_id": "STRING",
        "operator": "STRING",
        "vertex_id": "STRING",
        "position": "INT",  # topological
        "upstream": "ARRAY<STRING>",  # names of the operators that feed it
        "ship_strategies": "ARRAY<STRING>",  # of those edges, same order
        "parallelism": "INT",
        "max_parallelism": "INT",
        "partitions": "INT",  # of the topics that a source reads, by Kafka's brokers
        "status": "STRING",  # of its tasks, as Flink words it: FINISHED, a bounded source has come to its end
        "slot_sharing_group": "STRING",  # Flink's id of the group
        "observed_at": "TIMESTAMP",
        **DATE_HOUR,
    },
    keys=("cluster", "job", "operator", "date", "hour"),
    partition_by=("date",),
)

JOBS = Table(
    "silver.jobs",  # each job as last seen in each hour, with a graph or without one
    {
        "cluster": "STRING",
        "job": "STRING",
        "job_id": "STRING",
        "state": "STRING",  # Flink's
        "job_type": "STRING",  # STREAMING or BATCH; null where Flink does not tell
        "ended_at": "TIMESTAMP",  # of a job that finished, was cancelled, or failed for good
        "observed_at": "TIMESTAMP",
        **DATE_HOUR,
    },
    keys=("cluster", "job", "date", "hour"),
    partition_by=("date",),
)

OPERATOR_KEYS = Table(
    "silver.operator_keys",  # a job's operators in the first hour of a day, and whenever they changed
    {
        "cluster": "STRING",
        "job": "STRING",
        "operator": "STRING",
        "vertex_id": "STRING",  # Flink's hash of the operator's uid, or of its place in the graph
        "position": "INT",  # topological
        "upstream": "ARRAY<STRING>",  # names of the operators that feed it
        "observed_at": "TIMESTAMP",
        **DATE_HOUR,
    },
    keys=("cluster", "job", "operator", "observed_at"),
    partition_by=("date",),
)

RESCALES = Table(
    "silver.rescales",  # stops of jobs: rescales and restarts, how long they took and what followed
    {
        "cluster": "STRING",
        "job": "STRING",
        "job_id": "STRING",
        "started_at": "TIMESTAMP",  # the job left RUNNING
        "running_at": "TIMESTAMP",  # it is RUNNING again
        "caught_up_at": "TIMESTAMP",  # age_s below ingest.caught_up_lag_s; null when not observed within two windows
        "kind": "STRING",  # rescale (parallelism changed) or restart
        "cause": "STRING",  # the exception's first line for a restart; null otherwise
        "cause_kind": "STRING",  # rescale, upgrade (another job id), taskmanager_lost or job_failure
        "parallelism_before": PARALLELISM,
        "parallelism_after": PARALLELISM,
        "downtime_s": "DOUBLE",  # null when it failed again before it was observed running
        "catch_up_s": "DOUBLE",
        "unseen_s": "DOUBLE",  # the catch-up ended at most so long before caught_up_at: between two polls
        "emitted_records": "DOUBLE",  # taken in by all sources from running_at until caught_up_at
        "pending_records": "DOUBLE",  # of all sources at caught_up_at
        "pending_before_records": "DOUBLE",  # of all sources at the last sample before started_at
        "load_per_s": "DOUBLE",  # target data rate of all sources before the event
        "load_after_per_s": "DOUBLE",  # the same in the windows after it
        "source_load_per_s": "MAP<STRING, DOUBLE>",  # operator -> the mean of both, of each source
        "checkpoint_age_s": "DOUBLE",  # since the last checkpoint when it stopped: replayed after a failure
        "state_size_bytes": "DOUBLE",
        "flink_trigger": "STRING",  # why, by Flink's history (2.3 on): then started_at is exact; null otherwise
        **DATE_HOUR,  # of started_at
    },
    keys=("cluster", "job", "started_at"),
    partition_by=("date",),
    checks={
        "kind_known": "kind IN ('rescale', 'restart')",
        "downtime_not_negative": "downtime_s IS NULL OR downtime_s >= 0",
    },
)
