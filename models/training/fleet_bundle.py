"""One bundle from what was learnt of each job, with what jobs lend each other: priors, downtimes, latency."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from models.arrays import Floats, Ints
from models.bundle.fleet_bundle import FleetBundle, JobKey, pack_edges
from models.bundle.job_models import LatencyModel
from models.capacity.kinds import KINDS
from models.capacity.prior_learning import learn_prior
from models.recovery.latency import fit_windows
from models.training.job_facts import JobEstimates
from models.training.operator_fits import Fits, OperatorFit

_NO_FIT = (float("nan"),) * 4


@dataclass(frozen=True, slots=True)
class _Operator:
    """An operator of the bundle; ``kind``: -1 where it is not known."""

    kind: int
    selectivity: float
    fitted: OperatorFit | None


def assemble_bundle(
    model_version: str, jobs: Sequence[JobEstimates], fits: Sequence[Fits], recovery: Floats
) -> FleetBundle:
    """Put a fleet's fits together; intervals of capacities are not calibrated yet.

    Jobs are in the order of their names; recovery is (J, fields of RecoveryModel).
    """
    index = tuple((*one.job, one.operators) for one in jobs)
    operators = [_operator(one, name, own) for one, own in zip(jobs, fits, strict=True) for name in one.operators]
    arrays = {
        **_pack_curves(operators),
        **_pack_latency([one.latency for one in jobs]),
        "recovery": recovery,
        "operator_count": np.array([len(names) for *_, names in index], np.int64),
        **pack_edges((one.operators, one.edges) for one in jobs),
    }
    return FleetBundle(model_version, index, arrays)


def list_fits(fits: Iterable[Fits]) -> list[OperatorFit]:
    """Return the fits of jobs in the order of the bundle."""
    return [own[name] for own in fits for name in sorted(own)]


def number_clusters(jobs: Iterable[JobKey]) -> Ints:
    """Return (J,) the place of each job's cluster among the clusters by name."""
    clusters = [cluster for cluster, _ in jobs]
    return np.unique(np.array(clusters, str), return_inverse=True)[1].astype(np.int64)


def _operator(facts: JobEstimates, name: str, fits: Fits) -> _Operator:
    # An operator through which nothing flowed yet: one record out per record in is assumed until it is measured.
    kind = KINDS.index(facts.kinds[name]) if name in facts.kinds else -1
    return _Operator(kind, facts.selectivity.get(name, 1.0), fits.get(name))


def _pack_curves(operators: Sequence[_Operator]) -> dict[str, np.ndarray]:
    """Return capacity curves, with the priors of the kinds."""
    fitted = [one.fitted for one in operators]
    known = [one for one in fitted if one is not None]
    scalars = np.array([(*_scalars(one.fitted), one.selectivity) for one in operators], float).reshape(-1, 5)
    observed_count = np.array([0 if one is None else len(one.observed) for one in fitted], np.int64)
    observed = _join([one.observed for one in known]).astype(np.int64)
    per_s, doubt = _join([one.observed_per_s for one in known]), _join([one.doubt for one in known])
    arrays = {
        "grid_count": np.array([0 if one is None else len(one.mean_per_s) for one in fitted], np.int64),
        "observed_count": observed_count,
        "scalars": scalars,
        "mean_per_s": _join([one.mean_per_s for one in known]),
        "sd_per_s": _join([one.sd_per_s for one in known]),
        "observed": observed,
        "observed_per_s": per_s,
    }
    # The capacity of an idle operator is uncertain, and one that has left the graph has no kind.  At a parallelism that
    # was used less than others an operator shows how capacity depends on load, not how it scales.
    sure = doubt == 0.0
    prior = learn_prior(
        np.array([one.kind for one in operators], np.int64),
        np.repeat(np.arange(len(operators)), observed_count)[sure],
        observed[sure].astype(float),
        per_s[sure],
        length_scale=scalars[:, 1],
        eligible=np.array([one is not None and not one.idle for one in fitted], bool),
    )
    return {**arrays, **prior.to_arrays()}


def _scalars(fitted: OperatorFit | None) -> tuple[float, ...]:
    if fitted is None:
        return _NO_FIT
    return fitted.slope_per_s, fitted.length_scale, fitted.signal_ratio, fitted.noise_share


def _pack_latency(models: Sequence[LatencyModel]) -> dict[str, np.ndarray]:
    """Return the latency curves in the order of the jobs; a job without one has the fleet's."""
    # The fleet's curve, from the knots of all jobs, is for a job whose latency was never measured.
    fleet = fit_windows(_join([one.knots for one in models]), _join([one.latency_at_knots_ms for one in models]))
    own = [one if len(one.knots) else fleet for one in models]
    return {
        "knot_count": np.array([len(one.knots) for one in own], np.int64),
        "knots": _join([one.knots for one in own]),
        "latency_at_knots_ms": _join([one.latency_at_knots_ms for one in own]),
    }


def _join(parts: Iterable[np.ndarray]) -> Floats:
    return np.concatenate([np.zeros(0), *parts]).astype(float)
