"""A query under load steps: one job per policy, all at the same time, each rescaled by its own policy."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError

from benchmarks.nexmark.autoscaler_process import read_advice
from benchmarks.nexmark.controller_settings import CLUSTER
from benchmarks.nexmark.counters import CounterSeries
from benchmarks.nexmark.experiment import (
    DECIDE_EVERY_S,
    MOST,
    POLL_EVERY_S,
    RIVALS,
    SETTLES_S,
    STEPS,
    TIDEWISE,
    WINDOW_S,
    JobTrial,
    Truth,
    find_step,
    job_name,
    make_trace,
)
from benchmarks.nexmark.rival import Rival
from include.flink.faults import FlinkError
from include.flink.poller import RestSource
from include.tables import CONTROL_LOG
from lab.local_flink.job_client import JobClient
from lab.local_flink.nexmark import NexmarkQuery, submit_query
from models.policies.observations import Observations
from models.polling.poll_history import PollHistory
from models.polling.seen_job import PolledJob
from tools.record_queries import wait_until_running

_RETAINED_WINDOWS = 60


@dataclass(slots=True)
class _Job:
    policy: str
    trial: JobTrial = field(default_factory=JobTrial)
    rival: Rival | None = None
    job_id: str = ""
    began_s: float = 0.0
    rescaled_s: float = 0.0
    bounds: dict[str, int] = field(default_factory=dict)
    pending: float = float("nan")
    noted_s: int = 0
    counters: CounterSeries | None = None


class Trial:
    """One query.

    Args:
        truth: of the query; says which vertex limits it.
        seconds: length of all load steps.
    """

    def __init__(self, client: JobClient, query: NexmarkQuery, truth: Truth, seconds: float) -> None:
        self._client, self._query, self._truth, self._seconds = client, query, truth, seconds
        names = [TIDEWISE, *RIVALS]
        self._jobs = {job_name(query.name, name): _Job(name) for name in names}
        for job in self._jobs.values():
            job.rival = Rival(*RIVALS[job.policy], MOST) if job.policy in RIVALS else None
        self._began_s = 0.0
        self._step = 0

    def run(
        self, folder: Path, jar_id: str, lake: Path, advice: Path, say: Callable[[str], None]
    ) -> dict[str, JobTrial]:
        """Run all load steps; returns policy -> what happened to its job.

        Args:
            folder: that the JobManager sees, for traces.
            jar_id: of the runner, uploaded.
            lake: of the controller.
            advice: log of the autoscaler's own process; it need not be there.
            say: prints a line.
        """
        trace = make_trace(self._query.unit_per_s, self._seconds)
        for name, job in self._jobs.items():
            job.began_s = time.time()  # its trace begins with its submission, which takes a while
            job.job_id = submit_query(self._client, folder, self._query.options(trace, name), jar_id=jar_id)
        self._began_s = min(job.began_s for job in self._jobs.values())
        wait_until_running(self._client, [job.job_id for job in self._jobs.values()])
        for job in self._jobs.values():
            job.counters = CounterSeries(self._client, job.job_id)
        self._observe(say)
        for name, job in self._jobs.items():
            job.trial.said = [
                (find_step(at_s - self._began_s, self._seconds), why) for at_s, why in _read_reasons(lake, name)
            ]
            job.trial.advised = [
                (find_step(one.at_s - self._began_s, self._seconds), one.parallelism)
                for one in read_advice(advice)
                if (one.job_id, one.vertex_id) == (job.job_id, self._truth.costly)
            ]
            self._client.cancel(job.job_id)
        return {job.policy: job.trial for job in self._jobs.values()}

    def _observe(self, say: Callable[[str], None]) -> None:
        source = RestSource(self._client, CLUSTER, time.time)
        history = PollHistory({CLUSTER: WINDOW_S}, polls=round(_RETAINED_WINDOWS * WINDOW_S / POLL_EVERY_S), settle_s=0)
        next_s = self._began_s + DECIDE_EVERY_S
        while (now_s := time.time()) < self._began_s + self._seconds:
            history.add(source.poll().records)
            step = find_step(now_s - self._began_s, self._seconds)
            if step != self._step:
                self._end_step(say)
                self._step = step
            windows = history.windows(time.time())
            for number, observed in enumerate(history.jobs()):
                job = self._jobs.get(observed.job)
                if job is not None and observed.job_id == job.job_id and observed.graph is not None:
                    result = windows.observations(number)
                    self._note(job, observed, result)
                    if now_s >= next_s and job.rival is not None:
                        self._decide(job, observed, result, say)
            next_s += DECIDE_EVERY_S if now_s >= next_s else 0.0
            time.sleep(max(0.0, POLL_EVERY_S - (time.time() - now_s)))
        self._end_step(say)

    def _note(self, job: _Job, seen: PolledJob, result: Observations) -> None:
        """Keep what the last window showed, and whether the job was asked for something else."""
        assert seen.graph is not None
        assert job.counters is not None
        try:
            job.counters.read()
            bounds = self._client.upper_bounds(seen.job_id)
        except FlinkError:
            return
        if bounds != job.bounds:
            if job.bounds:
                job.trial.wanted.append((self._step, bounds[self._truth.costly], max(bounds.values())))
                job.rescaled_s = time.time()
            job.bounds = bounds
        if not len(result):
            return
        places = {vertex: seen.graph.position(name) for name, vertex in seen.vertex_ids.items()}
        source = seen.graph.position(seen.graph.sources[0])
        pending = result.pending_records[:, source]
        job.pending = float(pending[-1]) if np.isfinite(pending[-1]) else job.pending
        starts_s = int(result.window_start_s[-1])
        if result.disturbed[-1] or starts_s <= job.noted_s:
            return
        step = find_step(starts_s + WINDOW_S - job.began_s, self._seconds)
        is_settled = find_step(starts_s - SETTLES_S - job.began_s, self._seconds) == step
        if not is_settled or starts_s < max(job.began_s, job.rescaled_s) + SETTLES_S:
            return
        job.noted_s = starts_s
        trial, place = job.trial, places[self._truth.costly]
        trial.arrivals.append((step, float(result.target_data_rate_per_s[-1, source])))
        counted = job.counters.rates_between(starts_s, starts_s + WINDOW_S)
        trial.rates += [
            (step, one, float(result.processing_rate_per_s[-1, at]), counted[one])
            for one, at in places.items()
            if one in counted
        ]
        running, busy = int(result.parallelism[-1, place]), float(result.busy_share[-1, place])
        trial.capacities.append((running, busy, float(result.true_processing_rate_per_s[-1, place])))

    def _decide(self, job: _Job, seen: PolledJob, result: Observations, say: Callable[[str], None]) -> None:
        assert seen.graph is not None
        assert job.rival is not None
        asked = {name: job.bounds.get(vertex) for name, vertex in seen.vertex_ids.items()}
        if not seen.is_up or asked != dict(seen.running):
            return  # while it is rescaled nobody decides
        wanted = job.rival.decide(seen.graph, seen.running, result, round(time.time()))
        if wanted is not None:
            self._client.put_resource_requirements(
                job.job_id, {vertex: wanted[name] for name, vertex in seen.vertex_ids.items()}
            )
            changes = {name.split("[")[0]: to for name, to in wanted.items() if to != seen.running[name]}
            say(f"{self._query.name} {job.policy}: {changes}")

    def _end_step(self, say: Callable[[str], None]) -> None:
        for job in self._jobs.values():
            job.trial.ends.append(job.bounds.get(self._truth.costly, 0))
            job.trial.pending.append(job.pending)
        ends = ", ".join(f"{job.policy} {job.trial.ends[-1]}" for job in self._jobs.values())
        load, _ = STEPS[self._step]
        say(f"{self._query.name} at {load:g} units: {ends}; least {self._truth.least(load)}")


def _read_reasons(lake: Path, job: str) -> list[tuple[float, str]]:
    """Return when the controller wrote what of a job, one line per row of its log."""
    try:
        rows = DeltaTable(str(lake / CONTROL_LOG.relative_path)).to_pyarrow_table().to_pylist()
    except TableNotFoundError:
        return []
    own = sorted((row for row in rows if row["job"] == job), key=lambda row: (row["lease_number"], row["entry"]))
    return [(row["decided_at_s"], f"{row['verb']} {row['reason']}: {row['detail']}") for row in own]
