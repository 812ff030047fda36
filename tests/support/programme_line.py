"""A line of three operators under the programme: its windows, and what it decides on them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from include.domain.graph import JobGraph, Operator
from include.settings import Planner
from models.hosting.host import HostedPolicy, HostMemory, evaluate_hosted
from models.hosting.memories import recall, store
from models.policies.evaluation.reactive_decision import ReactiveDecision
from models.policies.job_snapshot import Snapshot
from models.policies.observations import MEASURES, Observations
from models.policies.tidewise.programme_policy import Programme

START_S = 1_700_438_400
IN, OUT = Operator("in", partitions=64), Operator("out", ("map",))
GRAPH = JobGraph((IN, Operator("map", ("in",)), OUT))
NARROW = JobGraph((IN, Operator("map", ("in",), max_parallelism=4), OUT))
RUNNING = (8, 8, 8)
PER_SUBTASK = np.array([5000.0, 1000.0, 3000.0])


def window(at: int, load: float, running: tuple[int, ...], lag_s: float = 0.0, **changed: Any) -> dict[str, Any]:
    """Return a window of five minutes of a job that processes what arrives."""
    counts = np.array(running)
    busy = np.minimum(load / (PER_SUBTASK * counts), 1.0)
    values: dict[str, Any] = {
        "window_start_s": START_S + 300 * at,
        "parallelism": counts,
        "processing_rate_per_s": np.full(3, load),
        "output_rate_per_s": np.array([load, load, 0.0]),
        "true_processing_rate_per_s": PER_SUBTASK * counts,
        "true_output_rate_per_s": PER_SUBTASK * counts,
        "target_data_rate_per_s": np.array([load, np.nan, np.nan]),
        "busy_share": busy,
        "idle_share": 1 - busy,
        "backpressured_share": np.zeros(3),
        "pending_records": np.array([lag_s * load, np.nan, np.nan]),
        "latency_ms": np.array([1000.0 * lag_s, np.nan, np.nan]),
        "disturbed": False,
    }
    return {**values, **changed}


def snapshot(rows: list[dict[str, Any]], running: tuple[int, ...], window_s: int = 300, **changed: Any) -> Snapshot:
    arrays: dict[str, Any] = {
        name: np.array([row[name] for row in rows])
        for name in ("window_start_s", "disturbed", "parallelism", *MEASURES)
    }
    now_s = int(arrays["window_start_s"][-1]) + window_s
    parallelism = dict(zip(GRAPH.names, running, strict=True))
    job = Snapshot(now_s, GRAPH, parallelism, True, Observations(window_s=window_s, **arrays), 32, Planner())
    return replace(job, **changed)


def run(
    loads: list[float],
    running: tuple[int, ...] = (8, 8, 8),
    *,
    lag_s: float = 0.0,
    restarts: bool = False,
    **changed: Any,
) -> tuple[ReactiveDecision, HostMemory]:
    """Return the last decision of a job that stays as it is, and its memory."""
    hosted, memory = HostedPolicy.of("programme", Programme()), HostMemory()
    rows = [window(at, load, running) for at, load in enumerate(loads)]
    rows[-1] = window(len(rows) - 1, loads[-1], running, lag_s)
    decision = ReactiveDecision(None, "")
    for at in range(len(rows)):
        last = changed if at == len(rows) - 1 else {}
        job = snapshot(rows[max(at - 5, 0) : at + 1], running, **last)
        decision, memory = evaluate_hosted(hosted, memory, job.now_s, job, None)
        if restarts:
            text = store("programme", memory.policy)
            again, problem = recall(Programme(), "programme", text, "programme")
            assert not problem
            memory = replace(memory, policy=again)
    return decision, memory


def noisy(load: float, count: int = 30, sd: float = 0.03) -> list[float]:
    return list((load * np.exp(sd * np.random.default_rng(2).standard_normal(count))).tolist())
