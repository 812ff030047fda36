"""Writes that go on beside what comes after them: all are waited for, and what one raised comes out."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from types import SimpleNamespace
from typing import Any, cast

import pytest

from include.tables import FILES, JOBS, QUALITY, Table
from spark_jobs.ingest.table_writes import TableWrites


class Rows:
    """Stands in for a frame: knows how many tasks write it."""

    def __init__(self, tasks: int = 8) -> None:
        self.tasks = tasks

    def coalesce(self, tasks: int) -> Rows:
        return Rows(min(tasks, self.tasks))


class FakeLake:
    """Writes nothing, waits at a barrier, and fails for one table."""

    def __init__(self, cores: int, barrier: Barrier | None = None, bad: Table | None = None) -> None:
        self.spark = SimpleNamespace(sparkContext=SimpleNamespace(defaultParallelism=cores))
        self.written: dict[str, tuple[int, str]] = {}
        self._barrier, self._bad = barrier, bad

    def replace(self, table: Table, rows: Rows, where: str) -> None:
        if self._barrier is not None:
            self._barrier.wait(timeout=10)
        if table is self._bad:
            raise OSError("disk full")
        self.written[table.name] = rows.tasks, where


def write(lake: FakeLake, *starts: tuple[Any, ...]) -> None:
    with ThreadPoolExecutor(4) as pool:
        writes = TableWrites(cast("Any", lake), pool)
        for start in starts:
            writes.start(*start)
        writes.wait()


def test_slices_are_written_side_by_side():
    lake = FakeLake(2, Barrier(2))  # neither gets past it alone
    write(lake, (FILES, Rows(), "hour = 1"), (JOBS, Rows(), "hour = 2"))
    assert lake.written == {FILES.name: (8, "hour = 1"), JOBS.name: (8, "hour = 2")}


@pytest.mark.parametrize(("cores", "share", "tasks"), [(4, 0.5, 2), (1, 0.5, 1), (4, 1.0, 4), (16, 1.0, 8)])
def test_no_more_tasks_than_a_share_of_the_cores(cores, share, tasks):
    lake = FakeLake(cores)
    write(lake, (FILES, Rows(), "true", share))
    assert lake.written == {FILES.name: (tasks, "true")}


def test_what_a_write_raised_comes_out():
    lake = FakeLake(2, bad=JOBS)
    with pytest.raises(OSError, match="disk full"):
        write(lake, (FILES, Rows(), "true"), (JOBS, Rows(), "true"), (QUALITY, Rows(), "true"))
    assert FILES.name in lake.written
