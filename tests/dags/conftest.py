from __future__ import annotations

import atexit
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
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
os.environ["AIRFLOW__CORE__PLUGINS_FOLDER"] = str(REPOSITORY / "page" / "airflow_plugin")
os.environ["AIRFLOW__CORE__UNIT_TEST_MODE"] = "False"


@pytest.fixture(scope="session")
def dags() -> dict[str, DAG]:
    """The project's DAGs as the DAG processor loads them."""
    from airflow.dag_processing.dagbag import DagBag

    bag = DagBag(str(DAG_FOLDER), known_pools=None)
    assert bag.import_errors == {}
    return dict(bag.dags)


@pytest.fixture(scope="session")
def run_python(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., str]]:
    """Run code in a process of its own that has only Airflow imported and starts elsewhere; returns its output.

    Airflow is imported once for all of them: that takes six CPU seconds.
    """
    folder = tmp_path_factory.mktemp("forks")
    output, errors = folder / "output", folder / "errors"
    environment = {key: value for key, value in os.environ.items() if not key.startswith("TIDEWISE")}
    command = [sys.executable, "-m", "tests.support.airflow_forks"]
    with subprocess.Popen(
        command,
        env=environment | {"PYTHONPATH": str(REPOSITORY)},
        cwd="/",
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as server:
        assert server.stdin
        assert server.stdout
        requests, replies = server.stdin, server.stdout

        def run(code: str, *arguments: str, **variables: str) -> str:
            request = {"code": code, "arguments": arguments, "variables": variables}
            requests.write(json.dumps(request | {"output": str(output), "errors": str(errors)}) + "\n")
            requests.flush()
            ended = next((line for line in replies if line.startswith("exit ")), "")
            assert ended.strip() == "exit 0", errors.read_text()
            return output.read_text()

        yield run
