"""The appraisal of one job: what ran and what policies would have done, replayed with the same load and failures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from fleet.frontier import PolicyCurve
from include.settings import Settings
from include.settings.planner import RECOVERS
from lab.advice.frontier import build_variants, form_curves
from lab.advice.history import History
from lab.advice.objective import WITH, build_with
from lab.backtest.comparison import Spans
from lab.backtest.daily_costs import DailyCosts
from lab.backtest.stretch import IsolatedDriver, Stretch, StretchRun
from lab.backtest.subject import BIN_S, HOUR_BINS, HistoryError, Subject
from lab.replay.drivers import ScheduleDriver
from lab.replay.workload import Workload, find_sufficient
from models.arrays import Floats, Ints
from models.scheduling.figures import format_count

RAN, CONSTANT = "ran", "constant"
# Constants that are tried: from what the mean load needs to what a third more than the peak needs.
CONSTANTS, CONSTANT_REACH, CONSTANT_UTILISATION = 8, 1.33, 0.95


@dataclass(frozen=True, slots=True)
class Option:
    """A policy, what ran, or a constant.

    Attributes:
        name: of the policy.
        costs: None where it failed.
        slots: (hours,) mean slots in each hour of the first seed, to draw; empty where it failed.
        detail: the parallelism of a constant; the error of one that failed.
        steps: (n,) epoch seconds and (n, O) parallelism from each of them on, of the first seed, the days in which
            policies learn included; None where it failed.
    """

    name: str
    costs: DailyCosts | None
    slots: Floats
    detail: str = ""
    steps: tuple[Ints, Ints] | None = None


@dataclass(frozen=True, slots=True)
class Replayed:
    """A job's appraisal.

    Attributes:
        spans: how the history was used.
        first_s: epoch seconds of the first whole day.
        options: what ran first, the best constant last.
        run: of what ran, the policies and the constants, for the calibration.
        objective: with and without an objective that is asked for; None without one, and where one of both failed.
        curves: of the frontier; empty where none is asked for.
    """

    spans: Spans
    first_s: int
    options: Sequence[Option]
    run: StretchRun
    objective: tuple[DailyCosts, DailyCosts] | None = None
    curves: tuple[PolicyCurve, ...] = ()


def list_constants(workload: Workload, scored: slice) -> dict[str, Ints]:
    """Return name -> (O,) parallelism of the constants that are tried, without doubles."""
    rates = workload.rates_per_s[scored]
    totals = rates.sum(axis=1)
    mean = rates.mean(axis=0)
    top = CONSTANT_REACH * float(totals.max()) / max(float(totals.mean()), 1e-9)
    result: dict[tuple[int, ...], Ints] = {}
    for level in np.linspace(1.0, top, CONSTANTS):
        parallelism = find_sufficient(workload.spec, level * mean, CONSTANT_UTILISATION)
        result.setdefault(tuple(parallelism.tolist()), parallelism)
    return {f"{CONSTANT}_{place}": parallelism for place, parallelism in enumerate(result.values())}


def prepare(subject: Subject, history: History, settings: Settings) -> tuple[Spans, Stretch]:
    """Return how the history is used, and the stretch of it that is replayed, with the failures that happened.

    Raises:
        HistoryError: the history is too short.
        SpecError: the replica cannot be built, since no operator has a capacity model.
    """
    spans = Spans.of(subject.start_s, len(subject.rates_per_s), settings, settings.advise.days)
    if not spans.days:
        raise HistoryError("there is no whole day of history to appraise")
    return spans, Stretch.of(subject, spans.before, settings, history.failure_s)


def replay(subject: Subject, history: History, settings: Settings) -> Replayed:
    """Replay what ran, the policies and the constants side by side; a policy that fails has its error alone.

    Raises:
        HistoryError: the history is too short.
        SpecError: the replica cannot be built.
    """
    spans, stretch = prepare(subject, history, settings)
    workload, parameters, chosen = stretch.workload, stretch.conditions.parameters, settings.advise
    names, start_s = workload.spec.graph().names, np.array([workload.start_s], np.int64)
    constants = list_constants(workload, slice(spans.learning * stretch.conditions.cadence.steps, None))
    times_s, ran = history.schedule()
    drivers: dict[str, IsolatedDriver | str] = {RAN: IsolatedDriver(ScheduleDriver(times_s, names, ran))}
    drivers |= {name: stretch.isolate(name) for name in chosen.policies}
    for name, parallelism in constants.items():
        drivers[name] = IsolatedDriver(ScheduleDriver(start_s, names, parallelism[None, :]))
    goals = chosen.objectives.get(subject.key)
    if goals is not None:
        drivers[WITH] = IsolatedDriver(build_with(goals, parameters.get(RECOVERS)))
        drivers.setdefault(RECOVERS, stretch.isolate(RECOVERS))
    seeds, bins = [subject.seed(f"/{draw}") for draw in range(chosen.seeds)], spans.whole_days
    run = stretch.replay(drivers, seeds)
    costs = {name: run.compute_days(name, bins) for name in drivers}
    best = min(constants, key=lambda name: mean_cost(costs[name]))
    options = [_form_option(run, name, costs[name], bins) for name in (RAN, *chosen.policies, best)]
    options[-1] = replace(options[-1], name=CONSTANT, detail=_describe_constant(names, constants[best]))
    with_it, without = costs.get(WITH), costs.get(RECOVERS)
    objective = None if with_it is None or without is None else (with_it, without)
    curves: tuple[PolicyCurve, ...] = ()
    if chosen.frontier:
        variants = build_variants(settings.planner, parameters)
        beside = stretch.replay(variants, seeds[:1], forecasts=run.state.forecasts)
        curves = form_curves({key: beside.compute_days(key, bins) for key in variants})
    return Replayed(spans, workload.start_s + bins.start * BIN_S, options, run, objective, curves)


def _form_option(run: StretchRun, name: str, costs: DailyCosts | None, bins: slice) -> Option:
    if costs is None:
        return Option(name, None, np.zeros(0), run.errors[name])
    row = run.rows[name].start
    return Option(
        name, costs, run.ledger.slots[bins, row].reshape(-1, HOUR_BINS).mean(axis=1), "", run.list_steps(name)
    )


def mean_cost(costs: DailyCosts | None) -> float:
    """Return the mean cost of a day; infinite for a policy that failed."""
    return float("inf") if costs is None else float(costs.cost.mean())


def _describe_constant(names: Sequence[str], parallelism: Ints) -> str:
    parts = zip(names, parallelism.tolist(), strict=True)
    return f"{format_count(int(parallelism.max()), 'slot')} ({', '.join(f'{name} {count}' for name, count in parts)})"
