"""Many programs commit to one table on S3: no commit that was reported as done is lost, and none is there twice."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from pathlib import Path

import pytest
from local_s3 import BUCKET, KEYS, count_requests, s3_environment, s3_server
from obstore.exceptions import AlreadyExistsError
from obstore.store import S3Store
from racing_writer import RACE

from include.lake_table import LakeTable
from include.s3_client import client_options

REPOSITORY = Path(__file__).resolve().parents[2]
COMMITS = int(os.environ.get("TIDEWISE_RACE_COMMITS", "30"))  # of each writer; 334 are 1,000 of all
pytestmark = pytest.mark.long


def count_rounds_with_several_winners(address: str, rounds: int) -> int:
    """Return in how many rounds not exactly one of sixteen clients created an object."""
    environment = {"AWS_ENDPOINT_URL": address}
    stores = [
        S3Store(
            BUCKET,
            endpoint=address,
            region="us-east-1",
            access_key_id=KEYS["AWS_ACCESS_KEY_ID"],
            secret_access_key=KEYS["AWS_SECRET_ACCESS_KEY"],
            client_options={**client_options(environment), "timeout": "180s"},  # a slow machine is no lost answer
        )
        for _ in range(16)
    ]
    result = 0
    with ThreadPoolExecutor(len(stores)) as pool:
        for name in range(rounds):
            together = threading.Barrier(len(stores))

            def create(store: S3Store, name: int = name, together: threading.Barrier = together) -> bool:
                together.wait()
                try:
                    store.put(f"rounds/{name}", b"x", mode="create")
                except AlreadyExistsError:
                    return False
                return True

            result += sum(pool.map(create, stores)) != 1
    return result


def test_the_server_of_the_tests_creates_an_object_once() -> None:
    with s3_server("--switches-often") as address:
        assert count_rounds_with_several_winners(address, 200) == 0


def test_no_commit_that_was_reported_as_done_is_lost(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with s3_server("--faults", "0.05", "--seed", "7") as address:
        for name, value in s3_environment(address).items():
            if not name.startswith("TIDEWISE__MLFLOW"):
                monkeypatch.setenv(name, value)
        reported = race(
            tmp_path,
            [
                ("spark", "driver-1", COMMITS),
                ("spark", "driver-2", COMMITS),
                ("delta-rs", "controller", COMMITS),
                ("upkeep", "upkeep", 10**6),
            ],
        )
        from include.settings import load_settings

        rows = LakeTable(load_settings().paths.lake, RACE).read(["writer", "number"], date.min, date.max).to_pylist()
        counts = count_requests(address)
    there = Counter((row["writer"], row["number"]) for row in rows)
    done = {(name, int(number)) for name, word, number, *_ in reported if word == "done" and name != "upkeep"}
    failed = [line for line in reported if line[1] == "failed"]
    merges = sum(name == "upkeep" and word == "done" for name, word, *_ in reported)
    twice = {key: count for key, count in there.items() if count > 1}
    print(
        f"{len(done)} of {3 * COMMITS} commits done, {len(done - there.keys())} of them lost, {len(twice)} twice, "
        f"{len(failed)} failed, {merges} upkeeps; requests {counts}"
    )
    print(*failed[:5], sep="\n")
    assert {"throttled", "failed", "cut"} <= counts.keys()
    assert len(done) > 2 * COMMITS
    assert merges
    assert done - there.keys() == set()
    assert twice == {}


def race(logs: Path, writers: list[tuple[str, str, int]]) -> list[tuple[str, ...]]:
    """Run programs that begin to commit at the same moment; returns writer, word and the rest of each line."""
    environment = {
        **os.environ,
        "PYTHONPATH": str(REPOSITORY),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "TIDEWISE__SPARK__MASTER": "local[1]",
        "TIDEWISE__SPARK__DRIVER_MEMORY": "1g",
    }
    script = str(REPOSITORY / "tests" / "support" / "racing_writer.py")
    running = {
        name: subprocess.Popen(
            [sys.executable, script, kind, name, str(count)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=(logs / f"{name}.log").open("w"),
            env=environment,
            text=True,
        )
        for kind, name, count in writers
    }
    try:
        for name, process in running.items():
            assert process.stdout is not None
            assert process.stdout.readline() == "begin\n", (logs / f"{name}.log").read_text()[-3000:]
        for process in running.values():
            tell(process)
        ended = [(name, process) for name, process in running.items() if name != "upkeep"]
        with ThreadPoolExecutor(len(running)) as pool:
            outputs = {name: pool.submit(process.stdout.read) for name, process in running.items() if process.stdout}
            for _, process in ended:
                assert process.wait() == 0
            tell(running["upkeep"])
            lines = {name: output.result() for name, output in outputs.items()}
    finally:
        for process in running.values():
            process.kill()
    return [(name, *line.split(" ", 2)) for name, text in lines.items() for line in text.splitlines()]


def tell(process: subprocess.Popen[str]) -> None:
    """Let a program go on."""
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()
