"""What holds for every test."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from include import s3_client

# How long an example takes says more about what else runs on the machine than about the code.
settings.register_profile("tidewise", deadline=None)
settings.load_profile("tidewise")

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
