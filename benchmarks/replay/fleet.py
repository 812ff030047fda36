"""What a fleet would have taught before a job of the replay is new: the built-in jobs except that one.

``python -m benchmarks.replay.fleet`` shows what such a prior knows of an operator that was seen at one parallelism.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.replay.replay_jobs import JOBS, SLOTS, job_of
from models.arrays import Floats, Ints
from models.capacity.capacity_samples import Samples, pack
from models.capacity.curves import SCALING_ERROR_PRIOR, fit_curves, widen
from models.capacity.fleet_prior import FleetPrior
from models.capacity.kinds import KINDS, kind_of
from models.capacity.prior_learning import learn_prior
from models.capacity.prior_posterior import posterior
from models.evaluation.conditions import Disturbances
from models.evaluation.workload import curves_per_s
from models.simulation.jobs import company
from models.simulation.spec import JobSpec

# A job that has run for weeks was seen all the way from its nights to its peaks.
SEEN_AT = np.array([2, 4, 8, 12, 16, 24, SLOTS])
WINDOWS = 10  # kept at each parallelism: training.recent_per_parallelism
SEED = 0
# Of an operator that is new: where it was first seen, and how much further it then has to go.
FIRST_SEEN, FURTHER = (4, 8), (0.5, 2.0, 4.0)
WIDTH = 120
_WITHIN_80 = 1.2816  # standard deviations that hold 80% of a normal distribution


def kinds_of(spec: JobSpec) -> Ints:
    """Return (O,) the kinds of a job's operators, indices into KINDS."""
    feeds = [name for operator in spec.operators for name in operator.upstream]
    found = [kind_of(one.name, len(one.upstream), feeds.count(one.name)) for one in spec.operators]
    return np.array([KINDS.index(kind) for kind in found], np.int64)


def measured(specs: Sequence[JobSpec], at: Ints, around: Disturbances) -> Samples:
    """Return what the windows of some jobs would have shown of their operators at some parallelisms."""
    truth = np.concatenate([curves_per_s(spec)[:, at] for spec in specs])  # (B, m)
    noise = around.measurement_noise * np.random.default_rng(SEED).standard_normal((*truth.shape, WINDOWS))
    windows = truth[:, :, None] * (1.0 + noise)
    owner, parallelism = np.repeat(np.arange(len(truth)), len(at)), np.tile(at, len(truth))
    mean = windows.mean(axis=2)
    squares = ((windows - mean[:, :, None]) ** 2).sum(axis=2)
    return pack(owner, parallelism, np.full(len(owner), WINDOWS), mean.ravel(), squares.ravel())


def prior_of(specs: Sequence[JobSpec], around: Disturbances) -> FleetPrior:
    """Return what some jobs teach; ``around`` has the measurement noise of their windows."""
    samples = measured(specs, SEEN_AT, around)
    fitted = fit_curves(samples, np.full(len(samples), float(SLOTS)), SLOTS)
    return learn_prior(
        np.concatenate([kinds_of(spec) for spec in specs]),
        np.repeat(np.arange(len(samples)), len(SEEN_AT)),
        samples.parallelism.ravel(),
        samples.mean_per_s.ravel(),
        length_scale=fitted.length_scale,
        eligible=np.ones(len(samples), bool),
    )


def prior_without(job: str, around: Disturbances) -> FleetPrior:
    """Return what the built-in jobs teach before a job is there.

    Args:
        job: name or file of the job that is new: it, and a built-in job of its name, teaches nothing.
        around: whose measurement noise the fleet's windows have.
    """
    new = job_of(job).spec.name
    return prior_of([spec for make in JOBS.values() if (spec := make().spec).name != new], around)


def first_seen(spec: JobSpec, fleet: Sequence[JobSpec], around: Disturbances) -> tuple[Floats, Floats]:
    """Return how well capacities of a new job are known from one parallelism, alone and with a fleet.

    Args:
        spec: the job that is new.
        fleet: jobs that teach, this one not among them.
        around: whose measurement noise windows have.

    Returns:
        (2, n) relative errors, of operators alone and of those that borrow, over operators, FIRST_SEEN and FURTHER;
        and (2, n) whether the truth lies within the band of 80%.
    """
    prior, kinds, truth = prior_of(fleet, around), kinds_of(spec), curves_per_s(spec)
    grid = np.arange(1.0, SLOTS + 1)
    errors, inside = [], []
    for first in FIRST_SEEN:
        samples = measured([spec], np.array([first]), around)
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
    return _by_way(errors), _by_way(inside)


def _by_way(parts: Sequence[np.ndarray]) -> Floats:
    return np.stack([np.concatenate(parts[way::2]) for way in range(2)]).astype(float)


def main() -> int:
    """Print what a fleet's prior is worth for each job, learnt from the other jobs of its fleet."""
    table = Table("fleet", "jobs", "operators", "error alone", "borrowing", "within 80% alone", "borrowing")
    around = Disturbances()
    fleets = {
        "jobs of the replay": [make().spec for make in JOBS.values()],
        "make run": [one.spec for one in company()],
    }
    for name, specs in fleets.items():
        found = [first_seen(new, [one for one in specs if one is not new], around) for new in specs]
        errors, inside = (np.concatenate(parts, axis=1) for parts in zip(*found, strict=True))
        operators = sum(len(spec.operators) for spec in specs)
        table.add_row(name, str(len(specs)), str(operators), *_shares(errors), *_shares(inside))
    Console(width=WIDTH).print(table)
    return 0


def _shares(values: Floats) -> list[str]:
    return [f"{value:.1%}" for value in values.mean(axis=1)]


if __name__ == "__main__":
    sys.exit(main())
