"""What a fleet prior is worth for a new job of the replay: it is learned from the other built-in jobs.

``python -m benchmarks.replay.fleet_prior_value`` shows how well operators observed at one parallelism are known.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.capacity.saturated_points import list_saturated
from benchmarks.replay.replay_jobs import JOBS, SLOTS, read_job
from lab.commands.simulated_jobs import load_simulated_jobs
from lab.replay.conditions import Disturbances
from lab.replay.workload import compute_curves
from lab.simulation.spec import JobSpec
from models.arrays import Floats, Ints
from models.capacity.fleet_prior import FleetPrior
from models.capacity.kinds import KINDS, kind_of
from models.capacity.prior_learning import learn_prior
from models.capacity.prior_posterior import posterior
from models.training.operator_fits import OperatorFit, fit_operators

# A job that has run for weeks was observed from its nights to its peaks.
OBSERVED_AT = np.array([2, 4, 8, 12, 16, 24, SLOTS])
WINDOWS = 10  # kept at each parallelism: training.recent_per_parallelism
SEED = 0
# Of a new operator: where it was first observed, and how much further it then has to go.
FIRST_OBSERVED, FURTHER = (4, 8), (0.5, 2.0, 4.0)
WIDTH = 120
_WITHIN_80 = 1.2816  # standard deviations that hold 80% of a normal distribution


def find_kinds(spec: JobSpec) -> Ints:
    """Return (O,) the kinds of a job's operators, indices into KINDS."""
    feeds = [name for operator in spec.operators for name in operator.upstream]
    result = [kind_of(one.name, len(one.upstream), feeds.count(one.name)) for one in spec.operators]
    return np.array([KINDS.index(kind) for kind in result], np.int64)


def fit_windows(specs: Sequence[JobSpec], at: Ints, disturbances: Disturbances, *, largest: float) -> list[OperatorFit]:
    """Return the fits of some jobs' operators to what windows at some parallelisms would have shown."""
    truth = np.concatenate([compute_curves(spec)[:, at] for spec in specs])  # (B, m)
    noise = disturbances.measurement_noise * np.random.default_rng(SEED).standard_normal((*truth.shape, WINDOWS))
    windows = truth[:, :, None] * (1.0 + noise)
    points = list_saturated(
        np.repeat(np.arange(len(truth)), len(at) * WINDOWS),
        np.tile(np.repeat(at, WINDOWS), len(truth)),
        np.tile(np.arange(float(WINDOWS)), truth.size),
        windows.ravel(),
        keep=WINDOWS,
        largest=np.full(len(truth), largest),
        key_groups=np.full(len(truth), np.nan),
        top=SLOTS,
    )
    return fit_operators(points, leaves_out=False)


def learn_prior_from(specs: Sequence[JobSpec], disturbances: Disturbances) -> FleetPrior:
    """Return the prior from some jobs; ``disturbances`` has the measurement noise of their windows."""
    fits = fit_windows(specs, OBSERVED_AT, disturbances, largest=SLOTS)
    return learn_prior(
        np.concatenate([find_kinds(spec) for spec in specs]),
        np.repeat(np.arange(len(fits)), [len(one.observed) for one in fits]),
        np.concatenate([one.observed for one in fits]).astype(float),
        np.concatenate([one.observed_per_s for one in fits]),
        length_scale=np.array([one.length_scale for one in fits]),
        eligible=np.ones(len(fits), bool),
    )


def learn_prior_without(job: str, disturbances: Disturbances) -> FleetPrior:
    """Return the prior from the built-in jobs before a job is there.

    Args:
        job: name or file of the new job: it, and a built-in job of its name, are left out.
        disturbances: whose measurement noise the fleet's windows have.
    """
    new = read_job(job).spec.name
    return learn_prior_from([spec for make in JOBS.values() if (spec := make().spec).name != new], disturbances)


def compare_with_prior(spec: JobSpec, fleet: Sequence[JobSpec], disturbances: Disturbances) -> tuple[Floats, Floats]:
    """Return how well capacities of a new job are known from one parallelism, without and with a fleet prior.

    Args:
        spec: the new job.
        fleet: jobs from which the prior is learned, this one not among them.
        disturbances: whose measurement noise windows have.

    Returns:
        (2, n) relative errors, of operators without and with the prior, over operators, FIRST_OBSERVED and FURTHER;
        and (2, n) whether the truth lies within the band of 80%.
    """
    prior, kinds, truth = learn_prior_from(fleet, disturbances), find_kinds(spec), compute_curves(spec)
    errors, inside = [], []
    for first in FIRST_OBSERVED:
        fits = fit_windows([spec], np.array([first]), disturbances, largest=first)
        to = np.array([round(first * factor) for factor in FURTHER])
        mean, sd = np.stack([one.mean_per_s for one in fits]), np.stack([one.sd_per_s for one in fits])
        observed, per_s = (np.stack([getattr(one, name) for one in fits]) for name in ("observed", "observed_per_s"))
        noise = sd[:, [first - 1]] / per_s
        shared = posterior(prior, kinds, observed.astype(float), per_s, noise_share=noise, top=SLOTS)
        for expected, spread in ((mean, sd), shared):
            away = np.abs(expected[:, to - 1] - truth[:, to])
            errors.append((away / truth[:, to]).ravel())
            inside.append((away <= _WITHIN_80 * spread[:, to - 1]).ravel())
    return _split_by_prior(errors), _split_by_prior(inside)


def _split_by_prior(parts: Sequence[np.ndarray]) -> Floats:
    return np.stack([np.concatenate(parts[with_prior::2]) for with_prior in range(2)]).astype(float)


def main() -> int:
    """Print what a fleet prior is worth for each job, learned from the other jobs of its fleet."""
    table = Table("fleet", "jobs", "operators", "error without", "with prior", "within 80% without", "with prior")
    disturbances = Disturbances()
    fleets = {
        "jobs of the replay": [make().spec for make in JOBS.values()],
        "make run": [one.spec for one in load_simulated_jobs()],
    }
    for name, specs in fleets.items():
        result = [compare_with_prior(new, [one for one in specs if one is not new], disturbances) for new in specs]
        errors, inside = (np.concatenate(parts, axis=1) for parts in zip(*result, strict=True))
        operators = sum(len(spec.operators) for spec in specs)
        table.add_row(name, str(len(specs)), str(operators), *_format_shares(errors), *_format_shares(inside))
    Console(width=WIDTH).print(table)
    return 0


def _format_shares(values: Floats) -> list[str]:
    return [f"{value:.1%}" for value in values.mean(axis=1)]


if __name__ == "__main__":
    sys.exit(main())
