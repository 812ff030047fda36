"""A job that cannot keep up and whose sources have no `pendingRecords`: nobody says how many records arrive."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from simulated_pipeline import CLUSTER, WINDOW_S, Pipeline, SimulatedJob

from include.settings import Cluster, Settings
from lab.replay.workload import compute_curves, compute_source_gains
from lab.simulation.spec import JobSpec, OperatorSpec
from models.policies.observations import Observations

START_S = 1_709_510_400
RATE_PER_S = 900.0
SPEC = JobSpec(
    "orders",
    (
        OperatorSpec("in", (), 20_000.0, contention=0.0),
        OperatorSpec("work", ("in",), 100.0, contention=0.02, selectivity=0.5),
        OperatorSpec("out", ("work",), 130.0, contention=0.01, selectivity=0.0),
    ),
    slots_max=32,
    capacity_noise=0.0,
    failures_per_week=0.0,
)


@cache
def drive(policy: str, windows: int = 60) -> Pipeline:
    base = Settings()
    planner = base.planner.model_copy(update={"policies": {f"{CLUSTER}/orders": policy}})
    settings = base.model_copy(update={"planner": planner, "clusters": {CLUSTER: Cluster(slots_max=32)}})
    job = SimulatedJob(replace(SPEC), np.ones(3, np.int64), START_S, shows_backlog=False)
    run = Pipeline(job, settings)
    for window in range(windows):
        now_s = run.run_window(np.array([RATE_PER_S, 0.0, 0.0]))
        if window == 0:
            check_first_window(run.observations(now_s))
        run.evaluate(now_s)
    return run


def check_first_window(seen: Observations) -> None:
    assert seen.backpressured_share[0, 0] > 0.95
    assert np.isnan(seen.target_data_rate_per_s).all()


def suffices(parallelism: tuple[int, ...]) -> bool:
    capacity = compute_curves(SPEC)[np.arange(3), list(parallelism)]
    return bool((capacity >= RATE_PER_S * compute_source_gains(SPEC)[:, 0]).all())


@pytest.mark.parametrize(
    "policy",
    [
        "conttune_a3",
        "ds2",
        "dhalion",
        "reactive",
        *(pytest.param(name, marks=pytest.mark.long) for name in ("conttune_a0", "big_ds2", "ds2_timely")),
    ],
)
def test_backpressure_says_that_more_arrives_than_is_emitted(policy: str) -> None:
    run = drive(policy)
    assert run.decided, "the job stays at 1, 1, 1"
    assert suffices(run.decided[-1].parallelism), run.decided


def test_conttunes_big_phase_doubles_until_nothing_is_held_up_and_small_settles() -> None:
    run = drive("conttune_a3")
    changes = [one.parallelism for one in run.decided]
    assert changes[:4] == [(2, 2, 2), (4, 4, 4), (8, 8, 8), (16, 16, 16)]
    assert max(changes[-1]) < 16
    assert run.decided[-1].at_s < START_S + 40 * WINDOW_S
    assert not run.job.state.backlog.any()


def test_random_search_begins_to_search() -> None:
    assert drive("random_search", 3).decided
