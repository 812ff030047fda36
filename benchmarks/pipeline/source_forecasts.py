"""The forecast stage alone: processor seconds of the application that the DAG starts, by the number of sources.

Set-up, not timed: 29 days of five-minute windows of one source a job in ``silver.observations``, and a forecast of the
hour before, which copies them to ``silver.source_loads`` as every first pass does, and holds the contest of the
methods: what is measured is a later pass of a day.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa

from benchmarks.measurement import Measurement
from benchmarks.pipeline.hourly import BIN_S, CLUSTER, END, HOUR, environment, submit
from benchmarks.pipeline.made_fleet import complete_table
from include.lake_table import LakeTable
from include.stage_names import Stage
from include.tables import OBSERVATIONS
from models.arrays import Floats

SIZES = (100, 1_000)
DAYS = 29
UNMEASURED = 0.002
"""Share of the windows without a rate."""


def make_rates(start_s: Floats, jobs: int, generator: np.random.Generator) -> Floats:
    """Return rates with a day, a week, noise and gaps, records/s, shape (jobs, windows)."""
    phase_h, level = np.arange(jobs)[:, None] * 7.3 % 24, 2e4 + np.arange(jobs)[:, None] * 997.0 % 8e4
    hours = start_s / 3600 + phase_h
    wave = 1 + 0.35 * np.sin(2 * np.pi * hours / 24) + 0.1 * np.sin(2 * np.pi * hours / 168)
    rates = level * (wave + generator.normal(0, 0.03, wave.shape))
    return np.where(generator.random(wave.shape) < UNMEASURED, np.nan, rates)


def list_observations(start_s: Floats, jobs: int, generator: np.random.Generator) -> pa.Table:
    """Return the windows that begin at some times of one day, of one source of each job."""
    rates = make_rates(start_s, jobs, generator).ravel()
    job = pa.array([f"job-{place:04}" for place in range(jobs)]).take(
        pa.array(np.repeat(np.arange(jobs), len(start_s)))
    )
    every_s = np.tile(start_s, jobs).astype(np.int64)
    start, count = pa.array(every_s * 1_000_000).cast(pa.timestamp("us", "UTC")), len(every_s)
    columns = {
        "cluster": pa.array([CLUSTER] * count),
        "job": job,
        "operator": pa.array(["Source: events"] * count),
        "window_start": start,
        "window_s": pa.array(np.full(count, BIN_S)),
        "is_source": pa.array(np.ones(count, bool)),
        "target_data_rate_per_s": pa.array(rates, mask=np.isnan(rates)),
        "date": start.cast(pa.date32()),
        "hour": pa.array(every_s % 86_400 // 3600),
    }
    return complete_table(OBSERVATIONS, columns, count)


def write_observations(lake: str, jobs: int, end: datetime) -> None:
    """Write the days before a time, in one commit each."""
    generator, begin = np.random.default_rng(7), end - timedelta(days=DAYS)
    for back in range(DAYS + 1):
        day = begin.replace(hour=0) + timedelta(days=back)
        since, until = max(day, begin), min(day + timedelta(days=1), end)
        if since < until:
            start_s = np.arange(since.timestamp(), until.timestamp(), BIN_S)
            LakeTable(lake, OBSERVATIONS).append_arrow(list_observations(start_s, jobs, generator))


def run(work: Path, sizes: tuple[int, ...] = SIZES) -> list[Measurement]:
    """Measure one forecast of each size.

    Args:
        work: an empty directory; everything is written below it.
        sizes: numbers of jobs.
    """
    result = []
    for jobs in sizes:
        own = work / str(jobs)
        with environment(own):
            write_observations(str(own / "lake"), jobs, END)
            submit(Stage.FORECAST, own, END - HOUR)
            usage = submit(Stage.FORECAST, own, END)
        result.append(Measurement(f"forecast of {jobs:,} sources", usage.cpu_s, "CPU s"))
        result.append(Measurement(f"forecast of {jobs:,} sources, peak memory", usage.peak_bytes / 2**30, "GiB"))
    return result
