"""Everything that a run consists of: Flink, the proxy before it, jobs, settings, controllers, and what they wrote."""

from __future__ import annotations

import json
import random
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.chaos.checkpoint_watch import CheckpointWatch
from benchmarks.chaos.controllers import Controllers
from benchmarks.chaos.jobs import PLANNED, Jobs
from benchmarks.chaos.log_rows import LogRows
from benchmarks.chaos.outcome import JobState
from benchmarks.chaos.plan_rows import Step, plan_step
from benchmarks.chaos.proxy import Proxy, serving
from benchmarks.chaos.run_settings import CLUSTER, PARALLELISM_MAX, Conditions, RunSettings
from benchmarks.chaos.snapshot_counts import SnapshotWatch
from benchmarks.waiting import wait_until
from include.control.lifted_blocks import LiftedBlock, LiftedBlockStore
from lab.local_flink.cluster import ClusterOptions, LocalCluster
from lab.local_flink.load import ENRICH

TASK_MANAGERS = 2
_LEASE_S = 60.0  # a controller that was killed is followed by the next after its lease and both margins
STARTS_S = 90.0
_POLL_EVERY_S = 1.0


@dataclass(slots=True)
class Span:
    """A stretch of time in which nothing may be sent to a job (None: to any), epoch seconds, and why."""

    job: str | None
    since_s: float
    until_s: float
    why: str = "held or off"


@dataclass(frozen=True, slots=True)
class Wrong:
    """Something that a fault has seen and must never happen."""

    invariant: str
    at_s: float
    detail: str


@dataclass(slots=True)
class World:
    """A run.

    Attributes:
        main: the controller that is meant to run.
        conditions: of the run.
        silences: stretches of time in which nothing may be sent.
        wrongs: what faults have seen that must never happen.
        ahead_s: by how much the clock of the controllers is ahead.
    """

    out: Path
    cluster: LocalCluster
    proxy: Proxy
    jobs: Jobs
    settings: RunSettings
    controllers: Controllers
    log: LogRows
    checkpoints: CheckpointWatch
    snapshots: SnapshotWatch
    main: subprocess.Popen[bytes]
    conditions: Conditions
    silences: list[Span] = field(default_factory=list)
    wrongs: list[Wrong] = field(default_factory=list)
    ahead_s: float = 0.0
    _known_terms: tuple[int, int] = (0, 0)

    @property
    def lake(self) -> Path:
        """Folder of the lake."""
        return self.out / "lake"

    @property
    def ticks(self) -> int:
        """How many ticks controllers have made: each takes the next term of the lease, also after it was removed."""
        newest = max((int(path.stem) for path in self._terms()), default=0)
        passed, last = self._known_terms
        passed = passed + newest if newest < last else passed + newest - last
        self._known_terms = passed, newest
        return passed

    @property
    def lease_owner(self) -> int:
        """Process id of the controller that has the lease."""
        newest = max(self._terms(), default=None)
        try:
            return 0 if newest is None else int(json.loads(newest.read_text())["owner"].rpartition(":")[2])
        except (OSError, ValueError):  # it was cleaned up, or is being written
            return 0

    def observe(self, job: str) -> JobState:
        """Return what Flink says of a job."""
        return JobState(self.jobs.running(job), self.jobs.requested(job))

    def plan(self, job: str, parallelism: int) -> Step:
        """Write a plan that wants another parallelism of a job's costly operator, now."""
        before = self.jobs.requested(job)
        target = {**before, ENRICH: parallelism}
        now_s = time.time() + self.ahead_s
        span_s = now_s, now_s + self.conditions.valid_s
        return plan_step(str(self.lake), (job, self.jobs.ids[job]), before, target, span_s)

    def choose_job(self, rng: random.Random) -> str:
        """Return a job that follows plans, runs as it should, and is not held."""
        within_s = 180 + 2 * self.conditions.wait_s
        return wait_until(lambda: self._ready_job(rng), within_s, "a job is ready for the next fault", every_s=0.3)

    def choose_parallelism(self, job: str, rng: random.Random) -> int:
        """Return another parallelism than that which the job was asked for, one that is not blocked."""
        now, blocked = self.jobs.requested(job)[ENRICH], self._blocked(job)
        others = [count for count in range(1, PARALLELISM_MAX + 1) if count != now]
        return rng.choice([count for count in others if count not in blocked] or others)

    def wait_for_ticks(self, count: int = 2, within_s: float = STARTS_S) -> None:
        """Wait until controllers have made some ticks."""
        since = self.ticks
        wait_until(lambda: self.ticks >= since + count, within_s + _LEASE_S, f"{count} ticks of a controller")

    def restore(self) -> None:
        """Make sure that exactly one controller runs, by the right clock, and makes ticks."""
        for process in self.controllers.alive:
            if process is not self.main:
                self.controllers.end(process)
        self.controllers.end_orphans()
        if self.main.poll() is not None:
            self.main = self.controllers.start()
            self.wait_for_ticks(1)

    def lift_blocks(self, job: str) -> None:
        """Let the controller try again what only a person lifts, as `tidewise lift` does."""
        store, rows = LiftedBlockStore(str(self.lake)), self.log.of_job(job)
        for block in rows[-1].history.get("blocked", ()) if rows else ():
            if block.get("block_id"):
                store.write(LiftedBlock(CLUSTER, job, block["block_id"], "the fault harness", time.time()))

    @contextmanager
    def silence(self, job: str | None, grace_s: float = 1.5, why: str = "held or off") -> Iterator[None]:
        """Note that nothing may be sent from now on (after what may be on its way) until the end of the block."""
        span = Span(job, time.time() + grace_s, float("inf"), why)
        self.silences.append(span)
        try:
            yield
        finally:
            span.until_s = time.time()

    def _ready_job(self, rng: random.Random) -> str | None:
        ready = [job for job in PLANNED if self._is_ready(job)]
        return rng.choice(ready) if ready else None

    def _is_ready(self, job: str) -> bool:
        rows = self.log.of_job(job)
        if rows:
            last = rows[-1]
            if last.history["in_flight"] is not None or time.time() < last.held_until_s:
                return False
        state = self.observe(job)
        is_whole = bool(state.running) and state.running == state.requested
        return is_whole and self.jobs.checkpoint_counts(job)["completed"] > 0  # before it, nothing is sent

    def _blocked(self, job: str) -> set[int]:
        """Return the parallelism of the costly operator in targets that the controller does not try again."""
        rows = self.log.of_job(job)
        names = self.jobs.names(job)
        lifted = {one.block_id for one in LiftedBlockStore(str(self.lake)).read()}
        blocked = rows[-1].history.get("blocked", ()) if rows else ()
        result = [one["parallelism"] for one in blocked if one.get("block_id") not in lifted]
        return {count for target in result for vertex, count in target.items() if names.get(vertex) == ENRICH}

    def _terms(self) -> list[Path]:
        return list((self.lake / "ops" / "leases" / f"cluster={CLUSTER}").glob("*.json"))


