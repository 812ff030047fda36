"""The appraisal of one job: what ran and what policies would have done, replayed with the same load and failures."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace

import numpy as np

from fleet.frontier import PolicyCurve
from include.settings import Advise, Settings
from include.settings.planner import RECOVERS, JobGoals
from lab.advice.frontier import build_variants, form_curves
from lab.advice.history import History
from lab.advice.objective import WITH, WITHOUT, ObjectiveCost, compare_objective, describe_goals
from lab.advice.objective import build_drivers as build_objective_drivers
from lab.backtest.comparison import (
    BIN_S,
    DAY_BINS,
    IsolatedDriver,
    Spans,
    Subject,
    build_conditions,
    isolate,
)
from lab.replay.candidate_policies import CandidatePolicy, asks_in_restarts
from lab.replay.conditions import Conditions, Prices
from lab.replay.drivers import ScheduleDriver
from lab.replay.forecasts import Forecasts
from lab.replay.rate_series import interpolate_steps
from lab.replay.replay_run import ReplayRun
from lab.replay.scores import Ledger
from lab.replay.workload import Workload, find_sufficient
from lab.simulation.simulated_replica import build_replica
from models.arrays import Floats, Ints
from models.forecasting.batch import default_registry
from models.scheduling.figures import format_count

RAN, CONSTANT = "ran", "constant"
# Constants that are tried: from what the mean load needs to what a third more than the peak needs.
CONSTANTS, CONSTANT_REACH, CONSTANT_UTILISATION = 8, 1.33, 0.95


@dataclass(frozen=True, slots=True)
class DailyCosts:
    """What each day took under one policy; D days, S seeds, all (D, S).

    Attributes:
        slot_hours, late_minutes, rescales: of each day.
        cost: of slots, late minutes and rescales in one unit, as planning weighs them.
    """

    slot_hours: Floats
    late_minutes: Floats
    rescales: Floats
    cost: Floats


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
        spans: how the history was used, in bins.
        first_s: epoch seconds of the first day.
        days: whole days.
        options: what ran first, the best constant last.
        ledger: of the run, for the calibration; rows as in ``rows``.
        rows: option -> its rows.
        run: the replay, for its forecasts.
        objective: what an objective that is asked for would take more; None without one, and where it failed.
        curves: of the frontier; empty where none is asked for.
    """

    spans: Spans
    first_s: int
    days: int
    options: Sequence[Option]
    ledger: Ledger
    rows: dict[str, slice]
    run: ReplayRun
    objective: ObjectiveCost | None = None
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


def prepare(subject: Subject, history: History, settings: Settings) -> tuple[Spans, Workload, Conditions]:
    """Return how the history is used, the load on the job's replica, and the conditions: the failures that happened.

    Raises:
        HistoryError: the history is too short.
        SpecError: the replica cannot be built, since no operator has a capacity model.
    """
    options = settings.advise
    asked = settings.model_copy(update={"backtest": settings.backtest.model_copy(update={"days": options.days})})
    spans = Spans.of(subject.start_s, len(subject.rates_per_s), asked)
    conditions = build_conditions(subject, settings)
    start_s = subject.start_s + spans.before * BIN_S
    happened = tuple(float(at) - start_s for at in history.failure_s if at >= start_s)
    conditions = replace(conditions, disturbances=replace(conditions.disturbances, failure_at_s=happened))
    spec = build_replica(subject.job, subject.graph, subject.models, subject.slots_max, settings.planner)
    steps = interpolate_steps(subject.rates_per_s[spans.before :], BIN_S, conditions.cadence.step_s)
    return spans, Workload(spec, start_s, conditions.cadence.step_s, steps), conditions


def replay(subject: Subject, history: History, settings: Settings) -> Replayed:
    """Replay what ran, the policies and the constants side by side; a policy that fails has its error alone.

    Raises:
        HistoryError: the history is too short.
        SpecError: the replica cannot be built.
    """
    spans, workload, conditions = prepare(subject, history, settings)
    scored_steps = slice(spans.learning * conditions.cadence.steps, None)
    constants = list_constants(workload, scored_steps)
    drivers = build_drivers(workload, conditions, history, constants, settings.advise)
    goals = settings.advise.objectives.get(f"{subject.cluster}/{subject.job}")
    if goals is not None:
        asked = build_objective_drivers(goals, conditions.parameters.get(RECOVERS, {}))
        drivers |= {name: IsolatedDriver(one) for name, one in asked.items()}
    seeds = [zlib.crc32(f"{subject.cluster}/{subject.job}/{seed}".encode()) for seed in range(settings.advise.seeds)]
    good = {name: one for name, one in drivers.items() if isinstance(one, IsolatedDriver)}

    def start(chosen: Mapping[str, IsolatedDriver], drawn: Sequence[int], known: Forecasts | None) -> ReplayRun:
        return ReplayRun(
            workload,
            [CandidatePolicy(name, one, asks_in_restarts(one.driver)) for name, one in chosen.items()],
            drawn,
            conditions,
            past_per_s=subject.rates_per_s[: spans.before],
            forecast_methods=default_registry(),
            forecasts=known,
        )

    run = start(good, seeds, None)
    ledger = run.run().ledger
    rows = {name: slice(place * len(seeds), (place + 1) * len(seeds)) for place, name in enumerate(good)}
    days = spans.scored // DAY_BINS
    last = spans.learning + spans.scored
    bins = slice(last - days * DAY_BINS, last)
    prices = conditions.prices, subject.slots_max
    costs = {name: None if one.error else compute_days(ledger, rows[name], bins, *prices) for name, one in good.items()}
    best = min(constants, key=lambda name: mean_cost(costs[name]))
    options = []
    for name in (RAN, *settings.advise.policies, best):
        driver = drivers[name]
        fault = (driver.error or "") if isinstance(driver, IsolatedDriver) else driver
        shown = CONSTANT if name == best else name
        detail = fault or (_describe_constant(workload, constants[name]) if name == best else "")
        result = costs.get(name)
        slots = np.zeros(0) if result is None else ledger.slots[bins, rows[name].start].reshape(-1, 12).mean(axis=1)
        steps = None if result is None else list_steps(run, rows[name].start)
        options.append(Option(shown, result, slots, detail, steps))
    first_s = workload.start_s + bins.start * BIN_S
    objective = None if goals is None else _price_objective(goals, costs, settings)
    curves: tuple[PolicyCurve, ...] = ()
    if settings.advise.frontier:
        variants = {key: IsolatedDriver(one) for key, one in build_variants(settings.planner, workload, conditions)}
        chosen = {" ".join(key): one for key, one in variants.items()}
        beside = start(chosen, seeds[:1], run.state.forecasts).run().ledger
        took = {
            key: None if one.error else list_arrays(compute_days(beside, slice(row, row + 1), bins, *prices))
            for row, (key, one) in enumerate(variants.items())
        }
        curves = form_curves(took)
    return Replayed(spans, first_s, days, options, ledger, rows, run, objective, curves)


