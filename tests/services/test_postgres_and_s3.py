"""Short form of `make test-long PART=cluster`: Airflow's database in PostgreSQL, the lake on S3, a job is rescaled."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path

import pytest
from airflow_parts import PROGRAM
from cluster_settings import LAKE, local_places
from controller_process import read_log
from flink_server import FakeJob, FlinkServer, serving
from local_postgres import is_installed, local_postgres, read_rows
from local_s3 import KEYS, s3_server

from benchmarks.chaos.plan_rows import plan_step
from benchmarks.chaos.run_settings import CLUSTER
from include.extras import lacks_extra
from include.place import place
from include.settings import PROJECT, SETTINGS_FILE_VARIABLE, load_settings
from tools.test_parts import PartMissingError, find_moto

JOB = "orders"
pytestmark = [
    pytest.mark.skipif(lacks_extra("postgres"), reason='an extra is not installed: make setup EXTRA="postgres"'),
    pytest.mark.skipif(not is_installed(), reason="as root on Debian or Ubuntu: apt-get install -y postgresql"),
]


@pytest.fixture
def flink(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FlinkServer]:
    """A cluster with one job, under settings by which every path lies on S3."""
    try:
        packages = str(find_moto())  # boto3 among them, which the settings want to see for S3
    except PartMissingError as error:
        pytest.skip(str(error))
    for name in [one for one in os.environ if one.startswith(("AIRFLOW", "TIDEWISE"))]:
        monkeypatch.delenv(name)
    with ExitStack() as stack:
        server = stack.enter_context(serving(FlinkServer(FakeJob(name=JOB))))
        file = tmp_path / "tidewise.toml"
        file.write_text(local_places(server.url, stack.enter_context(s3_server("--key", KEYS["AWS_ACCESS_KEY_ID"]))))
        os.utime(file, (time.time() - 3600.0,) * 2)  # settings that were just written wait, in case more follow
        monkeypatch.syspath_prepend(packages)
        paths = os.pathsep.join([str(PROJECT), packages])
        for name, value in {**KEYS, SETTINGS_FILE_VARIABLE: str(file), "PYTHONPATH": paths}.items():
            monkeypatch.setenv(name, value)
        yield server


@pytest.fixture
def postgres(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flink: FlinkServer) -> Iterator[str]:
    """An Airflow that has its tables in PostgreSQL."""
    with local_postgres("airflow") as address:
        variables = {
            "AIRFLOW_HOME": str(tmp_path / "airflow"),
            "AIRFLOW__CORE__DAGS_FOLDER": str(PROJECT / "dags"),
            "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
            "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"postgresql+psycopg2://{address}/airflow",
        }
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        run(PROGRAM, "db", "migrate")
        yield address


def run(*command: str) -> str:
    """Run a program; returns what it prints."""
    done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command}: {done.stdout[-2000:]}{done.stderr[-3000:]}"
    return done.stdout


def test_a_job_is_rescaled_with_everything_on_servers(flink: FlinkServer, postgres: str) -> None:
    load_settings()  # this process reads and writes the lake, too
    (job,), now_s = flink.jobs, time.time()
    before = {job.names[one]: count for one, count in job.parallelism.items()}
    plan_step(LAKE, (job.name, job.job_id), before, dict.fromkeys(before, 3), (now_s, now_s + 3600.0))
    as_of = datetime.now(UTC).isoformat()
    run(PROGRAM, "dags", "test", "tidewise_control", "--conf", f'{{"as_of": "{as_of}"}}')
    states = read_rows(postgres, "airflow", "SELECT task_id, state FROM task_instance")
    assert states == [("control", "success")]
    assert read_log(place(LAKE)) == []  # a tick in the past sends nothing, and had no poll
    assert not flink.asked("PUT")
    run(sys.executable, "-m", "controller", "--once")
    assert len(flink.asked("PUT")) == 1
    assert job.requested is not None
    assert set(job.requested.values()) == {3}
    rows = read_log(place(LAKE), cluster=CLUSTER, job=JOB, verb="rescale")
    assert {dict(row["parallelism_to"])["enrich"] for row in rows} == {3}
