"""The subtasks of a vertex aggregated as REST aggregates them, step by step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from include.metric_sources.prometheus.client import Floats
from include.metric_sources.prometheus.targets import Target

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Subtasks:
    """The subtasks of a vertex, each told by the newest TaskManager that shows it.

    Attributes:
        index: (subtasks,) Flink's indices.
        times_s: (subtasks, steps) when each was scraped, NaN where it was not, or before the present run.
        values: metric -> (subtasks, steps).
    """

    index: Ints
    times_s: Floats
    values: Mapping[str, Floats]


@dataclass(frozen=True, slots=True)
class VertexSteps:
    """A vertex where all its subtasks were measured.

    Attributes:
        at_ms: (n,) mean time of the subtasks' samples, strictly increasing.
        values: metric -> (n, 5) min, max, avg, sum, skew; NaN where a subtask lacks it.
    """

    at_ms: Ints
    values: Mapping[str, Floats]


def join_subtasks(targets: Sequence[Target], grid_s: Floats, running_ms: Floats, max_age_s: float) -> Subtasks:
    """Choose for each subtask and step the target that came last among those with a sample.

    Targets overlap when a TaskManager was lost, or its series stay for a while: a sample that is too old, or from
    before the present run, is none. The times that were asked for and the start of the run, NaN if not known, are
    (steps,).
    """
    by_index: dict[int, list[Target]] = {}
    for target in targets:
        by_index.setdefault(int(target.labels["subtask_index"]), []).append(target)
    index = sorted(by_index)
    times = np.full((len(index), len(grid_s)), np.nan)
    values: dict[str, Floats] = {}
    for row, subtask in enumerate(index):
        for target in sorted(by_index[subtask], key=_began):
            is_usable = np.asarray(grid_s - target.times_s <= max_age_s) & ~(1000 * target.times_s < running_ms)
            times[row, is_usable] = target.times_s[is_usable]
            for name in {*target.values, *values}:
                into = values.setdefault(name, np.full(times.shape, np.nan))
                own = target.values.get(name)
                into[row, is_usable] = np.nan if own is None else own[is_usable]
    return Subtasks(np.array(index, np.int64), times, values)


def _began(target: Target) -> tuple[float, float, int, str]:
    """Order targets by when they came: first sample, last sample, attempt."""
    there = target.times_s[np.isfinite(target.times_s)]
    attempt = target.labels.get("task_attempt_num", "")
    first, last = (float(there[0]), float(there[-1])) if len(there) else (-1.0, -1.0)
    return first, last, int(attempt) if attempt.isdigit() else 0, target.labels.get("tm_id", "")


def find_parallelism(subtasks: Subtasks, running_ms: Floats, known: Mapping[int, int]) -> dict[int, int]:
    """Return start of each run -> parallelism: one more than the largest index that it showed, or that is known."""
    result = dict(known)
    observed = np.where(np.isfinite(subtasks.times_s), subtasks.index[:, None] + 1, 0).max(axis=0, initial=0)
    for start in np.unique(running_ms[np.isfinite(running_ms)]).tolist():
        most = int(observed[running_ms == start].max(initial=0))
        if most:
            result[int(start)] = max(most, result.get(int(start), 0))
    return result


def aggregate(subtasks: Subtasks, parallelism: Ints) -> VertexSteps:
    """Aggregate where as many subtasks were measured as there are; a sample that is given again is left out.

    ``parallelism``, (steps,), is 0 where it is not known.
    """
    counted = np.isfinite(subtasks.times_s) & (subtasks.index[:, None] < parallelism)
    is_whole = (counted.sum(axis=0) == parallelism) & (parallelism > 0)
    times = np.where(counted, subtasks.times_s, 0.0)
    at_ms = np.rint(1000 * times.sum(axis=0) / np.maximum(parallelism, 1)).astype(np.int64)
    newest = np.maximum.accumulate(np.where(is_whole, at_ms, 0))
    before = np.concatenate((np.zeros(1, np.int64), newest))[:-1]
    is_new = is_whole & (at_ms > before)
    chosen: Ints = np.flatnonzero(is_new)
    values = {
        name: _aggregates(own[:, chosen], counted[:, chosen], parallelism[chosen])
        for name, own in sorted(subtasks.values.items())
    }
    return VertexSteps(at_ms[chosen], values)


def _aggregates(values: Floats, counted: npt.NDArray[np.bool_], parallelism: Ints) -> Floats:
    """Return (n, 5) of (subtasks, n) values; NaN where one that counts is missing."""
    lacks = np.asarray((counted & ~np.isfinite(values)).any(axis=0))
    used = np.where(counted, values, 0.0)
    total = used.sum(axis=0)
    mean = total / np.maximum(parallelism, 1)
    apart = np.where(counted, np.abs(values - mean), 0.0).sum(axis=0) / np.maximum(parallelism, 1)
    skew = np.where(mean > 0, 100 * apart / np.where(mean > 0, mean, 1.0), 0.0)
    least = np.where(counted, values, np.inf).min(axis=0, initial=np.inf)
    most = np.where(counted, values, -np.inf).max(axis=0, initial=-np.inf)
    return np.where(lacks[:, None], np.nan, np.stack([least, most, mean, total, skew], axis=1))
