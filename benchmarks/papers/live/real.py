"""The experiment on a real Flink cluster: one job per paper, all at the same time, each under its own policy."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.papers.live.deciding import Decider
from benchmarks.papers.live.experiment import (
    COST_US,
    DECIDE_EVERY_S,
    RETAINED_WINDOWS,
    SLOTS_MAX,
    STEPS,
    TOTAL_S,
    WAIT_US,
    WINDOW_S,
    Change,
    PaperPolicy,
    Trial,
    find_step,
)
from include.flink.faults import FlinkError
from include.flink.poller import RestSource
from lab.local_flink.build import ENTRY_CLASS, build_job
from lab.local_flink.cluster import ClusterOptions, LocalCluster
from lab.local_flink.job_client import JobClient
from lab.local_flink.load import ENRICH, LoadOptions, write_trace
from models.polling.poll_history import PollHistory
from models.polling.seen_job import PolledJob

_CLUSTER = "papers"
_POLL_EVERY_S = 2.5
_STARTS_S = 180.0


@dataclass(slots=True)
class _TunedJob:
    paper: PaperPolicy
    trial: Trial
    decider: Decider | None = None
    job_id: str = ""


def run_real(papers: Sequence[PaperPolicy], folder: Path) -> dict[str, Trial]:
    """Run the policies on jobs of one cluster; returns paper -> what its policy did."""
    options = ClusterOptions.quick(slots=SLOTS_MAX * (len(papers) + 1) // 2, task_managers=2)
    with LocalCluster(folder.resolve(), options, ready_timeout_s=_STARTS_S) as cluster:
        jar = cluster.client.upload_jar(build_job())
        jobs = {paper.paper: _TunedJob(paper, Trial()) for paper in papers}
        began_s = time.time()
        for name, job in jobs.items():
            job.job_id = cluster.client.run_jar(jar, ENTRY_CLASS, _arguments(name, cluster.work_dir))
        _tune(cluster.client, jobs, began_s)
        return {name: job.trial for name, job in jobs.items()}


def _arguments(name: str, folder: Path) -> list[str]:
    trace = folder / "steps.csv"
    points, at_s = list[tuple[int, float]](), 0
    for rate, seconds in STEPS:
        points += [(at_s, rate), (at_s + seconds - 1, rate)]
        at_s += seconds
    write_trace(trace, [*points, (at_s + 3600, STEPS[-1][0])])
    load = LoadOptions(job_name=name, compression=1.0, cost_us=COST_US, wait_us=WAIT_US, max_parallelism=64)
    return load.arguments(trace)


def _tune(client: JobClient, jobs: dict[str, _TunedJob], began_s: float) -> None:
    """Poll, and let each policy decide on its job, until the last step is over."""
    source = RestSource(client, _CLUSTER, time.time)
    history = PollHistory({_CLUSTER: WINDOW_S}, polls=round(RETAINED_WINDOWS * WINDOW_S / _POLL_EVERY_S), settle_s=0)
    next_s, step = began_s + DECIDE_EVERY_S, 0
    while (now_s := time.time()) < began_s + TOTAL_S:
        history.add(source.poll().records)
        now_step = find_step(now_s - began_s)
        if now_step is not None and now_step != step:
            _note_ends(client, jobs)
            step = now_step
        if now_s >= next_s:
            next_s += DECIDE_EVERY_S
            _decide(client, history, jobs, step)
        time.sleep(max(0.0, _POLL_EVERY_S - (time.time() - now_s)))
    _note_ends(client, jobs)


def _decide(client: JobClient, history: PollHistory, jobs: dict[str, _TunedJob], step: int) -> None:
    now_s = time.time()
    windows = history.windows(now_s)
    for number, observed in enumerate(history.jobs()):
        job = jobs.get(observed.job)
        if job is None or observed.job_id != job.job_id or not _is_ready(client, observed):
            continue
        assert observed.graph is not None
        job.decider = job.decider or Decider(job.paper, observed.graph, job.trial)
        job.trial.decisions += 1
        result = windows.observations(number)
        recent = result.rows(np.arange(max(0, len(result) - RETAINED_WINDOWS), len(result)))
        wanted = job.decider.decide(observed.running, recent, round(now_s))
        if wanted is not None:
            client.set_parallelism(job.job_id, wanted)
            job.trial.changes.append(Change(step, (wanted[ENRICH], max(wanted.values()))))


def _is_ready(client: JobClient, seen: PolledJob) -> bool:
    """Whether a job runs at what it was asked for: while it is rescaled, nobody decides."""
    if not seen.is_up or seen.graph is None:
        return False
    try:
        bounds = client.upper_bounds(seen.job_id)
    except FlinkError:
        return False
    return {name: bounds.get(vertex) for name, vertex in seen.vertex_ids.items()} == dict(seen.running)


def _note_ends(client: JobClient, jobs: dict[str, _TunedJob]) -> None:
    """Keep what each job was last asked to run at, for the step that is over."""
    for job in jobs.values():
        names = {str(one["id"]): str(one["name"]) for one in client.job(job.job_id)["vertices"]}
        bounds = {names[vertex]: bound for vertex, bound in client.upper_bounds(job.job_id).items()}
        job.trial.ends.append(bounds[ENRICH])
