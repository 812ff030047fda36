"""The days before a run: simulated from what was measured of the job, then ingested, trained on and planned from."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
from rich.console import Console

from benchmarks.live.calibration import Calibration
from benchmarks.live.live_job import CHECKPOINT_EVERY_S, SLOTS, START_UTILISATION
from benchmarks.live.load_window import BIN_S, LoadWindow
from benchmarks.live.settings import CLUSTER, PRODUCT, write_settings
from cli.progress import ProgressLog
from include.settings import load_settings
from include.stage_names import Stage
from include.stage_request import StageRequest
from include.utc import floor_hour
from lab.commands.history import RECOVERY_S, HistoryRequest, write_history
from lab.commands.spark_application import run_application
from lab.commands.traces import week_second
from lab.simulation.catalogue import CatalogueJob
from lab.simulation.control import CpuRuleOptions
from lab.simulation.source_load import SourceLoad, TracePart, WeeklyTrace
from lab.simulation.spec import JobSpec, OperatorSpec, SourceCounters

STAGES = (Stage.INGEST, Stage.TRAIN, Stage.FORECAST, Stage.PLAN)
_TRACE = "window"
_HIGH, _LOW = 0.95, 0.70  # shares of processor time between which the rule of these days leaves the job alone
_AMPLE = 1000.0  # records/s of a vertex that was hardly busy are known as at least so many


def describe_job(calibration: Calibration, *, downtime_s: float | None = None) -> JobSpec:
    """Return the job as the simulator knows it.

    Args:
        calibration: what was measured of it.
        downtime_s: of a rescale; None: as in the calibration.
    """
    gains = {vertex.name: vertex.in_per_event for vertex in calibration.vertices}
    operators = []
    for vertex in calibration.vertices:
        fed = [one for one in calibration.vertices if vertex.name in one.upstream]
        shares = [gains[one.name] / gains[vertex.name] / one.upstream.count(vertex.name) for one in fed]
        is_costly = vertex.name == calibration.costly
        curve = tuple(calibration.capacity_per_s(p) * vertex.in_per_event for p in range(1, SLOTS + 1))
        operators.append(
            OperatorSpec(
                vertex.name,
                vertex.upstream,
                max(vertex.per_subtask_per_s, _AMPLE),
                contention=0.0,
                selectivity=max(shares, default=0.0),
                measured_per_s=curve if is_costly else (),
                counts=SourceCounters.OPERATOR if vertex.upstream else SourceCounters.TASK,
            )
        )
    down_s = calibration.downtime_s if downtime_s is None else downtime_s
    return JobSpec(
        calibration.query,
        tuple(operators),
        slots_max=SLOTS,
        checkpoint_interval_s=CHECKPOINT_EVERY_S,
        restart_base_s=max(down_s, 0.5),
        detection_s=1.0,
        state_bytes_per_record=1.0,
    )


@dataclass(frozen=True, slots=True)
class LiveHistory(HistoryRequest):
    """A history of one job whose load runs up to that of the window.

    Attributes:
        job: with the load ``window`` alone.
        before: of the window, as shares of the peak, its last value just before ``window_begins``.
        window_begins: when the window begins.
    """

    job: CatalogueJob | None = None
    before: tuple[float, ...] = ()
    window_begins: datetime | None = None

    def jobs(self) -> list[CatalogueJob]:
        """Return the job."""
        assert self.job is not None
        return [self.job]

    def traces(self) -> Mapping[str, WeeklyTrace]:
        """Return the load before the window, laid so that the window follows on it."""
        assert self.window_begins is not None
        bins = len(self.before) + (self.begin - self.window_begins).total_seconds() / BIN_S
        first_week_s = week_second(self.begin) - round(bins) * BIN_S
        return {_TRACE: WeeklyTrace(np.array(self.before), BIN_S, first_week_s)}


def request_history(
    calibration: Calibration, window: LoadWindow, begins: datetime, folder: Path, size: tuple[int, int]
) -> LiveHistory:
    """Return the request for the history before a window that begins at a time.

    Args:
        calibration: of the job.
        window: of the load.
        begins: when the window begins.
        folder: of the run.
        size: days, of which it has no more than the trace, and seed of its noise.
    """
    days, seed = size
    peak = float(max(window.before_per_s.max(), window.rates_per_s.max()))
    load = SourceLoad(peak, (TracePart(_TRACE),), sample_noise=0.02, step_noise=0.02)
    job = CatalogueJob(describe_job(calibration), (load,), CpuRuleOptions(_HIGH, _LOW, START_UTILISATION))
    end = floor_hour(begins)
    hours = min(24 * days, len(window.before_per_s) * BIN_S // 3600 - 2)
    before = tuple(float(rate) / peak for rate in window.before_per_s)
    return LiveHistory(
        hours, end, folder / "raw", CLUSTER, seed, recovery_s=RECOVERY_S, job=job, before=before, window_begins=begins
    )


def make_plans(
    request: LiveHistory,
    folder: Path,
    as_of: datetime,
    slots_after_s: float = 0.0,
    stages: Sequence[Stage] = STAGES,
) -> None:
    """Write the history, ingest it, train on it, and plan as of a time, by the product's own stages.

    Args:
        request: of the history.
        folder: of the run.
        as_of: of the plan.
        slots_after_s: as planning is told, see :class:`Pace`.
        stages: which of them.

    Raises:
        ApplicationError: a stage failed.
    """
    with _environment(write_settings(folder, replace(PRODUCT, slots_after_s=slots_after_s))):
        settings = load_settings()
        progress = ProgressLog(
            Console(), {"history": "simulated days", **{str(one): "of the history" for one in stages}}
        )
        progress.begin("history")
        write_history(request)
        requests = [StageRequest(stage, as_of, request.start, request.end) for stage in stages]
        run_application(settings, requests, folder / "stages.log", progress)
        progress.end()


def choose_begin(now: datetime, prepare_minutes: float) -> datetime:
    """Return when a window may begin: on a whole bin, after the stages before it have had their time."""
    earliest = now + timedelta(minutes=prepare_minutes)
    return datetime.fromtimestamp(-(-earliest.timestamp() // BIN_S) * BIN_S, UTC)


@contextmanager
def _environment(values: Mapping[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name)
            else:
                os.environ[name] = value
