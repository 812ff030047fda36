"""The nightly training of rows, from nothing but their own windows and downtimes.

The rules are those of ``spark_jobs/train``: which windows are used for a capacity, which are held out, how downtimes
shrink to their priors.  Deviation: there is no fleet to learn from and no gate, since each row is alone.  Without a
trial, intervals are calibrated on hidden parallelisms only; there are no key groups and no measures of single subtasks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from include.domain.graph import JobGraph
from include.settings import Training
from models.arrays import Bools, Floats, Ints
from models.capacity.busy_windows import find_busiest, least_busy_share, split_doubt
from models.capacity.capacity_samples import pack
from models.capacity.interval_calibration import find_places_of, learn_scales
from models.capacity.operator_curves import OperatorCurves, fit_operator_curves
from models.capacity.robust_means import number_points, reduce_windows, select_recent
from models.evaluation.failures import Downtime
from models.evaluation.window_recorder import WindowRecorder
from models.job_models import CapacityCurve, EventKind, JobModels, LatencyModel, RecoveryModel
from models.latency import fit_windows
from models.recovery import CHECKPOINT_AGE_PRIOR_S, DOWNTIME_PRIOR_S, typical_of_job
from models.topology import Edge, learn_edge_ratios

RECENT_DOWNTIMES = 20  # per kind, as in the training stage
# Knuth's multiplicative hash: a window is held out or not for all rows alike, and independently of its neighbours.
_MULTIPLIER, _MODULUS = 2_654_435_761, 2**32


@dataclass(frozen=True, slots=True)
class JobShape:
    """The facts of a job that training needs.

    Attributes:
        graph: of O operators.
        limits: (O,) highest admissible parallelism.
    """

    graph: JobGraph
    limits: Ints

    @property
    def operators(self) -> tuple[str, ...]:
        """(O,) names."""
        return self.graph.names


@dataclass(frozen=True, slots=True)
class _Points:
    """Capacities of n rows x O operators reduced per parallelism; see ``models.capacity.capacity_samples.pack``."""

    owner: Ints
    parallelism: Ints
    count: Ints
    mean_per_s: Floats
    squares: Floats
    busiest: Floats


def find_held_out(numbers: Ints, share: float) -> Bools:
    """Return (W,) which windows are held out of a fit, by a hash of their number since 1970."""
    hashed = (numbers.astype(np.uint64) * np.uint64(_MULTIPLIER)) % np.uint64(_MODULUS)
    return np.asarray(hashed < share * _MODULUS)


def train(
    job: JobShape,
    recorder: WindowRecorder,
    rows: Ints,
    span: tuple[int, int],
    *,
    epoch_window: int,
    downtimes: Sequence[Sequence[Downtime]],
    before_s: float,
    options: Training,
    previous: Sequence[JobModels | None],
) -> list[JobModels | None]:
    """Train the models of some rows.

    Args:
        job: their job.
        recorder: of all windows.
        rows: (n,) whose models to train.
        span: first window and the one after the last that training sees.
        epoch_window: number since 1970 of the recorder's first window.
        downtimes: of each of the n.
        before_s: only downtimes over by then, seconds since the start, are used.
        options: of the training stage.
        previous: models of each of the n from the night before; a row without a curve keeps them.

    Returns:
        n models; None for a row that showed no capacity yet.
    """
    numbers, parallelism, measures, disturbed = recorder.stack(rows, *span)
    used = ~disturbed & ~find_held_out(numbers + epoch_window, options.holdout_share)[:, None]  # (W, n)
    points = _reduce_windows(parallelism, measures, used, numbers * recorder.window_s, options)
    curves = _fit_curves(job, points, len(rows))
    selectivity = _fit_selectivity(job, measures, used, recorder)
    result: list[JobModels | None] = []
    for place in range(len(rows)):
        if not curves[place]:
            result.append(previous[place])
            continue
        over = [one for one in downtimes[place] if one.at_s + one.downtime_s < before_s]
        models = JobModels(
            capacity=curves[place],
            selectivity=selectivity[place],
            recovery=fit_recovery(over),
            latency=_fit_latency(measures, used, place),
            edges=_fit_edges(job, measures, used[:, place], place, recorder),
        )
        result.append(models)
    return result


def _reduce_windows(
    parallelism: Ints, measures: Mapping[str, Floats], used: Bools, start_s: Ints, options: Training
) -> _Points:
    """Return the K most recent capacities per operator and parallelism, of windows that are busy enough."""
    capacity, busy = measures["true_in_per_s"], measures["busy"]
    usable = used[:, :, None] & (capacity > 0) & (busy > 0)
    busiest = np.where(usable, busy, 0.0).max(axis=0, initial=0.0)
    busy_or_idle = (busiest < options.min_busy_share) | (busy >= options.min_busy_share)
    window, row, operator = np.nonzero(usable & busy_or_idle)
    owner, at = row * parallelism.shape[2] + operator, (window, row, operator)
    point = number_points(owner, parallelism[at])
    starts_s = start_s[window].astype(float)
    most = find_busiest(point, starts_s, busy[at], capacity[at])
    telling = np.flatnonzero(busy[at] >= least_busy_share(most)[point])
    owner, runs, per_s = owner[telling], parallelism[at][telling], capacity[at][telling]
    recent = select_recent(owner, runs, starts_s[telling], options.recent_per_parallelism)
    return _Points(*reduce_windows(owner[recent], runs[recent], per_s[recent]), most)


def _fit_curves(job: JobShape, points: _Points, rows: int) -> list[dict[str, CapacityCurve]]:
    """Return each row's operator -> capacity curve, calibrated on what was hidden from the curves of that row."""
    result: list[dict[str, CapacityCurve]] = [{} for _ in range(rows)]
    if not len(points.owner):
        return result
    width = len(job.operators)
    owners, place = np.unique(points.owner, return_inverse=True)
    largest = np.zeros(rows)
    np.maximum.at(largest, points.owner // width, points.parallelism)
    shared, doubt = split_doubt(place, points.busiest)
    samples = pack(place, points.parallelism, points.count, points.mean_per_s, points.squares, doubt=doubt)
    top = int(max(job.limits.max(), largest.max()))
    unknown = np.full(len(owners), np.nan)
    curves = fit_operator_curves(samples, largest[owners // width], unknown, top, shared_doubt=shared)
    for row in range(rows):
        mine = np.flatnonzero(owners // width == row)
        if not len(mine):
            continue
        excluded = curves.left_out[mine].ravel(), curves.left_out_place[mine].ravel()
        scale = learn_scales(np.zeros(0), np.zeros(0, np.int64), *excluded)
        for index in mine.tolist():
            operator = int(owners[index]) % width
            grid = max(int(job.limits[operator]), int(largest[row]))
            result[row][job.operators[operator]] = _build_curve(
                curves, index, points, place == index, scale=scale, grid=grid
            )
    return result


def _build_curve(
    curves: OperatorCurves, index: int, points: _Points, own: Bools, *, scale: Floats, grid: int
) -> CapacityCurve:
    p = np.arange(1, grid + 1)
    observed = points.parallelism[own]
    by_place = scale[find_places_of(p, observed)]
    return CapacityCurve(
        parallelism=p,
        mean_per_s=curves.mean_per_s[index, :grid],
        sd_per_s=curves.sd_per_s[index, :grid] * by_place[:, 0],
        tail_ratio=by_place[:, 1] / by_place[:, 0],
        observed=observed,
        observed_per_s=points.mean_per_s[own],
        slope_per_s=float(curves.slope_per_s[index]),
        length_scale=float(curves.length_scale[index]),
        signal_ratio=float(curves.signal_ratio[index]),
        noise_share=float(curves.noise_share[index]),
    )


def _fit_selectivity(
    job: JobShape, measures: Mapping[str, Floats], used: Bools, recorder: WindowRecorder
) -> list[dict[str, float]]:
    """Return each row's operator -> records out per record in; 1 where nothing flowed."""
    rate = np.where(used[:, :, None], measures["in_per_s"], 0.0).sum(axis=0)
    out = rate * recorder.output_ratio
    ratio = np.divide(out, rate, out=np.ones(rate.shape), where=rate > 0)
    return [dict(zip(job.operators, row, strict=True)) for row in ratio.tolist()]


def _fit_edges(
    job: JobShape, measures: Mapping[str, Floats], used: Bools, place: int, recorder: WindowRecorder
) -> dict[Edge, float]:
    """Return the ratio of each edge of one row."""
    taken = measures["in_per_s"][used, place]
    return learn_edge_ratios(job.graph, taken, taken * recorder.output_ratio)


def _fit_latency(measures: Mapping[str, Floats], used: Bools, place: int) -> LatencyModel:
    mine = used[:, place]
    busy, latency = measures["busy"][mine, place], measures["latency_ms"][mine, place]
    worst = np.where(np.isfinite(latency), latency, -np.inf).max(axis=1, initial=-np.inf)
    known = np.isfinite(worst)
    return fit_windows(busy.max(axis=1, initial=0.0)[known], worst[known])


def fit_recovery(downtimes: Sequence[Downtime]) -> RecoveryModel:
    """Return the recovery model of one row after its downtimes, oldest first; the priors without any."""
    recent = {kind: [one for one in downtimes if one.kind == kind][-RECENT_DOWNTIMES:] for kind in DOWNTIME_PRIOR_S}
    rescale, restart = (
        typical_of_job([one.downtime_s for one in recent[kind]], DOWNTIME_PRIOR_S[kind]) for kind in _KINDS
    )
    ages = [one.checkpoint_age_s for one in recent["restart"]]
    age_s, _ = typical_of_job(ages, CHECKPOINT_AGE_PRIOR_S)
    return RecoveryModel(*rescale, *restart, age_s, sum(map(len, recent.values())))


_KINDS: tuple[EventKind, EventKind] = ("rescale", "restart")
