from __future__ import annotations

import atexit
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from airflow.sdk import DAG

REPOSITORY = Path(__file__).resolve().parents[2]
DAG_FOLDER = REPOSITORY / "dags"

# Airflow reads its home when it is first imported, which happens in this process only below this folder.
_HOME = tempfile.mkdtemp(prefix="tidewise-airflow-")
atexit.register(shutil.rmtree, _HOME, ignore_errors=True)
os.environ["AIRFLOW_HOME"] = _HOME
os.environ["AIRFLOW__CORE__LOAD_EXAMPLES"] = "False"
os.environ["AIRFLOW__CORE__UNIT_TEST_MODE"] = "False"


@pytest.fixture(scope="session")
def dags() -> dict[str, DAG]:
    """The project's DAGs as the DAG processor loads them."""
    from airflow.dag_processing.dagbag import DagBag

    bag = DagBag(str(DAG_FOLDER), known_pools=None)
    assert bag.import_errors == {}
    return dict(bag.dags)


@pytest.fixture(scope="session")
def run_python():
    """Run code in a fresh interpreter that starts elsewhere, as Airflow's processes may; returns its output."""

    def run(code: str, *arguments: str, **variables: str) -> str:
        environment = {key: value for key, value in os.environ.items() if not key.startswith("TIDEWISE")}
        done = subprocess.run(
            [sys.executable, "-c", code, *arguments],
            env=environment | {"PYTHONPATH": str(REPOSITORY)} | variables,
            cwd="/",
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run
