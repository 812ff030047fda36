"""The short form of `make chaos`: faults on a real Flink cluster, in mode auto; five of them in each `make test`."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.chaos.catalogue import find_faults
from benchmarks.chaos.report import summarise, write
from benchmarks.chaos.run import describe, run
from benchmarks.chaos.run_settings import SHORT

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]
LOST_REPLY, PERSON = "request handed on, its reply lost", "a person's rise"
# One of each group. Those in which a controller is killed cost a lease each, so there is one of them.
FAULTS = ["controller killed after it recorded a request", LOST_REPLY, "replies HTML"]
FAULTS += ["TaskManager killed and started again", PERSON]
MORE_FAULTS = ["request answered 200 and not handed on", "request duplicated", "hold and release"]
MORE_FAULTS += ["settings file invalid for a while", "disk full for a while"]


def check(faults: list[str], tmp_path: Path) -> None:
    """Each fault ends confirmed, rolled back, held or refused by name."""
    reported: list[str] = []
    result = run(tmp_path / "run", find_faults(faults), 1, reported.append, SHORT)
    ended = "\n".join([*reported, *summarise(result)])
    assert result.losses == [], ended
    assert result.violations == [], ended
    assert [one.fault.name for one in result.injected if one.is_expected] == faults, ended
    verdicts = {one.fault.name: one.outcome.verdict for one in result.injected}
    reply = "\n".join(describe(one) for one in result.injected)
    assert verdicts.get(LOST_REPLY, "confirmed") == "confirmed", reply
    assert verdicts.get(PERSON, "held") == "held", reply
    assert all(path.stat().st_size for path in write(result, tmp_path / "out"))


@pytest.mark.long
def test_a_fault_of_each_group_ends_by_name(tmp_path):
    check(FAULTS, tmp_path)


@pytest.mark.long
def test_more_faults_end_by_name(tmp_path):
    check(MORE_FAULTS, tmp_path)
