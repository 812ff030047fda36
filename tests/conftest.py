"""What holds for every test."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings
from xdist import is_xdist_worker
from xdist.scheduler import LoadScopeScheduling

from include import s3_client

# How long an example takes says more about what else runs on the machine than about the code.
settings.register_profile("tidewise", deadline=None)
settings.load_profile("tidewise")

# `make test` gives whole files to its workers in this order: those that wait most come first, so that others fill the
# processors meanwhile. The files of tests/live share one Flink cluster, and so one worker.
FIRST = (
    "live/test_flink_cluster.py",
    "live/test_live_control.py",
    "live/test_flink_actuator.py",
    "live/test_doctor.py",
    "e2e/test_run.py",
    "spark",  # before what begins no Java
)

BESIDE_LIVE = ("e2e", "spark", "dags")

S3_VARIABLES = (
    *(*s3_client.ENDPOINT, *s3_client.REGION, *s3_client.KEY_ID, *s3_client.SECRET_KEY, *s3_client.TOKEN),
    *(s3_client.ALLOW_HTTP, s3_client.WRITTEN),
)


def pytest_configure() -> None:
    """Take Ctrl-C: a shell's background process ignores it, and so would every program that a test interrupts.

    Spark's defaults are those for small tables, in this process and in every ``spark-submit`` that a test starts.
    Byte code is written, whatever the environment says: workers and the processes that tests start import the same
    modules, and would each compile all of them.
    """
    sys.dont_write_bytecode = False
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ.setdefault("SPARK_CONF_DIR", str(Path(__file__).parent / "support" / "spark_conf"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the files that take longest first."""
    tests = Path(__file__).parent

    def place(item: pytest.Item) -> int:
        path = item.path.relative_to(tests)
        names = [name for name in (path.as_posix(), path.parts[0]) if name in FIRST]
        return FIRST.index(names[0]) if names else len(FIRST)

    items.sort(key=place)


@pytest.fixture(autouse=True)
def s3_variables_of_before() -> Iterator[None]:
    """Put back the variables of S3: settings write them as they load, and the next test's store would be elsewhere."""
    before = {name: os.environ.get(name) for name in S3_VARIABLES}
    yield
    for name, value in before.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Let tests that follow a cluster in real time go first: workers that begin with others give way to them."""
    global _is_begun  # noqa: PLW0603 - one process is one worker
    if not _is_begun and is_xdist_worker(item) and item.path.parent.name in BESIDE_LIVE:
        os.nice(10)
    _is_begun = True


_is_begun = False


class FileScheduling(LoadScopeScheduling):
    """Gives whole files to workers; those of a folder that share a Flink cluster, an Airflow or a Spark, together.

    A second Spark would begin when the live tests have ended: its first ingestion, training and plan take Java twice as
    long as later ones, which is more than two of them gain.
    """

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        shared = ("tests/live", "tests/dags", "tests/spark")
        return next((folder for folder in shared if file.startswith(f"{folder}/")), file)


def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> LoadScopeScheduling | None:
    """Schedule by files where ``--dist loadfile`` is asked for."""
    return FileScheduling(config, log) if config.getvalue("dist") == "loadfile" else None
