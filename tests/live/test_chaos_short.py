"""The short form of `make chaos`: a fault of each group on a real Flink cluster, in mode auto."""

from __future__ import annotations

import pytest

from benchmarks.chaos.catalogue import find_faults
from benchmarks.chaos.report import summarise, write
from benchmarks.chaos.run import describe, run

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]
# Those in which a controller is killed cost a lease each, so there is one of them.
FAULTS = [
    "controller killed after it recorded a request",
    "request answered 200 and not handed on",
    "request handed on, its reply lost",
    "request duplicated",
    "replies HTML",
    "TaskManager killed and started again",
    "hold and release",
    "settings file invalid for a while",
    "disk full for a while",
    "a person's rise",
]


def test_each_fault_ends_confirmed_rolled_back_held_or_refused_by_name(tmp_path):
    said: list[str] = []
    result = run(tmp_path / "run", find_faults(FAULTS), 1, said.append)
    ended = "\n".join([*said, *summarise(result)])
    assert result.losses == [], ended
    assert result.violations == [], ended
    assert [one.fault.name for one in result.injected if one.outcome.is_good] == FAULTS, ended
    outcomes = {one.fault.name: one.outcome for one in result.injected}
    assert outcomes["request handed on, its reply lost"].verdict == "confirmed", describe(result.injected[2])
    assert outcomes["a person's rise"].verdict == "held", ended
    assert all(path.stat().st_size for path in write(result, tmp_path / "out"))
