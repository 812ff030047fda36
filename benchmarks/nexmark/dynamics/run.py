"""One run: a cluster per policy with the same jobs, the same events at the same times, everything recorded."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError

from benchmarks.nexmark.dynamics.jobs import JOBS, AgeReader, Job, find_costly, submit
from benchmarks.nexmark.dynamics.policies import (
    AUTOSCALERS,
    CLUSTER,
    DECIDE_EVERY_S,
    POLL_EVERY_S,
    SLOTS_MAX,
    TIDEWISE,
    WINDOW_S,
    make_rival,
    start_actor,
)
from benchmarks.nexmark.dynamics.schedule import Event, Kind, make_trace
from benchmarks.nexmark.dynamics.series import Series, Window
from benchmarks.nexmark.rival import Rival
from include.flink.faults import FlinkError
from include.flink.poller import RestSource
from include.tables import CONTROL_LOG
from lab.local_flink.build import build_nexmark
from lab.local_flink.cluster import ClusterOptions, LocalCluster
from lab.local_flink.job_client import JobClient, running_parallelism
from lab.local_flink.processes import end_process
from models.arrays import Floats
from models.policies.observations import Observations
from models.polling.poll_history import PollHistory
from models.polling.seen_job import PolledJob
from tools.record_queries import wait_until_running

LOOK_EVERY_S = 5.0
TASK_MANAGERS = 3
DOWN_S = 60.0
"""How long the lost TaskManager is away."""
_REPLIES_S = 180.0
_STARTS_S = 180.0
_SUBMITTED_WITHIN_S = 60.0
# Flink's own, where those of a local cluster are quicker.
_FLINK_DEFAULTS = dict.fromkeys(("heartbeat.interval", "heartbeat.timeout", "execution.checkpointing.min-pause"), "")


@dataclass(frozen=True, slots=True)
class Conditions:
    """What is the same for all policies of a run.

    Attributes:
        jobs: names of :data:`JOBS`.
        schedule: of the events.
        checkpoint_every_s: interval of checkpoints.
        jar: of Flink's autoscaler.
    """

    jobs: Sequence[str]
    schedule: tuple[Event, ...]
    checkpoint_every_s: float
    jar: Path | None


@dataclass(slots=True)
class _Watched:
    job: Job
    job_id: str
    ages: AgeReader
    rival: Rival | None
    series: Series = field(default_factory=Series)
    windows_until_s: float = 0.0


class World:
    """The cluster of a policy with its jobs.

    Args:
        policy: who rescales them.
        out: for everything that it writes.
        conditions: of the run.
    """

    def __init__(self, policy: str, out: Path, conditions: Conditions) -> None:
        self.policy, self._out, self._conditions = policy, out, conditions
        slots = math.ceil(SLOTS_MAX * len(conditions.jobs) / (TASK_MANAGERS - 1))  # enough with a TaskManager lost
        options = ClusterOptions(
            slots=slots,
            task_managers=TASK_MANAGERS,
            checkpoint_every_s=conditions.checkpoint_every_s,
            settings={**_FLINK_DEFAULTS, **AUTOSCALERS.get(policy, {})},
        )
        self._cluster = LocalCluster(out / "flink", options, ready_timeout_s=_STARTS_S)
        self.jobs: dict[str, _Watched] = {}
        self._began_s = self._decide_s = self._poll_s = 0.0
        self._returns_s = math.inf

    def __enter__(self) -> World:
        self._stack = ExitStack()
        self._stack.enter_context(self._cluster)
        self.client = JobClient(self._cluster.rest_url, read_timeout_s=_REPLIES_S)
        self._source = RestSource(self.client, CLUSTER, time.time)
        self._history = PollHistory({CLUSTER: WINDOW_S}, polls=400, settle_s=60)
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def begin(self, begins_s: float) -> None:
        """Start the jobs, and who acts on them; the run begins then, epoch seconds."""
        self._began_s = self._decide_s = self._poll_s = begins_s
        jar_id = self.client.upload_jar(build_nexmark())
        for name in self._conditions.jobs:
            lead_s = max(0, round(begins_s - time.time()))
            trace = make_trace(self._conditions.schedule, JOBS[name].full_per_s, lead_s)
            job_id = submit(self.client, self._cluster.work_dir, jar_id, JOBS[name], trace)
            self.jobs[name] = _Watched(JOBS[name], job_id, AgeReader(self.client, job_id), make_rival(self.policy))
        wait_until_running(self.client, [job.job_id for job in self.jobs.values()])
        actor = start_actor(self.policy, self._out, self._cluster.rest_url, self._conditions.jar)
        if actor is not None:
            self._stack.callback(end_process, actor, grace_s=20)

    def look(self, now_s: float) -> None:
        """Read what is true, poll as Tidewise does where it is time, and let a policy of ours decide."""
        if now_s >= self._returns_s:
            self._cluster.start_taskmanager(TASK_MANAGERS - 1, wait=False)
            self._returns_s = math.inf
        for job in self.jobs.values():
            try:
                self._look_at(job)
            except (FlinkError, StopIteration):
                continue
        if now_s >= self._poll_s:
            self._poll_s += POLL_EVERY_S
            self._poll(now_s)

    def act(self, kind: Kind, now_s: float) -> str:
        """Do what an event is; returns a line."""
        if kind == Kind.LOST_TASK_MANAGER:
            self._cluster.kill_taskmanager(TASK_MANAGERS - 1)
            self._returns_s = now_s + DOWN_S
        for job in self.jobs.values():
            if kind == Kind.SAVEPOINT:
                body = {"target-directory": (self._out / "savepoints").resolve().as_uri(), "cancel-job": False}
                self.client.transport.send_json("POST", f"/jobs/{job.job_id}/savepoints", json=body)
            if kind == Kind.PERSON:
                costly = find_costly(job.job, self.client.job(job.job_id))
                bounds = self.client.upper_bounds(job.job_id)
                wanted = min(bounds[costly["id"]] + 1, SLOTS_MAX)
                self.client.put_resource_requirements(job.job_id, {**bounds, costly["id"]: wanted})
        return f"{self.policy}: {kind}"

    def finish(self) -> dict[str, Series]:
        """Return the series of the jobs, with what Tidewise's log says."""
        for row in _read_log(self._out / "lake") if self.policy in TIDEWISE else ():
            job = self.jobs.get(str(row["job"]))
            to, since = (_read_map(row[name]) for name in ("parallelism_to", "parallelism_from"))
            names = [] if job is None else [name for name in to if name.startswith(job.job.costly)]
            if job is not None and names:
                at_s = float(str(row["decided_at_s"])) - self._began_s
                wish = (at_s, to[names[0]], since.get(names[0], 0), str(row["verb"]))
                job.series.wishes.append((*wish, str(row["reason"])))
        return {name: job.series for name, job in self.jobs.items()}

    def _look_at(self, job: _Watched) -> None:
        details = self.client.job(job.job_id)
        at_s = time.time() - self._began_s
        costly = find_costly(job.job, details)
        bound = self.client.upper_bounds(job.job_id)[costly["id"]]
        job.series.states.append((at_s, int(costly["parallelism"]), bound, bool(running_parallelism(details))))
        age_s = job.ages.read_s(details)
        if math.isfinite(age_s):
            job.series.ages.append((at_s, age_s))

    def _poll(self, now_s: float) -> None:
        self._history.add(self._source.poll().records)
        windows = self._history.windows(time.time())
        decides = now_s >= self._decide_s
        self._decide_s += DECIDE_EVERY_S if decides else 0
        for number, known in enumerate(self._history.jobs()):
            job = self.jobs.get(known.job)
            if job is None or known.graph is None or job.job_id != known.job_id:
                continue
            observed = windows.observations(number)
            sources = [known.graph.position(name) for name in known.graph.sources]
            for place, start_s in enumerate(observed.window_start_s):
                end_s = float(start_s) + WINDOW_S - self._began_s
                if end_s > job.windows_until_s:
                    job.windows_until_s = end_s
                    age_s = _largest(observed.latency_ms[place, sources]) / 1000.0
                    pending, taken = (
                        values[place, sources].sum()
                        for values in (observed.pending_records, observed.processing_rate_per_s)
                    )
                    outstanding = observed.outstanding_records
                    held = math.nan if outstanding is None else float(outstanding[place, sources].sum())
                    old_s = pending / taken if taken > 0 else math.nan
                    is_disturbed = bool(observed.disturbed[place])
                    age, old, left = (_or_none(value) for value in (age_s, float(old_s), held))
                    job.series.windows.append(Window(end_s, age, old, left, is_disturbed))
            if decides and job.rival is not None:
                self._decide(job, job.rival, known, observed)

    def _decide(self, job: _Watched, rival: Rival, known: PolledJob, observed: Observations) -> None:
        assert known.graph is not None
        bounds = self.client.upper_bounds(job.job_id)
        if not known.is_up or {name: bounds.get(vertex) for name, vertex in known.vertex_ids.items()} != dict(
            known.running
        ):
            return  # while it is rescaled nobody decides
        wanted = rival.decide(known.graph, known.running, observed, round(time.time()))
        if wanted is not None:
            targets = {vertex: wanted[name] for name, vertex in known.vertex_ids.items()}
            self.client.put_resource_requirements(job.job_id, targets)


