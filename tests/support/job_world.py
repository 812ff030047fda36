"""A job that a person changes, over a real lease and a real log in Delta, and controllers that are started again."""

from __future__ import annotations

from pathlib import Path

from control_entries import NOW_S, TWO
from willing_flink import WillingFlink

from controller.decisions.job_control import JobControl, JobTask
from controller.leases.lease import Lease
from controller.log.delta_log import DeltaControlLog, open_control_log
from controller.log.log_witness import LogWitness
from models.control.case import Action
from models.control.limits import Limits
from models.control.state import Intention, Mode, ObservedJob, Origin, Parallelism

JOB = "live/orders"
AUTO = Limits(mode=Mode.AUTO, cooldown_s=0.0)


class World(WillingFlink):
    """A job that a person changes, and controllers that are started again."""

    def __init__(self, root: Path) -> None:
        self.root, self.lake = root, root / "lake"
        self.now_s, self.asked = NOW_S, dict(TWO)
        self.running: dict[str, int] | None = None  # None: what it is asked for
        self.sent: list[dict[str, int]] = []
        self.cluster_ahead_s = 0.0
        self.start()

    def start(self, owner: str = "one") -> None:
        self.lease = Lease(str(self.lake), "live", owner, lambda: self.now_s)
        assert self.lease.take()
        witness = LogWitness(str(self.root / "out"), str(self.lake), "live")
        table = open_control_log(str(self.lake))
        self.log = DeltaControlLog(table, "live", self.lease, lambda: self.now_s, witness=witness)

    def restart(self) -> None:
        self.lease.release()
        self.start("another")

    def observe(self, job: str) -> ObservedJob:
        reported_s = self.now_s + self.cluster_ahead_s
        return ObservedJob(
            "j", "RUNNING", dict(self.running or self.asked), dict(self.asked), free_slots=90, told_at_s=reported_s
        )

    def request(self, job: str, job_id: str, parallelism: Parallelism) -> None:
        self.sent.append(dict(parallelism))
        self.asked = dict(parallelism)

    def tick(self, wanted: int | None = None, limits: Limits = AUTO, pass_s: float = 60.0) -> Action:
        self.now_s += pass_s
        newest = self.lease.read_newest()
        if newest is not None and self.now_s >= newest.until_s - 60:
            self.lease.take()
        desired = None
        if wanted is not None:
            desired = Intention({"a": wanted, "b": wanted}, Origin.PLAN, f"to {wanted}", "load", self.now_s + 600)
        controller = JobControl(self, self.log, self.lease.check, lambda: self.now_s)
        return controller.control_jobs([JobTask(JOB, desired, lambda: limits)])[JOB]
