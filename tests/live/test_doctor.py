"""`tidewise doctor` and `init` on real clusters: a healthy one, and one with a default scheduler and no checkpoints."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from local_prometheus import running_prometheus
from waiting import wait_until

from cli.doctor.cluster import check_cluster
from cli.doctor.findings import Level
from cli.doctor.probe import Probe
from cli.doctor.series import check_series
from include.settings import Cluster, Settings
from lab.local_flink.cluster import ClusterOptions, LocalCluster, free_ports
from lab.local_flink.load import LoadOptions, submit_load

pytestmark = pytest.mark.e2e
ROOT = Path(__file__).resolve().parents[2]
# What a team forgets, and what the Kubernetes operator writes into the configuration of its deployments.
BROKEN = {
    "jobmanager.scheduler": "default",
    "execution.checkpointing.interval": "",
    "execution.checkpointing.min-pause": "",
    "job.autoscaler.enabled": "true",
    "metrics.reporter.prom.filter.excludes": "*:busyTimeMsPerSecond",
}


def errors(url: str) -> dict[str, str]:
    findings = check_cluster("live", Cluster(rest_url=url, slots_max=8), Settings())
    assert all(one.remedy for one in findings if one.level is not Level.OK)
    return {one.check: one.text for one in findings if one.level is Level.ERROR}


def command(*options: str, settings: Path) -> subprocess.CompletedProcess[str]:
    plain = {key: value for key, value in os.environ.items() if not key.startswith(("TIDEWISE", "AIRFLOW"))}
    return subprocess.run(
        [sys.executable, "-m", "cli.console", *options],
        cwd=ROOT,
        env=plain | ({"TIDEWISE_SETTINGS": str(settings)} if settings.exists() else {}),
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_healthy_cluster_has_no_error(flink_cluster):
    assert wait_until(lambda: errors(flink_cluster.rest_url) == {}, 60)  # metrics come some seconds after the job


def test_init_writes_what_the_doctor_accepts(flink_cluster, tmp_path):
    file, place = tmp_path / "tidewise.toml", str(tmp_path / "out")
    made = command("init", "--rest-url", flink_cluster.rest_url, "--yes", "--file", str(file), settings=file)
    assert made.returncode == 0, made.stdout + made.stderr
    text = file.read_text()
    assert 'mode = "dry-run"' in text
    assert "slots_max = 8" in text
    paths = f'\n[paths]\nlake = "{place}/lake"\nraw = "{place}/raw"\nout = "{place}"\n'
    file.write_text(text + paths + f'[mlflow]\ntracking_uri = "sqlite:///{place}/mlflow.db"\n')
    done = command("doctor", "--json", settings=file)
    result = json.loads(done.stdout)
    assert result["counts"]["error"] == 0, result
    assert done.returncode == 0
    parts = {one["part"] for one in result["findings"]}
    assert {"Python", "Java", "Spark", "settings", "cluster flink", "lake", "MLflow", "Airflow", "disk"} <= parts
    again = command("init", "--rest-url", flink_cluster.rest_url, "--yes", "--file", str(file), settings=file)
    assert again.returncode == 1
    assert "--force" in again.stderr


def missing_series(url: str) -> list[str]:
    return [one.text for one in check_series(Probe(url)) if one.level is Level.ERROR]


def test_a_broken_cluster_is_told_each_of_its_faults(tmp_path):
    ports = free_ports(4)
    options = ClusterOptions.quick(settings=BROKEN, reporter_ports=tuple(ports))
    with (
        LocalCluster(tmp_path / "flink", options) as cluster,
        running_prometheus(tmp_path / "prom", ports) as prometheus,
    ):
        job_id = submit_load(cluster.client, cluster.work_dir, LoadOptions(low_per_s=100, high_per_s=200))
        cluster.client.wait_for_parallelism(job_id, {}, timeout_s=120)
        assert wait_until(
            lambda: errors(cluster.rest_url).keys() == {"scheduler", "checkpoints of orders", "autoscaler"}, 60
        )
        lost = ["missing: flink_taskmanager_job_task_busyTimeMsPerSecond"]
        assert wait_until(lambda: missing_series(prometheus) == lost, 60), missing_series(prometheus)
        url = cluster.rest_url
    assert "nothing listens" in errors(url)["address"]
