"""Silver tables of a fleet whose true capacities are known: chains of four operators in 5-minute windows."""

from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pandas as pd
from delta_tables import write_rows

from include.tables import JOB_GRAPHS, OBSERVATIONS, RESCALES, Table
from spark_jobs.lake import Lake

AS_OF = datetime(2026, 3, 10, tzinfo=UTC)
DAY = timedelta(days=1)
# operator -> (capacity at p = 1, contention a, selectivity); a source and a sink at either end of a chain
OPERATORS = {
    "source": (9000.0, 0.0, 1.0),
    "parse": (800.0, 0.03, 0.5),
    "count": (900.0, 0.01, 2.0),
    "sink": (5e4, 0.0, 0.0),
}
CHAIN = list(OPERATORS)
HEX = "0123456789abcdef0123456789abcdef"


def capacity(operator: str, parallelism: np.ndarray | int) -> np.ndarray:
    g, a, _ = OPERATORS[operator]
    return np.asarray(g * np.asarray(parallelism) / (1 + a * (np.asarray(parallelism) - 1)))


def observations(job: str, *, days: int = 3, seed: int = 0, error: float = 1.0) -> pd.DataFrame:
    """5-minute windows of a chain whose parallelism changes every 6 hours."""
    random = np.random.default_rng(seed)
    count = days * 288
    start = pd.Timestamp(AS_OF) - pd.Timedelta(minutes=5) * np.arange(count, 0, -1)
    parallelism = np.array([2, 4, 3, 8, 6, 5])[(np.arange(count) // 72) % 6]
    utilisation = 0.55 + 0.3 * np.sin(np.arange(count) * 2 * np.pi / 50)
    frames, incoming = [], utilisation * capacity("parse", parallelism)
    for operator in CHAIN:
        noisy = error * capacity(operator, parallelism) * (1 + 0.03 * random.standard_normal(count))
        busy = np.minimum(incoming / noisy, 1.0)
        outgoing = incoming * OPERATORS[operator][2]
        frame = pd.DataFrame({"window_start": start, "parallelism": parallelism, "busy_share": busy})
        frames.append(
            frame.assign(
                operator=operator,
                is_source=operator == "source",
                observed_processing_rate_per_s=incoming,
                observed_output_rate_per_s=outgoing,
                true_processing_rate_per_s=incoming / busy,
                age_s=0.05 / (1 - utilisation) if operator == "source" else None,
            )
        )
        incoming = outgoing
    return pd.concat(frames).assign(cluster="c5m", job=job, job_id=HEX, vertex_id=HEX, window_s=300, disturbed=False)


def write(lake: Lake, table: Table, rows: pd.DataFrame, timestamp: str) -> None:
    """Make rows of some of the table's columns its only ones; the other columns are null."""
    at = pd.to_datetime(rows[timestamp])
    dated = rows.assign(date=at.dt.date, hour=at.dt.hour).astype(object)
    write_rows(lake, table, dated.where(dated.notna(), None).to_dict("records"), mode="overwrite")


def events(jobs: list[str]) -> pd.DataFrame:
    random = np.random.default_rng(5)
    rows: list[dict[str, Any]] = []
    for number, job in enumerate(jobs):
        for index in range(6):
            kind, downtime = ("rescale", 30.0) if index % 2 else ("restart", 70.0)
            downtime *= float(np.exp(0.1 * random.standard_normal()))
            sustained = min(float(capacity("parse", 4)), float(capacity("count", 4)) / 0.5)
            replay = 10.0 if kind == "restart" else 0.0
            started = AS_OF - DAY + timedelta(hours=index, minutes=number)
            rows.append(
                {
                    "cluster": "c5m",
                    "job": job,
                    "job_id": HEX,
                    "started_at": started,
                    "running_at": started + timedelta(seconds=downtime),
                    "kind": kind,
                    "parallelism_before": dict.fromkeys(CHAIN, 2),
                    "parallelism_after": dict.fromkeys(CHAIN, 4),
                    "downtime_s": downtime,
                    "catch_up_s": None if index == 5 else 900.0 * (replay + downtime) / (sustained - 900.0),
                    "load_per_s": 900.0,
                    "checkpoint_age_s": 10.0,
                }
            )
    return pd.DataFrame(rows)


def graphs(jobs: list[str]) -> pd.DataFrame:
    rows = [
        {"cluster": "c5m", "job": job, "job_id": HEX, "operator": operator, "vertex_id": HEX, "position": position,
         "upstream": CHAIN[max(position - 1, 0) : position], "parallelism": 2, "max_parallelism": 40,
         "observed_at": AS_OF - DAY}
        for job in jobs
        for position, operator in enumerate(CHAIN)
    ]  # fmt: skip
    return pd.DataFrame(rows)


def fill(lake: Lake, jobs: list[str], **changes: Any) -> None:
    observed = pd.concat([observations(job, seed=seed, **changes) for seed, job in enumerate(jobs)])
    write(lake, OBSERVATIONS, observed, "window_start")
    write(lake, RESCALES, events(jobs), "started_at")
    write(lake, JOB_GRAPHS, graphs(jobs), "observed_at")
