"""The sizes among which the programme chooses, and what load each sustains."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from include.domain.graph import GraphError
from models.arrays import Floats, Ints
from models.policies.evaluation.window_memory import WindowMemory
from models.policies.job_snapshot import Snapshot
from models.policies.tidewise.capacity_doubts import find_doubts
from models.policies.tidewise.programme_memory import PlannedLoad
from models.policies.tuning.capacity_history import History
from models.policies.tuning.surrogate import fit_surrogate
from models.programme.horizon import EVALUATIONS
from models.programme.load_paths import STEP_S
from models.scheduling.candidates import list_candidates
from models.scheduling.demand import LEVELS, MEDIAN, Demand, SourceForecast, demand
from models.scheduling.even_shares import align_shares
from models.scheduling.expectation import Outlook
from models.scheduling.need import CapacityBounds, job_bounds, upper_limits
from models.scheduling.slot_counts import count_slots_of_rows

CAUTION: Final = 0.7
"""Standard deviations by which capacities are believed to be lower: their errors persist."""
_WINDOW_SD: Final = 0.05  # of one observed capacity
_DISTANCE_SD: Final = 0.01  # per parallelism between where it was observed and where it is read
_LEAST_DOUBT: Final = 0.05
_LEAST_LIMIT: Final = 0.5
_SURE_Z: Final = 1.28
_LEAST: Final = 1e-9
_MOST_DOUBT: Final = 20.0  # a factor of 1e8 either way: nothing is known then, and its exponential is still a number


@dataclass(frozen=True, slots=True)
class JobSizes:
    """Sizes of a job; the first is the running one.

    Attributes:
        configurations: (K, O) parallelism.
        slots: (K,).
        capacity_per_s: (K, H) load that each sustains in the steps to come, records/s of all sources together; H is 1
            where the mix of the sources does not change.
        doubt: (K,) relative deviation of what is not known of it.
    """

    configurations: Ints
    slots: Ints
    capacity_per_s: Floats
    doubt: Floats

    def take(self, rows: Ints) -> JobSizes:
        """Return some of them."""
        return JobSizes(self.configurations[rows], self.slots[rows], self.capacity_per_s[rows], self.doubt[rows])


def list_sizes(
    job: Snapshot,
    memory: WindowMemory,
    planned: PlannedLoad,
    *,
    at: int,
    load_per_s: float,
    left_out: tuple[str, ...] = (),
    steps: int = EVALUATIONS,
    at_least: Mapping[str, int] | None = None,
) -> JobSizes | None:
    """Return the sizes that a job may have; None while nothing tells what it needs.

    Args:
        job: as it is now.
        memory: what its windows told.
        planned: in which mix its sources are expected.
        at: number of the newest step.
        load_per_s: highest load that is considered.
        left_out: operators that limit nothing, since busy time alone calls them short.
        steps: H, where the mix of the sources changes.
        at_least: operator -> parallelism below which no size is listed; None for no such bound.
    """
    graph = job.graph
    limits = upper_limits(graph, job.slots_max)
    needed = _expect_demand(job, memory, planned, at, steps)
    bounds = _believe(job, memory, limits)
    bounds = {name: one for name, one in bounds.items() if name not in left_out}
    if needed is None or not bounds:
        return None
    current = np.array([job.running[name] for name in graph.names], np.int64)
    bounds = _raise_doubtful(job, needed, bounds, current)
    careful = {name: _lower(one) for name, one in bounds.items()}
    groups = graph.slot_sharing_groups
    ladder = list_candidates(needed, careful, current, limits, groups=groups, slots_max=job.slots_max)
    ladder = align_shares(graph, ladder, current)
    if at_least is not None:
        ladder = _raise_all(ladder, np.array([at_least[name] for name in graph.names]), groups, job.slots_max)
    ladder = job.bounds.add_within(ladder, graph.names, groups, limits)
    ladder = np.concatenate([ladder[:1], ladder[1:][(ladder[1:] != current).any(axis=1)]])
    capacity, doubt = _sustain(needed, careful, ladder, limits, load_per_s)
    if not np.isfinite(capacity).all():
        return None
    # Rounded, so that what is measured to the sixth digit decides nothing.
    rounded = np.exp(np.log(capacity).round(3))
    return JobSizes(ladder, count_slots_of_rows(ladder, groups), rounded, doubt.round(4))


def _raise_all(ladder: Ints, least: Ints, groups: Sequence[str], slots_max: int) -> Ints:
    """Return the sizes with at least (O,) a parallelism each, once and within the slots, the first in its place."""
    raised = np.maximum(ladder, least)
    _, first = np.unique(raised, axis=0, return_index=True)
    raised = raised[np.sort(first)]
    fits = count_slots_of_rows(raised, groups) <= slots_max
    fits[0] = True
    return np.asarray(raised[fits])


def _expect_demand(job: Snapshot, memory: WindowMemory, planned: PlannedLoad, at: int, steps: int) -> Demand | None:
    """Return the rates of the operators per record of all sources together, over the horizon."""
    graph = job.graph
    mix = _expect_mix(job, memory, planned, at, steps)
    if mix is None:
        return None
    total = np.maximum(np.sum(list(mix.values()), axis=0), _LEAST)
    quantiles = {name: np.tile(values / total, (len(LEVELS), 1)) for name, values in mix.items()}
    if job.models is not None:
        try:
            return demand(graph, job.models.edge_ratios(graph), SourceForecast(job.now_s, STEP_S, quantiles))
        except GraphError:
            pass
    if not memory.shares:
        return None
    rates = np.array([memory.shares.get(name, np.nan) for name in graph.names])
    wide = np.broadcast_to(rates[None, :, None], (len(LEVELS), len(rates), 1)).copy()
    return Demand(job.now_s, STEP_S, graph.names, np.ones((len(LEVELS), 1)), wide)


def _expect_mix(
    job: Snapshot, memory: WindowMemory, planned: PlannedLoad, at: int, steps: int
) -> dict[str, Floats] | None:
    """Return what each source brings of the load, (H,) or (1,) where the mix does not change; None if not known."""
    sources = job.graph.sources
    if len(sources) == 1:
        return {sources[0]: np.ones(1)}
    mix = planned.read(at + 1, steps)
    if set(mix) == set(sources):
        return mix
    shares = {name: np.full(1, memory.shares.get(name, np.nan)) for name in sources}
    return shares if np.isfinite(list(shares.values())).all() else None


def _believe(job: Snapshot, memory: WindowMemory, limits: Ints) -> dict[str, CapacityBounds]:
    """Return the capacity of each operator of which anything is known: models, drawn to what was seen last."""
    names, histories = job.graph.names, memory.histories
    if job.models is not None and job.models.capacity:
        modelled = job_bounds(job.graph, job.models.capacity, limits, job.options)
        return {name: _draw(one, histories.get(name, ())) for name, one in modelled.items()}
    observed = [name for name in names if histories.get(name)]
    if not observed:
        return {}
    mean, sd = fit_surrogate([histories[name] for name in observed], [job.slots_max] * len(observed))
    result = {}
    for row, name in enumerate(observed):
        most = int(limits[names.index(name)])
        low = np.maximum.accumulate(np.maximum(mean[row] - _SURE_Z * sd[row], 0.0))
        result[name] = CapacityBounds(mean[row, :most], sd[row, :most], low[:most])
    return result


def _draw(bounds: CapacityBounds, history: History) -> CapacityBounds:
    """Return a capacity drawn to what was observed at the nearest parallelism, by their precisions.

    A model that an operator at its limit contradicts is less sure than it says: its deviation is at least what, beside
    that of the observation, explains the difference. One that does less than half of it stands still.
    """
    known = [one for one in history if one.parallelism <= len(bounds.mean_per_s)]
    if not known:
        return bounds
    at = np.array([one.parallelism for one in known])
    value = np.array([one.capacity_per_s for one in known])
    count = np.array([len(one.counted_per_s) for one in known])
    distance = np.abs(np.arange(1, len(bounds.mean_per_s) + 1)[:, None] - at[None, :])
    near = distance.argmin(axis=1)
    mean = np.maximum(bounds.mean_per_s, _LEAST)
    ratio = value[near] / mean[at[near] - 1]
    own = (bounds.sd_per_s / mean) ** 2
    other = _WINDOW_SD**2 / count[near] + (_DISTANCE_SD * distance.min(axis=1)) ** 2
    at_limit = np.array([one.is_limit for one in known])[near] & (ratio >= _LEAST_LIMIT)
    own = np.where(at_limit, np.fmax(own, (ratio - 1) ** 2 - other), own)
    weight = own / (own + other)
    drawn = bounds.mean_per_s * (1 + weight * (ratio - 1))
    sd = bounds.sd_per_s * np.sqrt(np.maximum(1 - weight, _LEAST_DOUBT))
    return replace(bounds, mean_per_s=drawn, sd_per_s=np.where(at_limit, drawn * np.sqrt(weight * other), sd))


def _raise_doubtful(
    job: Snapshot, needed: Demand, bounds: Mapping[str, CapacityBounds], current: Ints
) -> dict[str, CapacityBounds]:
    """Return capacities without those that the last windows prove to be too low: what was processed is believed."""
    outlook = Outlook(needed, bounds, job.recovery, job.options.capacity.lower_bound_z)
    raised = dict(bounds)
    for doubt in find_doubts(outlook, current, job.observations):
        one = bounds[doubt.operator]
        at = int(one.index_of(current[job.graph.position(doubt.operator)]))
        factor = doubt.processed_per_s / max(float(one.mean_per_s[at]), _LEAST)
        raised[doubt.operator] = replace(one, mean_per_s=one.mean_per_s * max(factor, 1.0))
    return raised


def _lower(bounds: CapacityBounds) -> CapacityBounds:
    """Return the capacity as it is believed in the programme."""
    low = np.maximum.accumulate(np.maximum(bounds.mean_per_s - CAUTION * bounds.sd_per_s, _LEAST))
    return replace(bounds, lower_per_s=low)


def relate_doubt(sd_per_s: Floats, lower_per_s: Floats) -> Floats:
    """Return (K,) the relative deviation of capacities, which may be next to nothing: its exponential is a number."""
    return np.asarray(np.minimum(sd_per_s / np.maximum(lower_per_s, _LEAST), _MOST_DOUBT))


def _sustain(
    needed: Demand,
    careful: Mapping[str, CapacityBounds],
    ladder: Ints,
    limits: Ints,
    load_per_s: float,
) -> tuple[Floats, Floats]:
    """Return the (K, H) load that each size sustains and the (K,) doubt of it.

    An operator that is short at its own limit, while others may be wider, must not make all sizes look alike: it counts
    as short only as far as a size does less than that limit.  The doubt is that of the tightest operator, caution
    included: others may be known badly, as a source that is hardly used, without a part in it.
    """
    rates = needed.rates_per_s[MEDIAN]  # (O, H)
    rows = [
        row
        for row, name in enumerate(needed.operators)
        if name in careful and np.isfinite(rates[row]).all() and rates[row].max() > 0
    ]
    if not rows:
        return np.full((len(ladder), rates.shape[1]), np.inf), np.zeros(len(ladder))
    widest = max(int(limits[row]) for row in rows)
    low = {row: careful[needed.operators[row]] for row in rows}
    most = {row: float((low[row].lower_per_s[-1] / np.maximum(rates[row], 1e-12)).min()) for row in rows}
    passing = min([load_per_s, *(most[row] for row in rows if limits[row] == widest)])
    each, doubts = [], []
    for row in rows:
        help_factor = max(passing / max(most[row], _LEAST), 1.0) if limits[row] < widest else 1.0
        at = low[row].index_of(ladder[:, row])
        lower = low[row].lower_per_s[at]
        each.append(help_factor * lower[:, None] / np.maximum(rates[row], 1e-12)[None, :])
        doubts.append(relate_doubt(low[row].sd_per_s[at], lower))
    tightest = np.argmin([one.min(axis=1) for one in each], axis=0)
    return (
        np.asarray(np.maximum(np.min(each, axis=0), _LEAST)),
        np.take_along_axis(np.array(doubts), tightest[None], axis=0)[0],
    )
