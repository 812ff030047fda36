"""What is read of Flink's replies about a job: one schema for all kinds, whose fields do not meet."""

from __future__ import annotations

from include.flink.job_states import DATED_STATES

_CHECKPOINT = (
    "STRUCT<id: BIGINT, status: STRING, checkpoint_type: STRING, trigger_timestamp: BIGINT,"
    " latest_ack_timestamp: BIGINT, state_size: BIGINT>"
)
_RESTORED = "restored: STRUCT<restore_timestamp: BIGINT>"
_NODES = "ARRAY<STRUCT<id: STRING, inputs: ARRAY<STRUCT<id: STRING, ship_strategy: STRING>>>>"
_FIELDS = (
    # of a job
    "jid STRING",
    "name STRING",
    "state STRING",
    "now BIGINT",
    f"timestamps STRUCT<{', '.join(f'{state}: BIGINT' for state in DATED_STATES)}>",
    "`job-type` STRING",
    "vertices ARRAY<STRUCT<id: STRING, name: STRING, parallelism: INT, maxParallelism: INT, status: STRING,"
    " slotSharingGroupId: STRING>>",
    # of its plan
    f"plan STRUCT<jid: STRING, type: STRING, nodes: {_NODES}>",
    # of its checkpoints
    f"latest STRUCT<completed: {_CHECKPOINT}, savepoint: {_CHECKPOINT}, {_RESTORED}>",
    f"history ARRAY<{_CHECKPOINT}>",
    # of its exceptions
    "exceptionHistory STRUCT<entries: ARRAY<STRUCT<exceptionName: STRING, stacktrace: STRING, timestamp: BIGINT>>>",
)
REPLY = f"STRUCT<{', '.join(_FIELDS)}>"
"""What is read of a reply about a job, whichever its kind."""
VERTEX_IDS = "vertices ARRAY<STRUCT<id: STRING>>, plan STRUCT<nodes: ARRAY<STRUCT<id: STRING>>>"
"""Where replies name their vertices, whatever type their other fields have."""
