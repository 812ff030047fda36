"""The DataStream job among the live ones: what its sinks get, and what it cannot do."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.live.live_job import JOBS
from lab.local_flink.job_client import JobClient


@pytest.mark.parametrize(("events", "rows"), [(0, 0), (1, 1), (2, 1), (5, 3)])
def test_its_filter_keeps_every_second_order_from_the_first_on(events: int, rows: int, tmp_path: Path):
    assert JOBS["orders"].count_expected_rows(events, tmp_path) == rows


def test_it_refuses_to_go_on_from_a_savepoint(tmp_path: Path):
    with pytest.raises(ValueError, match="orders begins when it is submitted"):
        JOBS["orders"].submit(JobClient("http://127.0.0.1:1"), tmp_path, ((0, 1.0),), 1, savepoint="file:/there")
