"""The live experiment's simulated half: each paper's policy meets the load steps, the same each time."""

import pytest

from benchmarks.papers.live.experiment import PAPERS, STEPS, TOTAL_S, find_step, find_sufficient
from benchmarks.papers.live.simulated import run_simulated
from benchmarks.papers.live.table import print_table


def test_steps_follow_each_other():
    assert [find_step(at) for at in (0, STEPS[0][1] - 1, STEPS[0][1], TOTAL_S - 1, TOTAL_S)] == [0, 0, 1, 2, None]
    assert find_sufficient() == [1, 3, 1]


@pytest.mark.parametrize("paper", PAPERS, ids=lambda one: one.name)
def test_a_policy_rises_with_the_load(paper):
    trial = run_simulated(paper)
    assert trial == run_simulated(paper)
    assert len(trial.ends) == len(STEPS)
    assert trial.ends[1] > trial.ends[0] == 1


def test_the_table_names_what_differs():
    ds2, other = run_simulated(PAPERS[0]), run_simulated(PAPERS[1])
    other.ends = [1, 2, 1]
    text = print_table({"DS2": (ds2, ds2), "ContTune": (ds2, other)})
    assert "same parallelism for 1 of 2 papers" in text
    assert "- ContTune: real 1, 3, 1, simulated 1, 2, 1" in text
