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
        "observed_processing_rate_per_s": "DOUBLE",  # Eq. 3 of DS2; of a source what it takes in
        "observed_output_rate_per_s": "DOUBLE",  # Eq. 4 of DS2
        "true_processing_rate_per_s": "DOUBLE",  # Eq. 5 of DS2, Eq. 1 of ContTune: of all subtasks
        "true_output_rate_per_s": "DOUBLE",  # Eq. 6 of DS2
        "target_data_rate_per_s": "DOUBLE",  # of a source: what arrives in Kafka, else taken in + growth of backlog
        # A source that shows no backlog and is backpressured, and event time does not tell: more may have arrived.
        "target_is_lower_bound": "BOOLEAN",
        "busy_share": "DOUBLE",
        "busy_share_max": "DOUBLE",
        "idle_share": "DOUBLE",
        "backpressured_share": "DOUBLE",
        "selectivity": "DOUBLE",  # records out per record in
        "pending_records": "DOUBLE",  # backlog of a source at the end
        "latency_ms": "DOUBLE",  # time to work off the backlog: pending / rate
        # Of a source, at the end of the window: what is pending and what is in buffers, without what stands there; null
        # where that is not known.
        "outstanding_records": "DOUBLE",
        "age_s": "DOUBLE",  # age of the oldest outstanding record; of the oldest pending one where buffers are unknown
        "samples": "INT",  # 0: only Kafka's brokers tell of the window
        "disturbed": "BOOLEAN",  # by a rescale or restart: not used for training
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
        "operator": "STRING",  # null in the one row of an hour or day without a source
        "vertex_id": "STRING",
        "start_s": "ARRAY<BIGINT>",  # epoch seconds, ascending
        "window_s": "ARRAY<INT>",
        "demand_per_s": "ARRAY<DOUBLE>",  # target data rate; null: unknown, or a lower bound of the demand
        "date": "DATE",  # of the windows
        "hour": "INT",  # -1: all hours of a day that is over
        "made_from": "STRING",  # hash of the files that the rows were read from
    },
    keys=("cluster", "job", "operator", "vertex_id", "date", "hour"),
    partition_by=("date", "hour", "made_from"),
)

JOB_WINDOWS = Table(
    # what a training reads of the windows of each job and closed day, made by the first training that needs them
    "silver.job_windows",
    {
        "cluster": "STRING",
        "job": "STRING",  # null in a row of every day that was looked at
        "date": "DATE",  # of the windows
        "rows": "BIGINT",  # windows of operators, without disturbed ones
        "operators": "ARRAY<STRING>",  # their names on that day
        "first_at": "TIMESTAMP",
        "last_s": "BIGINT",  # begin of the last one, epoch seconds
        "hash_sum": "DECIMAL(38,0)",  # of the rows: a training knows its data by it
        "windows": "BINARY",  # the rows, as a stream of Arrow
        "made_from": "STRING",  # hash of the files that they were read from
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
        "partitions": "INT",  # that a source reads, by Kafka's brokers
        "status": "STRING",  # of its tasks, in Flink's words
        "slot_sharing_group": "STRING",
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
        "state": "STRING",
        "job_type": "STRING",  # STREAMING or BATCH
        "ended_at": "TIMESTAMP",  # when it finished, was cancelled, or failed for good
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
        "vertex_id": "STRING",  # Flink's hash of uid or place in the graph
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
        "started_at": "TIMESTAMP",
        "running_at": "TIMESTAMP",
        "caught_up_at": "TIMESTAMP",  # age_s below ingest.caught_up_lag_s; null: not within two windows
        "kind": "STRING",  # rescale or restart
        "cause": "STRING",  # first line of a restart's exception
        "cause_kind": "STRING",  # rescale, upgrade (another job id), taskmanager_lost or job_failure
        "parallelism_before": PARALLELISM,
        "parallelism_after": PARALLELISM,
        "downtime_s": "DOUBLE",  # null: it failed again before it ran
        "catch_up_s": "DOUBLE",
        "unseen_s": "DOUBLE",  # between the polls around caught_up_at
        "emitted_records": "DOUBLE",  # by all sources from running_at to caught_up_at
        "pending_records": "DOUBLE",  # of all sources at caught_up_at
        "pending_before_records": "DOUBLE",  # at the last sample before started_at
        "load_per_s": "DOUBLE",  # target data rate of all sources before
        "load_after_per_s": "DOUBLE",  # after
        "source_load_per_s": "MAP<STRING, DOUBLE>",  # source -> mean of before and after
        "checkpoint_age_s": "DOUBLE",  # when it stopped
        "state_size_bytes": "DOUBLE",
        "flink_trigger": "STRING",  # by Flink's history (2.3 on): then started_at is exact
        **DATE_HOUR,  # of started_at
    },
    keys=("cluster", "job", "started_at"),
    partition_by=("date",),
    checks={
        "kind_known": "kind IN ('rescale', 'restart')",
        "downtime_not_negative": "downtime_s IS NULL OR downtime_s >= 0",
    },
)
