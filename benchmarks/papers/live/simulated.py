"""The experiment on a simulated job."""

from __future__ import annotations

import numpy as np

from benchmarks.papers.live.deciding import Decider
from benchmarks.papers.live.experiment import (
    DECIDE_EVERY_S,
    DOWNTIME_S,
    RETAINED_WINDOWS,
    STEPS,
    TOTAL_S,
    WINDOW_S,
    Change,
    PaperPolicy,
    Trial,
    describe_job,
    find_step,
)
from lab.local_flink.load import ENRICH
from lab.simulation.testbed import Testbed, TestbedWindow, observations

_NOISE = 0.02


def run_simulated(paper: PaperPolicy, seed: int = 0) -> Trial:
    """Run a policy on the simulated job."""
    spec = describe_job(paper.paper)
    graph, width = spec.graph(), len(spec.operators)
    testbed = Testbed([spec], np.ones((1, width), np.int64), seed=seed, measurement_noise=_NOISE, has_buffers=False)
    trial, windows = Trial(), list[TestbedWindow]()
    decider = Decider(paper, graph, trial)
    for end_s in range(WINDOW_S, TOTAL_S + 1, WINDOW_S):
        step = find_step(end_s - WINDOW_S)
        assert step is not None
        rates = np.zeros((1, width))
        rates[0, [graph.position(name) for name in graph.sources]] = STEPS[step][0]
        windows.append(testbed.run(rates, WINDOW_S))
        running = dict(zip(graph.names, testbed.state.parallelism[0, :width].tolist(), strict=True))
        if end_s % DECIDE_EVERY_S == 0 and windows[-1].up[0]:
            trial.decisions += 1
            wanted = decider.decide(running, observations(windows[-RETAINED_WINDOWS:], 0, width), end_s)
            if wanted is not None:
                testbed.rescale(0, np.array([wanted[name] for name in graph.names], np.int64), DOWNTIME_S)
                trial.changes.append(Change(step, (wanted[ENRICH], max(wanted.values()))))
                running = wanted
        if find_step(end_s) != step:
            trial.ends.append(running[ENRICH])
    return trial
