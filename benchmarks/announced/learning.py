"""What the planner knows of a job that it has only just met: capacity from its own windows, nothing else."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from models.arrays import Floats, Ints
from models.capacity.capacity_samples import Samples, pack
from models.capacity.curves import fit_curves, scaling_error, widen
from models.job_models import CapacityCurve, JobModels, LatencyModel, RecoveryModel
from models.policies.tuning.capacity_history import History

# Reconfigurations take no time in ContTune's experiment, and nothing fails in it.
_RECOVERY = RecoveryModel(0.0, 0.0, 0.0, 0.0, 0.0, 0)
_LATENCY = LatencyModel(np.zeros(0), np.zeros(0))


def models_of(histories: Mapping[str, History], top: int) -> JobModels | None:
    """Return the models after what was observed so far, by the rules of the training stage; None before anything was.

    The training's gate, its held-out windows and the fleet's part are left out: one job, minutes old.

    Args:
        histories: operator -> its K most recent abilities per parallelism.
        top: P, the largest parallelism of the curves.
    """
    observed = [name for name, history in histories.items() if history]
    if not observed:
        return None
    rows = [(owner, known) for owner, name in enumerate(observed) for known in histories[name]]
    owner = np.array([place for place, _ in rows], np.int64)
    at = np.array([known.parallelism for _, known in rows], np.int64)
    count = np.array([len(known.recent_per_s) for _, known in rows], np.int64)
    mean = np.array([known.capacity_per_s for _, known in rows], float)
    squares = np.array([float(np.var(known.recent_per_s)) * len(known.recent_per_s) for _, known in rows], float)
    curves = _curves(pack(owner, at, count, mean, squares), owner, at, mean, top)
    # Every operator hands on what it gets; see benchmarks.papers.conttune.queries.
    return JobModels(dict(zip(observed, curves, strict=True)), dict.fromkeys(histories, 1.0), _RECOVERY, _LATENCY)


def _curves(samples: Samples, owner: Ints, at: Ints, mean_per_s: Floats, top: int) -> list[CapacityCurve]:
    fitted = fit_curves(samples, np.full(len(samples), float(at.max())), top)
    # pack() keeps the order of operators and parallelisms, in which the rows are already.
    noise = fitted.noise_share[owner] / np.sqrt(samples.count[samples.present])
    error = scaling_error(owner, at, mean_per_s, noise)
    grid = np.arange(1, top + 1)
    result = []
    for row in range(len(samples)):
        own = owner == row
        observed = at[own]
        lowest, highest = np.full(top, float(observed.min())), np.full(top, float(observed.max()))
        mean = fitted.mean_per_s[row]
        sd = widen(mean, fitted.sd_per_s[row], grid.astype(float), lowest=lowest, highest=highest, error=error)
        shape = float(fitted.slope_per_s[row]), float(fitted.length_scale[row]), float(fitted.signal_ratio[row])
        result.append(
            CapacityCurve(grid, mean, sd, observed, mean_per_s[own], *shape, noise_share=float(fitted.noise_share[row]))
        )
    return result
