"""What plans by a challenger's models would have cost on days of a job's last week, beside those by the champion's.

Both plan the same load on the same replica of the job, with the same forecasts, failures and noise; only the models
differ, and none is trained on the way.  A job replays some whole days of the week, drawn by its name: over many jobs
they are days of the whole week, in a part of the time.

Nobody knows the job's true capacities: on a replica made of one's own models plans look good.  So the days are replayed
on a replica of the champion's models and on one of the challenger's, and the costs are those of both together: models
that are good on their own replica alone gain nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from include.settings import Settings
from lab.backtest.stretch import Stretch, StretchRun
from lab.backtest.subject import BIN_S, DAY_BINS, HOUR_BINS, HistoryError, Subject
from lab.replay.replay_run import CandidateError
from models.arrays import Floats
from models.bundle.fleet_bundle import JobKey
from models.bundle.job_models import JobModels

CHAMPION, CHALLENGER = "champion", "challenger"
WEEK_DAYS, REPLAYED_DAYS = 7, 2
LEAST_BEFORE_DAYS = 3  # which forecasts know: with fewer a job has no plan
LEVEL, RESAMPLES, LEAST_JOBS = 0.9, 2000, 3


@dataclass(frozen=True, slots=True)
class OtherStep:
    """A step of the champion's plans, or of the challenger's, at which the other one had the job run otherwise.

    Attributes:
        at_s: epoch seconds from which the job ran so.
        replica: whose models the replica was made of.
        champion, challenger: operator -> parallelism under either's plans from then on.
    """

    at_s: int
    replica: str
    champion: Mapping[str, int]
    challenger: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class PlanCosts:
    """What days of a job's last week would have cost, a day in the mean over both replicas.

    Attributes:
        days: that were replayed.
        cost: (2, 2) replicas x models, champion first, in slot-hours that cost as much.
        slot_hours, late_minutes, rescales: (2,) under the champion's models and the challenger's.
        other_steps: at which the two differ; those on the champion's replica first.
    """

    days: int
    cost: Floats
    slot_hours: Floats
    late_minutes: Floats
    rescales: Floats
    other_steps: Sequence[OtherStep]

    @property
    def difference(self) -> float:
        """Share by which the challenger's plans cost more (negative: less); NaN where the champion's cost nothing."""
        before, after = self.cost.sum(axis=0)
        return float(after / before - 1.0) if before > 0 else float("nan")


@dataclass(frozen=True, slots=True)
class FleetDifference:
    """The difference over a sample of jobs.

    Attributes:
        jobs: that were compared.
        mean: share by which the challenger's plans cost more, over the sum of all costs.
        low, high: ends of the interval of :data:`LEVEL` for another sample of such jobs; with fewer than
            :data:`LEAST_JOBS` the least and the largest that were seen.
    """

    jobs: int
    mean: float
    low: float
    high: float


def compare_plans(subject: Subject, challenger: JobModels, settings: Settings) -> PlanCosts:
    """Replay days of a job's last week with the plans of either.

    Args:
        subject: the job with the champion's models.
        challenger: the other models of the same job.
        settings: of the pipeline; the job's own policy plans.

    Raises:
        HistoryError: there is less than :data:`REPLAYED_DAYS` to replay and :data:`LEAST_BEFORE_DAYS` before them.
        SpecError: a replica cannot be built, since no operator has a capacity model.
        CandidateError: the policy failed.
    """
    job, policy = draw_days(subject), settings.planner.policy_of(subject.cluster, subject.job)
    before = len(job.rates_per_s) - REPLAYED_DAYS * DAY_BINS
    before -= (job.start_s // BIN_S + before) % HOUR_BINS  # it begins on a full hour
    costs, parts, steps = np.zeros((2, 2)), np.zeros((3, 2)), list[OtherStep]()
    planning, forecasts = {CHAMPION: job.models, CHALLENGER: challenger}, None
    for place, (name, models) in enumerate(planning.items()):
        stretch = Stretch.of(replace(job, models=models), before, settings)
        drivers = {one: stretch.isolate(policy) for one in planning}
        run = stretch.replay(drivers, [job.seed()], given_models=list(planning.values()), forecasts=forecasts)
        forecasts = run.state.forecasts  # of the same load: half of the time
        for column, one in enumerate(planning):
            took = run.compute_days(one, slice(-REPLAYED_DAYS * DAY_BINS, None))
            if took is None:
                raise CandidateError(f"{policy}: {run.errors[one]}")
            costs[place, column] = took.cost.mean()
            parts[:, column] += [took.slot_hours.mean(), took.late_minutes.mean(), took.rescales.mean()]
        steps += list_other_steps(run, name)
    slot_hours, late_minutes, rescales = parts / 2.0
    return PlanCosts(REPLAYED_DAYS, costs, slot_hours, late_minutes, rescales, steps)


def draw_days(subject: Subject) -> Subject:
    """Return the job with its history up to the end of the days that are replayed: the last ones, or some before them.

    Raises:
        HistoryError: the history is too short.
    """
    days = len(subject.rates_per_s) // DAY_BINS
    if days < REPLAYED_DAYS + LEAST_BEFORE_DAYS:
        known = len(subject.rates_per_s) / DAY_BINS
        raise HistoryError(f"{known:.1f} days of history, {REPLAYED_DAYS + LEAST_BEFORE_DAYS} are needed")
    choices = min(WEEK_DAYS, days - LEAST_BEFORE_DAYS) - REPLAYED_DAYS + 1
    skipped_bins = DAY_BINS * (subject.seed() % choices)
    return replace(subject, rates_per_s=subject.rates_per_s[: len(subject.rates_per_s) - skipped_bins])


def list_other_steps(run: StretchRun, replica: str) -> list[OtherStep]:
    """Return the times from which the two rows of a run have unlike parallelism, or other ones than before."""
    names = run.state.graph.names
    times, parallelism = zip(*map(run.list_steps, (CHAMPION, CHALLENGER)), strict=True)
    result = []
    for at_s in np.unique(np.concatenate(times)).tolist():
        both = [
            configuration[int(np.searchsorted(each, at_s, side="right")) - 1]
            for each, configuration in zip(times, parallelism, strict=True)
        ]
        if not np.array_equal(*both):
            named = (dict(zip(names, one.tolist(), strict=True)) for one in both)
            result.append(OtherStep(int(at_s), replica, *named))
    return result


def sample_jobs(jobs: Sequence[JobKey], most: int, seed: str) -> list[JobKey]:
    """Return jobs at random, the same ones for the same seed, in their order.

    >>> sample_jobs([("eu", "a"), ("eu", "b"), ("eu", "c")], 2, "night") == sample_jobs(
    ...     [("eu", "c"), ("eu", "b"), ("eu", "a")], 2, "night"
    ... )
    True
    """
    ranked = sorted(jobs, key=lambda job: hashlib.sha256(f"{seed}/{job[0]}/{job[1]}".encode()).digest())
    return sorted(ranked[: max(most, 0)])


def summarise_costs(costs: Sequence[PlanCosts]) -> FleetDifference:
    """Return the difference over jobs: of the sums of their costs, jobs resampled with replacement."""
    sums = np.array([one.cost.sum(axis=0) for one in costs]).reshape(-1, 2)
    sums = sums[sums[:, 0] > 0]
    if not len(sums):
        return FleetDifference(0, *[float("nan")] * 3)
    mean = float(sums[:, 1].sum() / sums[:, 0].sum() - 1.0)
    if len(sums) < LEAST_JOBS:
        ratios = sums[:, 1] / sums[:, 0] - 1.0
        return FleetDifference(len(sums), mean, float(ratios.min()), float(ratios.max()))
    weights = np.random.default_rng(0).multinomial(len(sums), np.full(len(sums), 1.0 / len(sums)), RESAMPLES)
    before, after = (weights @ sums).T
    low, high = np.quantile(after / before - 1.0, [(1.0 - LEVEL) / 2.0, (1.0 + LEVEL) / 2.0])
    return FleetDifference(len(sums), mean, float(low), float(high))
