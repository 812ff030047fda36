"""The page of the fleet at 1,000 jobs of 8 operators, 7 days of windows and 100,000 rows of the control log.

Set-up, not timed: the tables, and one request of each kind. Timed: whole requests through the application, each of
another job, the fleet's view with another order or search each time and without facts from the request before.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import numpy as np
from fastapi.testclient import TestClient

from benchmarks.measurement import Measurement
from benchmarks.pipeline.made_fleet import CLUSTER, Size, hour_before, job_name, write_fleet
from include.lake_table import timestamp_of
from include.settings import Settings
from page.app import build_app
from page.source import FRESH_S, FleetSource
from page.visitors import Access, admit_everyone

SIZE = Size(jobs=1_000, operators=8, hours=168, log_rows=100_000, forecast_hours=48)
REQUESTS, GOAL_S = 60, 0.3


def fleet_addresses() -> Iterator[str]:
    """Yield addresses of the fleet's view."""
    for place in range(REQUESTS):
        yield ("/", f"/?q=job-0{place % 10}", "/?sort=load&page=3", "/?show=needs")[place % 4]


def job_addresses(jobs: int, hours: int, why: str = "") -> Iterator[str]:
    """Yield addresses of jobs, each of another one."""
    for place in range(REQUESTS):
        yield f"/job?name={CLUSTER}/{job_name(place * 13 % jobs)}&hours={hours}&why={why}"


def time_requests(client: TestClient, clock: dict[str, float], addresses: Iterator[str]) -> list[tuple[float, float]]:
    """Return the seconds of each request and of the processor for it, which other processes do not lengthen.

    The first request, not timed, reads what the others find in memory.
    """
    result = []
    for place, address in enumerate(addresses):
        clock["s"] += FRESH_S + 1
        began, processor = time.perf_counter(), time.process_time()
        reply = client.get(address)
        if place:
            result.append((time.perf_counter() - began, time.process_time() - processor))
        reply.raise_for_status()
    return result


def run(work: Path, size: Size = SIZE) -> list[Measurement]:
    """Return the figures."""
    lake, end = str(work / "lake"), hour_before(time.time())
    write_fleet(lake, size, end)
    return measure(lake, end, size.jobs)


def measure(lake: str, end: datetime, jobs: int) -> list[Measurement]:
    """Return the figures of a lake of some jobs whose newest plan was made at a time."""
    settings = Settings.model_validate({"paths": {"lake": lake, "raw": lake, "out": lake}})
    clock = {"s": end.timestamp() + 60}
    source = FleetSource(lambda: settings, lambda: None, {}, lambda: clock["s"])
    client = TestClient(build_app(source, Access(admit_everyone)))
    why = f"{timestamp_of(end.timestamp() - 3600):%Y-%m-%dT%H:%M:%SZ}"
    views = {
        "fleet": fleet_addresses(),
        "job, 24 h": job_addresses(jobs, 24),
        "job, 7 days": job_addresses(jobs, 168),
        "job with why": job_addresses(jobs, 24, why),
    }
    result = []
    for name, addresses in views.items():
        times, processor = zip(*time_requests(client, clock, addresses), strict=True)
        median, high = (float(np.percentile(times, share)) for share in (50, 95))
        result += [
            Measurement(f"page {name}, p50", 1000 * median, "ms"),
            Measurement(f"page {name}, p95", 1000 * high, "ms", 1000 * GOAL_S, GOAL_S / high),
            Measurement(f"page {name}, processor, p95", 1000 * float(np.percentile(processor, 95)), "ms"),
        ]
    return result