def run_side_by_side(out: Path, policies: Sequence[str], conditions: Conditions) -> dict[str, dict[str, Series]]:
    """Run all policies at the same time; returns policy -> job -> what was recorded."""
    with ExitStack() as stack:
        worlds = [stack.enter_context(World(name, out / name, conditions)) for name in policies]
        began_s = time.time() + _SUBMITTED_WITHIN_S * len(worlds)
        for world in worlds:
            world.begin(began_s)
        print(f"{', '.join(conditions.jobs)} run under {', '.join(policies)}", flush=True)
        waiting = list(conditions.schedule)
        while (now_s := time.time()) < began_s + conditions.schedule[-1].ends_s:
            if waiting and now_s >= began_s + waiting[0].begins_s:
                event = waiting.pop(0)
                for world in worlds:
                    print(f"{now_s - began_s:6.0f} s  {world.act(event.kind, now_s)}", flush=True)
            for world in worlds:
                world.look(now_s)
            time.sleep(max(0.0, LOOK_EVERY_S - (time.time() - now_s)))
        return {world.policy: world.finish() for world in worlds}


def _largest(values: Floats) -> float:
    return max((float(value) for value in values if math.isfinite(value)), default=math.nan)


def _or_none(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _read_map(given: object) -> dict[str, int]:
    return {str(name): int(value) for name, value in given} if isinstance(given, list) else {}


def _read_log(lake: Path) -> list[Mapping[str, object]]:
    try:
        rows = DeltaTable(str(lake / CONTROL_LOG.relative_path)).to_pyarrow_table().to_pylist()
    except TableNotFoundError:
        return []
    return sorted(rows, key=lambda row: (row["lease_number"], row["entry"]))
