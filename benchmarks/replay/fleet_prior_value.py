"""What a fleet prior is worth for a new job of the replay: it is learned from the other built-in jobs.

``python -m benchmarks.replay.fleet_prior_value`` shows how well operators observed at one parallelism are known.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.replay.replay_jobs import JOBS, SLOTS, read_job
from cli.simulated_jobs import load_simulated_jobs
from models.arrays import Floats, Ints
from models.capacity.capacity_samples import Samples, pack
from models.capacity.curves import SCALING_ERROR_PRIOR, fit_curves, widen
from models.capacity.fleet_prior import FleetPrior
from models.capacity.kinds import KINDS, kind_of
from models.capacity.prior_learning import learn_prior
from models.capacity.prior_posterior import posterior
from models.evaluation.conditions import Disturbances
from models.evaluation.workload import compute_curves
from models.simulation.spec import JobSpec

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


def simulate_windows(specs: Sequence[JobSpec], at: Ints, disturbances: Disturbances) -> Samples:
    """Return what the windows of some jobs would have shown of their operators at some parallelisms."""
    truth = np.concatenate([compute_curves(spec)[:, at] for spec in specs])  # (B, m)
    noise = disturbances.measurement_noise * np.random.default_rng(SEED).standard_normal((*truth.shape, WINDOWS))
    windows = truth[:, :, None] * (1.0 + noise)
    owner, parallelism = np.repeat(np.arange(len(truth)), len(at)), np.tile(at, len(truth))
    mean = windows.mean(axis=2)
    squares = ((windows - mean[:, :, None]) ** 2).sum(axis=2)
    return pack(owner, parallelism, np.full(len(owner), WINDOWS), mean.ravel(), squares.ravel())


def learn_prior_from(specs: Sequence[JobSpec], disturbances: Disturbances) -> FleetPrior:
    """Return the prior from some jobs; ``disturbances`` has the measurement noise of their windows."""
    samples = simulate_windows(specs, OBSERVED_AT, disturbances)
    fitted = fit_curves(samples, np.full(len(samples), float(SLOTS)), SLOTS)
    return learn_prior(
        np.concatenate([find_kinds(spec) for spec in specs]),
        np.repeat(np.arange(len(samples)), len(OBSERVED_AT)),
        samples.parallelism.ravel(),
        samples.mean_per_s.ravel(),
        length_scale=fitted.length_scale,
        eligible=np.ones(len(samples), bool),
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
    grid = np.arange(1.0, SLOTS + 1)
    errors, inside = [], []
    for first in FIRST_OBSERVED:
        samples = simulate_windows([spec], np.array([first]), disturbances)
        to = np.array([round(first * factor) for factor in FURTHER])
        alone = fit_curves(samples, np.full(len(samples), float(first)), SLOTS)
        at = np.full(SLOTS, float(first))
        mean, sd = alone.mean_per_s, alone.sd_per_s
        wide = widen(mean, sd, grid, lowest=at, highest=at, error=SCALING_ERROR_PRIOR)
        noise = sd[:, [first - 1]] / samples.mean_per_s
        shared = posterior(prior, kinds, samples.parallelism, samples.mean_per_s, noise_share=noise, top=SLOTS)
        for expected, spread in ((mean, wide), shared):
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