@contextmanager
def open_world(out: Path, conditions: Conditions) -> Iterator[World]:
    """Start everything: Flink with three jobs, the proxy, and a controller that has seen the jobs."""
    out.mkdir(parents=True, exist_ok=True)
    options = ClusterOptions.quick(
        slots=conditions.slots,
        task_managers=TASK_MANAGERS,
        checkpoint_every_s=conditions.checkpoint_every_s,
        settings={"execution.checkpointing.tolerable-failed-checkpoints": "100000"},
    )
    with LocalCluster(out / "flink", options) as cluster, serving(cluster.rest_url) as proxy:
        jobs = Jobs(cluster)
        settings = RunSettings(out, proxy.url, list(PLANNED), conditions)
        controllers = Controllers(settings.environment, out / "controllers.log", out / "clock_ahead_s")
        try:
            main = controllers.start()
            jobs.submit_all()
            log = LogRows(out / "lake")
            with watching(jobs) as (checkpoints, snapshots):
                world = World(
                    *(out, cluster, proxy, jobs, settings, controllers, log, checkpoints, snapshots, main, conditions)
                )
                wait_until(lambda: all(log.of_job(job) for job in PLANNED), 120, "the controller has seen the jobs")
                yield world
        finally:
            controllers.kill_all()


@contextmanager
def watching(jobs: Jobs) -> Iterator[tuple[CheckpointWatch, SnapshotWatch]]:
    """Poll the checkpoints of the jobs, and the counts in them, until the end of the block."""
    watch, counts, ended = CheckpointWatch(jobs.client), SnapshotWatch(jobs.client), threading.Event()

    def run() -> None:
        while not ended.wait(_POLL_EVERY_S):
            for job_id in list(jobs.ids.values()):
                watch.poll(job_id)
                counts.poll(job_id)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield watch, counts
    finally:
        ended.set()
        thread.join()
