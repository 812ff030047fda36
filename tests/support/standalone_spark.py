"""A standalone Spark cluster of this machine: a master and workers, each a process of PySpark's own distribution."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import psutil
import pyspark
from waiting import free_port, wait_until

HOME = Path(pyspark.__file__).parent
HOST = "127.0.0.1"


@contextmanager
def standalone_spark(folder: Path, workers: int, memory: str) -> Iterator[str]:
    """Run a master and workers of one core each; gives the master's URL.

    Raises:
        TimeoutError: the workers do not register.
    """
    port, page = free_port(), free_port()
    url = f"spark://{HOST}:{port}"
    with ExitStack() as running:
        running.enter_context(_process(folder / "master", "Master", "--port", str(port), "--webui-port", str(page)))
        for number in range(workers):
            options = ("--cores", "1", "--memory", memory, "--webui-port", str(free_port()))
            running.enter_context(_process(folder / f"worker-{number}", "Worker", *options, url))
        if not wait_until(lambda: _count_workers(page) == workers, 300, 0.5):
            raise TimeoutError(f"not {workers} workers came: see {folder}")
        yield url


def find_executors() -> list[psutil.Process]:
    """Return the executors of the clusters that this program has started."""
    result = []
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            if any("CoarseGrainedExecutorBackend" in one for one in process.cmdline()):
                result.append(process)
    return result


def _count_workers(page: int) -> int:
    try:
        with urlopen(f"http://{HOST}:{page}/json/", timeout=5) as reply:
            return sum(one["state"] == "ALIVE" for one in json.load(reply)["workers"])
    except (URLError, OSError, ValueError):
        return 0


@contextmanager
def _process(folder: Path, kind: str, *options: str) -> Iterator[None]:
    folder.mkdir(parents=True)
    command = [str(HOME / "bin" / "spark-class"), f"org.apache.spark.deploy.{kind.lower()}.{kind}", "--host", HOST]
    variables = {"SPARK_HOME": str(HOME), "SPARK_WORKER_DIR": str(folder), "SPARK_LOCAL_DIRS": str(folder)}
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [*command, *options],
            env=os.environ | variables,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            cwd=folder,
        )
    try:
        yield
    finally:
        process.terminate()
        process.wait(30)
