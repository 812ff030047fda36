"""The states of a Flink job, and what each of them tells of it."""

from __future__ import annotations

RUNNING, FAILED = "RUNNING", "FAILED"
STOPPED_STATES = ("RESTARTING", "CANCELLING", "FAILING", FAILED, "CANCELED", "FINISHED", "SUSPENDED")
"""A job does not process in them: the time of the latest entry into one of them tells when it stopped."""
DATED_STATES = (RUNNING, *STOPPED_STATES)
"""Those whose entry is read of a ``job`` reply."""
RESTARTING_STATES = frozenset({"RESTARTING", "CREATED"})
"""A job that ran and is in one of them is being brought back; the adaptive scheduler takes requirements meanwhile."""
TERMINAL_STATES = frozenset({"FINISHED", FAILED, "CANCELED", "SUSPENDED"})
"""Nothing of the job runs any more under this JobManager."""
ENDING_STATES = TERMINAL_STATES | {"CANCELLING", "FAILING"}
"""The job has come to its end, or will."""
ENDED_STATES = ("FINISHED", "CANCELED", FAILED)
"""The job does not come back by itself."""
ENDED_WITHOUT_FAILURE = ("FINISHED", "CANCELED")
"""The job read all of its input, or somebody stopped it: no outage."""
BATCH = "BATCH"
"""Type of a job that comes to its end by itself."""
CHECKPOINT_COMPLETED = "COMPLETED"
"""Status of a checkpoint that a job can be restored from."""
ALIGNED = ("CHECKPOINT", "SAVEPOINT", "SYNC_SAVEPOINT")
"""Types of checkpoints whose barriers push the records before them through the job."""
