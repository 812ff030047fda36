"""What a cluster says before a request when nothing speaks against it, for doubles that are about something else."""

from __future__ import annotations

from models.control.readiness import Checkpoints, Failure, MemoryUsage, Readiness


class WillingFlink:
    """The part of an actuator that is asked right before a request: checkpoints are fine, and so is the memory."""

    def inspect(self, job: str, job_id: str) -> Readiness:
        reported = Checkpoints(interval_s=60.0, completed_at_s=1_000.0, state_bytes=1_000)
        return Readiness(reported, MemoryUsage(0.5, 0.0), (), now_s=1_030.0)

    def read_failures(self, job: str, job_id: str) -> tuple[Failure, ...]:
        return ()

    def trigger_checkpoint(self, job: str, job_id: str) -> None:
        """Nothing waits for one."""
