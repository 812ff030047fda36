"""Starts the S3 server of the tests, and says how it is reached."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote, unquote
from urllib.request import urlopen

from tools.test_parts import find_moto

KEYS = {"AWS_ACCESS_KEY_ID": "test-key", "AWS_SECRET_ACCESS_KEY": "test-secret"}
BUCKET = "lake"


@contextmanager
def s3_server(*options: str) -> Iterator[str]:
    """Give the address of a server that holds nothing but an empty bucket; options are those of s3_server.py."""
    command = [sys.executable, str(Path(__file__).with_name("s3_server.py")), "--bucket", BUCKET, *options]
    environment = {**os.environ, "PYTHONPATH": str(find_moto())}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment) as server:
        assert server.stdout is not None
        try:
            address = server.stdout.readline().decode().strip()
            assert address, "the server did not start"
            yield address
        finally:
            server.kill()


def count_requests(address: str) -> dict[str, int]:
    """Return method or fault -> requests so far."""
    with urlopen(f"{address}/_counts") as reply:
        pairs = (one.split("=") for one in reply.read().decode().split())
        return {name: int(count) for name, count in pairs}


def list_requests(address: str) -> list[str]:
    """Return method and object, or method and query of a listing, of each request since the last call."""
    with urlopen(f"{address}/_requests") as reply:
        return [unquote(one) for one in reply.read().decode().splitlines()]


@contextmanager
def losing_answer(address: str, path: str) -> Iterator[Callable[[], None]]:
    """Have the next PUT to a path that contains ``path`` carried out and answered, after the block, with an error.

    Gives what waits until it was carried out; what others do meanwhile comes between that and its retry.
    """
    urlopen(f"{address}/_lose?{quote(path)}").close()
    try:
        yield lambda: urlopen(f"{address}/_written").close()
    finally:
        urlopen(f"{address}/_answer").close()


def s3_environment(address: str, folder: str = "run") -> dict[str, str]:
    """Return the variables under which every path lies on the server."""
    root = f"s3://{BUCKET}/{folder}"
    return {
        **KEYS,
        "TIDEWISE__STORAGE__ENDPOINT": address,
        "TIDEWISE__PATHS__LAKE": f"{root}/lake",
        "TIDEWISE__PATHS__RAW": f"{root}/raw",
        "TIDEWISE__PATHS__OUT": root,
        "TIDEWISE__MLFLOW__ARTIFACT_ROOT": f"{root}/mlartifacts",
    }
