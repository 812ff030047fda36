"""Each paper's policy on a real job under stepped load, beside the same policy on the simulated job."""

from __future__ import annotations

import pytest
from rich.console import Console

from benchmarks.papers.live.experiment import PAPERS, STEPS, find_sufficient
from benchmarks.papers.live.table import run_live

pytestmark = [pytest.mark.long, pytest.mark.timeout(1200)]


def test_the_policies_scale_a_real_job_as_they_scale_a_simulated_one(tmp_path):
    """The high load needs more than one subtask: every policy gives it some."""
    result = run_live(tmp_path, Console(), tmp_path / "papers_live.md")
    assert set(result) == {paper.paper for paper in PAPERS}
    least = find_sufficient()
    for paper, (real, simulated) in result.items():
        assert len(real.ends) == len(simulated.ends) == len(STEPS), paper
        assert real.ends[0] <= real.ends[1], paper
        assert real.ends[1] > least[0], paper
        assert abs(real.ends[1] - simulated.ends[1]) <= 1, paper
        assert min(real.decisions, simulated.decisions) >= len(STEPS), paper
    assert "| DS2 | real |" in (tmp_path / "papers_live.md").read_text()
