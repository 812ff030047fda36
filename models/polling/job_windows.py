"""The windows of rows put together by job: what a policy looks at, for all jobs in a few flat arrays."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from models.arrays import Bools, Floats, Ints
from models.observing.disturbances import find_disturbed_spans
from models.observing.outstanding import OutstandingRecords
from models.observing.samples import Vertices
from models.observing.stops import Stop
from models.policies.observations import MEASURES, Latency, Observations
from models.polling.windows import RowWindows

_T = TypeVar("_T", bound=np.generic)
_TIMES = 1 << 34  # more than any epoch second: job and window start make one sortable number


@dataclass(frozen=True, slots=True)
class OperatorRows:
    """Which operator of which job each row is.

    Attributes:
        job: (rows,) number of the job.
        position: (rows,) of the operator in its job, -1 for a vertex that the job no longer has.
        vertices: (rows,) what they are.
        window_s: (jobs,) length of a window.
        operators: (jobs,) how many a job has.
    """

    job: Ints
    position: Ints
    vertices: Vertices
    window_s: Ints
    operators: Ints

    def shorten(self, most_s: Sequence[int]) -> OperatorRows:
        """Return the rows with windows that are no longer than some seconds, (jobs,)."""
        lengths = np.minimum(self.window_s, np.array(most_s, np.int64))
        vertices = replace(self.vertices, window_s=lengths[self.job])
        return replace(self, window_s=lengths, vertices=vertices)


@dataclass(frozen=True, slots=True)
class JobWindows:
    """Windows of J jobs.  Each job has ``W`` windows of ``O`` operators; cells are ordered by job, window and operator.

    Attributes:
        window_s: (J,)
        operators: (J,)
        first_window: (J + 1,) where a job's windows begin.
        first_cell: (J + 1,) where its cells begin.
        window_start_s: (all W,) epoch seconds.
        disturbed: (all W,) whether the window overlaps a stop of the job or the time just after.
        parallelism, samples: (all cells,) 0 where nothing was seen.
        target_is_lower_bound: (all cells,) see :class:`models.observing.windows.Windows`.
        measures: name -> (all cells,); see the same.
        outstanding: (all cells,) of each source.
    """

    window_s: Ints
    operators: Ints
    first_window: Ints
    first_cell: Ints
    window_start_s: Ints
    disturbed: Bools
    parallelism: Ints
    samples: Ints
    target_is_lower_bound: Bools
    measures: dict[str, Floats]
    outstanding: OutstandingRecords

    def observations(self, job: int) -> Observations:
        """Return the windows of one job, by its number.

        A target data rate that is no more than a lower bound of the demand is NaN: what arrived is not known.
        """
        windows = self._windows(job)
        measures = {name: self.of_job(self.measures[name], job) for name in MEASURES}
        target = measures["target_data_rate_per_s"]
        measures["target_data_rate_per_s"] = np.where(self.lower_bounds(job), np.nan, target)
        measures["latency_ms"] = 1000.0 * self.of_job(self.outstanding.age_s, job)
        return Observations(
            window_start_s=self.window_start_s[windows],
            window_s=int(self.window_s[job]),
            parallelism=self.of_job(self.parallelism, job),
            disturbed=self.disturbed[windows],
            latency=Latency.BACKLOG_AGE,
            outstanding_records=self.of_job(self.outstanding.records, job),
            **measures,
        )

    def lower_bounds(self, job: int) -> Bools:
        """Return (W, O) whether a target data rate is no more than a lower bound of what arrived."""
        return self.of_job(self.target_is_lower_bound, job)

    def of_job(self, cells: npt.NDArray[_T], job: int) -> npt.NDArray[_T]:
        """Return (W, O) the cells of one job."""
        windows = self._windows(job)
        return cells[self._cells(job)].reshape(windows.stop - windows.start, self.operators[job])

    def _windows(self, job: int) -> slice:
        return slice(int(self.first_window[job]), int(self.first_window[job + 1]))

    def _cells(self, job: int) -> slice:
        return slice(int(self.first_cell[job]), int(self.first_cell[job + 1]))


def by_job(
    result: RowWindows, rows: OperatorRows, stops: Sequence[tuple[int, Stop]], settle_s: int, now_s: float
) -> JobWindows:
    """Put the windows of rows together by job.

    Args:
        result: of :func:`models.polling.windows.row_windows`.
        rows: which operator each row is.
        stops: with the number of the job.
        settle_s: how long after a start windows still count as disturbed.
        now_s: until when a job that does not run yet is disturbed.
    """
    jobs = len(rows.window_s)
    windows = result.windows
    known = np.flatnonzero(rows.position[windows.vertex] >= 0)
    row = windows.vertex[known]
    keys, window = np.unique(rows.job[row] * _TIMES + windows.start_s[known], return_inverse=True)
    job_of_window, start_s = keys // _TIMES, keys % _TIMES
    first_window = np.searchsorted(job_of_window, np.arange(jobs + 1))
    first_cell = np.concatenate(([0], np.cumsum(np.diff(first_window) * rows.operators)))
    job = rows.job[row]
    cell = first_cell[job] + (window - first_window[job]) * rows.operators[job] + rows.position[row]

    def spread(values: npt.NDArray[_T], fill: float) -> npt.NDArray[_T]:
        cells = np.full(first_cell[-1], fill, values.dtype)
        cells[cell] = values[known]
        return cells

    return JobWindows(
        window_s=rows.window_s,
        operators=rows.operators,
        first_window=first_window,
        first_cell=first_cell,
        window_start_s=start_s,
        disturbed=_find_disturbed(keys, stops, rows.window_s, settle_s, now_s),
        parallelism=spread(result.parallelism, 0),
        samples=spread(windows.samples, 0),
        target_is_lower_bound=spread(windows.target_is_lower_bound, False),
        measures={name: spread(values, np.nan) for name, values in windows.measures.items()},
        outstanding=result.outstanding.change(lambda values: spread(values, np.nan)),
    )


def _find_disturbed(
    keys: Ints, stops: Sequence[tuple[int, Stop]], window_s: Ints, settle_s: int, now_s: float
) -> Bools:
    """Return (all W,) whether a window lies between a stop and ``settle_s`` after the job runs again."""
    if not stops:
        return np.zeros(len(keys), bool)
    job = np.array([number for number, _ in stops])
    began_s = np.array([stop.started_ms // 1000 for _, stop in stops])
    ended_s = np.array([math.nan if stop.ended_ms is None else stop.ended_ms // 1000 for _, stop in stops])
    first_s, last_s = find_disturbed_spans(began_s, ended_s, window_s[job], settle_s=settle_s, until_s=int(now_s))
    # A reply may hold a time that cannot be: it must not reach into the next job's windows.
    first = np.searchsorted(keys, job * _TIMES + np.clip(first_s, 0, _TIMES - 1))
    after = np.searchsorted(keys, job * _TIMES + np.clip(last_s, 0, _TIMES - 1), side="right")
    marks = np.zeros(len(keys) + 1, np.int64)
    np.add.at(marks, first, 1)
    np.add.at(marks, after, -1)
    return np.asarray(np.cumsum(marks[:-1]) > 0)
