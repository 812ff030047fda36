"""The short form of `make live`: two policies and one rise of the load on a real Flink cluster (ten minutes a job)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.live.__main__ import main
from benchmarks.live.results import read_result, result_file

pytestmark = [pytest.mark.long, pytest.mark.timeout(2400)]


@pytest.mark.parametrize("job", ["q3", "orders"])
def test_two_policies_on_one_rise_lose_nothing(job: str, tmp_path: Path):
    """Judged by counts: what was due by the clock was emitted, and the rows that it gives came to the sink."""
    arguments = ["--job", job, "--policy", "controller_alone", "none", "--minutes", "3", "--allow-busy"]
    arguments += ["--out", str(tmp_path)]
    assert main(arguments) == 0
    runs = {name: read_result(result_file(tmp_path / "live", name, job, 1)) for name in ("controller_alone", "none")}
    for run in runs.values():
        assert run.trouble == ""
        assert run.records_in is not None
        assert run.records_due is not None
        assert abs(run.records_in - run.records_due) <= 1
        assert run.records_lost == 0
        assert run.lost_at_s is not None
        assert run.measures.down_s > 0
        assert len(run.lines) > 10
    assert runs["none"].measures.rescales == 0
    assert runs["none"].load == runs["controller_alone"].load
    assert (tmp_path / "live.html").is_file()
    assert len(json.loads((tmp_path / "live.json").read_text())["simulator"]) == 2
    assert main(arguments) == 0  # nothing is missing, so no cluster is started
