"""A bundle from the models of each job."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import astuple, fields

import numpy as np

from models.arrays import Floats
from models.bundle.fleet_bundle import FleetBundle, JobKey, pack_edges
from models.bundle.job_models import CapacityCurve, JobModels, RecoveryModel


def pack_models(model_version: str, models: Mapping[JobKey, JobModels]) -> FleetBundle:
    """Return the bundle of models that were made one by one, by cluster and job."""
    index = tuple((cluster, job, tuple(result.selectivity)) for (cluster, job), result in models.items())
    curves = [result.capacity.get(name) for result in models.values() for name in result.selectivity]
    selectivity = [value for result in models.values() for value in result.selectivity.values()]
    present = [curve for curve in curves if curve is not None]
    latencies = [result.latency for result in models.values()]
    arrays = {
        "operator_count": np.array([len(names) for _, _, names in index], np.int64),
        "knot_count": np.array([len(latency.knots) for latency in latencies], np.int64),
        "grid_count": np.array([len(curve.parallelism) if curve else 0 for curve in curves], np.int64),
        "observed_count": np.array([len(curve.observed) if curve else 0 for curve in curves], np.int64),
        "recovery": np.array([astuple(result.recovery) for result in models.values()], float).reshape(
            -1, len(fields(RecoveryModel))
        ),
        "knots": _concatenate(latency.knots for latency in latencies),
        "latency_at_knots_ms": _concatenate(latency.latency_at_knots_ms for latency in latencies),
        "scalars": np.array([_scalars(*pair) for pair in zip(curves, selectivity, strict=True)]).reshape(-1, 5),
        "mean_per_s": _concatenate(curve.mean_per_s for curve in present),
        "sd_per_s": _concatenate(curve.sd_per_s for curve in present),
        "observed": _concatenate(curve.observed for curve in present).astype(np.int64),
        "observed_per_s": _concatenate(curve.observed_per_s for curve in present),
        **pack_edges((names, result.edges) for (*_, names), result in zip(index, models.values(), strict=True)),
    }
    return FleetBundle(model_version, index, arrays)


def _concatenate(parts: Iterable[np.ndarray]) -> Floats:
    return np.concatenate([np.zeros(0), *parts])


def _scalars(curve: CapacityCurve | None, selectivity: float) -> tuple[float, ...]:
    if curve is None:
        return (np.nan, np.nan, np.nan, np.nan, selectivity)
    return (curve.slope_per_s, curve.length_scale, curve.signal_ratio, curve.noise_share, selectivity)
