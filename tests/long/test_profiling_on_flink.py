"""Phoebe's profiling phase on a real Flink cluster: side deployments of the load job at three scale-outs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from include.flink.faults import FlinkError
from include.flink.job_states import TERMINAL_STATES
from include.settings.profiling import ProfiledJob, Profiling
from lab.local_flink.build import ENTRY_CLASS, build_job
from lab.local_flink.cluster import ClusterOptions, LocalCluster
from lab.local_flink.job_client import JobClient
from lab.local_flink.load import LoadOptions, submit_load, write_trace
from lab.policies.phoebe.capacity_profile import CapacityRegression
from lab.profiling.journal import Journal
from lab.profiling.profiling import ProfilingOptions, profile
from lab.stages.profiling.flink_deployments import FlinkDeployments
from models.policies.observations import Latency

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]
NAME = "prod/orders"
# A record waits for 4 ms, so a subtask takes some 240 records/s at most, however busy the machine is.
WAIT_US = 4000
OPTIONS = ProfilingOptions(
    scale_out_min=1,
    scale_out_max=3,
    scale_outs=3,
    first_rate_per_s=100.0,
    rate_step_per_s=300.0,
    settle_s=15,
    window_s=20,
    steps_max=2,
)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory) -> Iterator[LocalCluster]:
    settings = {"metrics.latency.interval": "500 ms", "metrics.latency.granularity": "operator"}
    with LocalCluster(tmp_path_factory.mktemp("flink"), ClusterOptions.quick(slots=8, settings=settings)) as flink:
        yield flink


def deployments(cluster: LocalCluster, traces: Path) -> FlinkDeployments:
    values = {
        "trace": "{trace}",
        "cost-us": "20",
        "wait-us": str(WAIT_US),
        "parallelism": "{parallelism}",
        "job-name": "{job_name}",
    }
    arguments = tuple(part for key, value in values.items() for part in (f"--{key}", value))
    job = ProfiledJob(jar=str(build_job()), entry_class=ENTRY_CLASS, arguments=arguments)
    settings = Profiling(
        adapter="flink",
        rest_url=cluster.rest_url,
        trace_dir=str(traces),
        settle_s=OPTIONS.settle_s,
        window_s=OPTIONS.window_s,
        jobs={NAME: job},
    )
    return FlinkDeployments(JobClient(cluster.rest_url), NAME, job, settings)


def running(cluster: LocalCluster) -> dict[str, str]:
    """Return name -> id of the jobs that have not ended."""
    jobs = cluster.client.jobs()["jobs"]
    return {job["name"]: job["jid"] for job in jobs if job["state"] not in TERMINAL_STATES}


def submit_other(cluster: LocalCluster, folder: Path, name: str) -> str:
    """Submit the load job under a name that is no file's; return its id."""
    trace = folder / "other.csv"
    write_trace(trace, [(0, 5.0), (60, 5.0)])
    options = LoadOptions(job_name=name)
    return cluster.client.run_jar(cluster.client.upload_jar(build_job()), ENTRY_CLASS, options.arguments(trace))


def test_side_deployments_are_measured_and_all_of_them_cancelled(cluster: LocalCluster, tmp_path: Path) -> None:
    """The job that is there stays; throughput follows the rate where it can, capacity grows with the scale-out."""
    submit_load(cluster.client, tmp_path, LoadOptions(low_per_s=20.0, high_per_s=20.0))
    journal = Journal(deployments(cluster, tmp_path))
    result = profile(journal, OPTIONS)
    assert set(running(cluster)) == {"orders"}

    first = {entry.scale_out: entry for entry in journal.entries if entry.kind == "step" and entry.step == 0}
    assert set(first) == {1, 2, 3}
    assert all(entry.throughput_per_s == pytest.approx(100.0, rel=0.2) for entry in first.values())
    assert {row.latency for row in result.rows} == {Latency.END_TO_END}
    assert all(row.latency_ms >= WAIT_US / 1000 / 2 for row in result.rows)
    scale_outs, capacity = result.capacities
    assert scale_outs == [1, 2, 3]
    assert capacity[0] < 1e6 / WAIT_US  # what a subtask can do at most
    assert capacity[0] < capacity[1] < capacity[2]
    assert CapacityRegression.fit(scale_outs, capacity).slope_per_s > 0


def test_what_an_earlier_run_left_is_cancelled_and_nothing_else(cluster: LocalCluster, tmp_path: Path) -> None:
    """A run that was killed closes nothing; another job whose name only begins alike is left alone."""
    killed = deployments(cluster, tmp_path)
    killed.deploy((1,))
    killed.replay(50.0, 0, 1)
    other = submit_other(cluster, tmp_path, f"tidewise-profiling/{NAME}/mine")
    again = deployments(cluster, tmp_path)
    assert f"tidewise-profiling/{NAME}/1" in running(cluster)
    again.deploy((1,))
    remaining = running(cluster)
    again.close()
    assert f"tidewise-profiling/{NAME}/1" not in remaining
    assert other in remaining.values()


def test_too_few_slots_refuse_the_phase_before_anything_is_submitted(cluster: LocalCluster, tmp_path: Path) -> None:
    before = running(cluster)
    refused = deployments(cluster, tmp_path)
    with pytest.raises(FlinkError, match="free slots"):
        profile(refused, ProfilingOptions(scale_out_min=1, scale_out_max=40, scale_outs=8))
    assert running(cluster) == before
