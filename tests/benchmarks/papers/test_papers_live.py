"""The live experiment's simulated half: each paper's policy meets the load steps, the same each time."""

import pytest

from benchmarks.papers.live.experiment import PAPERS, STEPS, TOTAL_S, Change, Trial, find_step, find_sufficient
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
    real, other = Trial(ends=[1, 3, 1]), Trial([Change(1, (2, 2))], [1, 2, 1], 4, [300.0, 320.0, 310.0])
    text = print_table({"DS2": (real, real), "ContTune": (real, other)})
    assert "|  | simulated | -; 2; - | 1, 2, 1 | 4 | 1 | 310 |" in text
    assert "same parallelism for 1 of 2 papers" in text
    assert "- ContTune: real 1, 3, 1, simulated 1, 2, 1" in text