def _price_objective(
    goals: JobGoals, costs: Mapping[str, DailyCosts | None], settings: Settings
) -> ObjectiveCost | None:
    """Return what an objective takes more than the programme without it; None where one of both failed."""
    pair = [costs[name] for name in (WITH, WITHOUT)]
    if any(one is None or not len(one.cost) for one in pair):
        return None
    text = describe_goals(goals, settings.planner.costs.recovery_probability)
    with_it, without = (list_arrays(one) for one in pair if one is not None)
    return compare_objective(text, with_it, without, settings.advise.price_per_slot_hour)


def list_arrays(costs: DailyCosts) -> dict[str, Floats]:
    """Return the arrays of a day's costs by name."""
    return {one.name: getattr(costs, one.name) for one in fields(costs)}


def list_steps(run: ReplayRun, row: int) -> tuple[Ints, Ints]:
    """Return when a row's parallelism changed, epoch seconds, and what it then was."""
    recorder = run.state.recorder
    parallelism = recorder.stack(np.array([row], np.int64), 0, recorder.count)[1][:, 0]
    changes = np.concatenate([[0], np.flatnonzero((np.diff(parallelism, axis=0) != 0).any(axis=1)) + 1])
    return run.state.start_s + changes * BIN_S, parallelism[changes]


def build_drivers(
    workload: Workload, conditions: Conditions, history: History, constants: dict[str, Ints], options: Advise
) -> dict[str, IsolatedDriver | str]:
    """Return name -> driver, or the error with which it cannot be built."""
    names = workload.spec.graph().names
    times_s, ran = history.schedule(BIN_S)
    result: dict[str, IsolatedDriver | str] = {RAN: IsolatedDriver(ScheduleDriver(times_s, names, ran))}
    for name in options.policies:
        result[name] = isolate(name, workload, conditions)
    start = np.array([workload.start_s], np.int64)
    for name, parallelism in constants.items():
        result[name] = IsolatedDriver(ScheduleDriver(start, names, parallelism[None, :]))
    return result


def compute_days(ledger: Ledger, rows: slice, bins: slice, prices: Prices, slots_max: int) -> DailyCosts:
    """Return what each of the whole days in some bins took."""

    def by_day(values: Floats | Ints) -> Floats:
        chosen = np.asarray(values[bins, rows], float)
        return np.asarray(chosen.reshape(-1, DAY_BINS, chosen.shape[1]).sum(axis=1))

    slot_hours, late_minutes = by_day(ledger.slots) * BIN_S / 3600.0, by_day(ledger.late_s) / 60.0
    rescales = by_day(ledger.rescales)
    cost = weigh(slot_hours, late_minutes, rescales, prices, slots_max)
    return DailyCosts(slot_hours, late_minutes, rescales, cost)


def weigh(slot_hours: Floats, late_minutes: Floats, rescales: Floats, prices: Prices, slots_max: int) -> Floats:
    """Return slots, late minutes and rescales in one unit: slot-hours that cost as much, as planning weighs them."""
    per_slot_hour = max(60.0 * prices.slots / slots_max, 1e-9)
    return slot_hours + (prices.late * late_minutes + prices.rescale * rescales) / per_slot_hour


def mean_cost(costs: DailyCosts | None) -> float:
    """Return the mean cost of a day; infinite for a policy that failed."""
    return float("inf") if costs is None else float(costs.cost.mean())


def _describe_constant(workload: Workload, parallelism: Ints) -> str:
    parts = zip(workload.spec.graph().names, parallelism.tolist(), strict=True)
    return f"{format_count(int(parallelism.max()), 'slot')} ({', '.join(f'{name} {count}' for name, count in parts)})"
