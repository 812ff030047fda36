"""Source rates pushed through a job graph, and the parallelism that sustains them: Eq. 7-8 of DS2."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from include.domain.graph import GraphError, JobGraph
from models.arrays import Floats

# A quotient this close above an integer is rounding error of floating point, not need for one more instance.
_CEIL_SLACK = 1e-9


def required_rates(
    graph: JobGraph, selectivity: Mapping[str, float], source_rates: Mapping[str, npt.ArrayLike]
) -> dict[str, Floats]:
    """Return the input rate of each operator that keeps up with its sources, Eq. 8 of DS2.

    An operator's output is its selectivity times the sum of what feeds it, and goes in full to EVERY successor.

    Args:
        graph: the job.
        selectivity: operator -> records out per record in; a source's is not used.
        source_rates: source -> (T,) records/s that it emits.

    Returns:
        operator -> (T,) records/s in; a source's is the rate that it emits.

    Raises:
        GraphError: a source without a rate, or an operator that feeds others without a selectivity.
    """
    required: dict[str, Floats] = {}
    output: dict[str, Floats] = {}
    feeding = {upstream for operator in graph.operators for upstream in operator.upstream}
    for operator in graph.operators:
        if operator.is_source:
            if operator.name not in source_rates:
                raise GraphError(f"no rate for source {operator.name!r}; given are {sorted(source_rates)}")
            required[operator.name] = output[operator.name] = np.asarray(source_rates[operator.name], float)
            continue
        incoming = np.sum([output[upstream] for upstream in operator.upstream], axis=0)
        required[operator.name] = np.asarray(incoming, float)
        if operator.name in feeding:
            if operator.name not in selectivity:
                raise GraphError(f"no selectivity for {operator.name!r}, which feeds others; was it ever observed?")
            output[operator.name] = selectivity[operator.name] * required[operator.name]
    return required


def unrounded_parallelism(
    required_per_s: npt.ArrayLike, true_processing_per_s: npt.ArrayLike, parallelism: npt.ArrayLike
) -> Floats:
    """Return the quotient of Eq. 7 of DS2: required rate / true processing rate of one instance.

    Args:
        required_per_s: (...) records/s that must be processed.
        true_processing_per_s: (...) aggregated true rate of the operator at the parallelism.
        parallelism: (...) at which the true rate was seen.

    Returns:
        (...) instances; NaN where the true rate is not known or not positive.
    """
    rate = np.asarray(true_processing_per_s, float)
    with np.errstate(divide="ignore", invalid="ignore"):
        raw = np.asarray(required_per_s, float) * np.asarray(parallelism, float) / rate
    return np.asarray(np.where(np.isfinite(rate) & (rate > 0), raw, np.nan), float)


def optimal_parallelism(
    required_per_s: npt.ArrayLike,
    true_processing_per_s: npt.ArrayLike,
    parallelism: npt.ArrayLike,
    *,
    scaling_factor: float = 0.0,
) -> npt.NDArray[np.int64]:
    """Return the smallest sufficient parallelism, Eq. 7 of DS2, at least 1.

    Deviation: where the true rate is not known the parallelism stays (DS2 casts the undefined quotient to an integer).

    Args:
        required_per_s: (...) records/s that must be processed.
        true_processing_per_s: (...) aggregated true rate of the operator at the parallelism.
        parallelism: (...) at which the true rate was seen.
        scaling_factor: headroom, 0.2 for 20% more than needed.
    """
    raw = unrounded_parallelism(required_per_s, true_processing_per_s, parallelism) * (1.0 + scaling_factor)
    wanted = np.where(np.isfinite(raw), np.maximum(np.ceil(raw * (1.0 - _CEIL_SLACK)), 1.0), parallelism)
    return wanted.astype(np.int64)


def source_capacity(
    graph: JobGraph, selectivity: Mapping[str, float], mix: Mapping[str, float], capacity_per_s: Mapping[str, float]
) -> float:
    """Return the total source rate that a configuration sustains when the sources keep their mix.

    Args:
        graph: the job.
        selectivity: as for :func:`required_rates`.
        mix: source -> its share of all records, summing to 1.
        capacity_per_s: operator -> its capacity at its parallelism; operators without one do not limit.

    Returns:
        records/s of all sources together; infinite when no operator limits.
    """
    per_record = required_rates(graph, selectivity, mix)
    limits = [
        capacity_per_s[name] / float(need) for name, need in per_record.items() if name in capacity_per_s and need > 0
    ]
    return min(limits, default=float("inf"))
