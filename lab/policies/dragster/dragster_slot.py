"""One slot of Dragster, Algorithm 2: observe, update the multipliers, set targets, choose tasks."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from lab.policies.dragster.dragster_memory import CapacitySample, DragsterMemory, SlotObservations
from lab.policies.dragster.dragster_options import CapacityTarget, DragsterOptions
from lab.policies.dragster.gaussian import Kernel, NormalisedSamples, Posterior, posterior
from lab.policies.dragster.lagrangian import (
    SaddlePointProblem,
    gradient_targets,
    multipliers_after,
    saddle_targets,
    step_size,
)
from lab.policies.dragster.network import OperatorNetwork, demand
from lab.policies.dragster.projection import project
from lab.policies.dragster.ucb import track, upper, weight
from lab.policies.undisturbed_windows import NO_LOAD_PER_S
from models.arrays import Floats


def advance(
    options: DragsterOptions, net: OperatorNetwork, slot: SlotObservations, memory: DragsterMemory
) -> tuple[dict[str, int], DragsterMemory]:
    """Return the tasks of the next slot, and the memory after this one.

    Deviation: targets are of the arrivals and of what works a source's backlog off within a slot.  L of the paper has
    arrivals alone, and its buffers are inside the job; the buffer of a Kafka source is outside of it, and a job whose
    capacity equals the arrivals would carry it for ever.  Multipliers, as in the paper, count the arrivals alone.

    Args:
        options: the settings.
        net: the job's network.
        slot: what was observed.
        memory: before it.

    Returns:
        operator -> tasks, of every operator except sources; those without any observation keep theirs.
    """
    source = {
        name: rate + max(slot.backlog.get(name, 0.0), 0.0) / options.slot_s for name, rate in slot.source_per_s.items()
    }
    known = _learn(options, slot, replace(memory, slot=memory.slot + 1))
    # a backlog is no reason to remember a larger scale: it can be any multiple of what arrives
    known = replace(known, scale_per_s=_scales(net, slot.source_per_s, known))
    if not any(rate >= NO_LOAD_PER_S for rate in slot.source_per_s.values()):
        return dict(slot.tasks), known
    asked_for = [name for name in slot.tasks if known.scale_per_s.get(name, 0.0) >= NO_LOAD_PER_S]
    beliefs = {name: belief for name in asked_for if (belief := _belief(options, slot, known, name))}
    problem = SaddlePointProblem(net, source, known.scale_per_s)
    capacity = {name: _capacity(slot, known, name, belief) for name, belief in beliefs.items()}
    # A backlog is what earlier excess has left: counted again it would raise the multipliers for as long as it lasts.
    excess = SaddlePointProblem(net, slot.source_per_s, known.scale_per_s).excess(capacity)
    known = replace(known, multipliers=multipliers_after(known.multipliers, excess, step_size(known.slot)))
    targets = _targets(options, problem, capacity, beliefs, known)
    wanted = _choose(options, slot, known, beliefs, targets)
    if options.budget_tasks is None or sum(wanted.values()) <= options.budget_tasks:
        return wanted, known
    unknown = sum(tasks for name, tasks in slot.tasks.items() if name not in beliefs)
    ceilings = _ceilings(options, slot, known, beliefs)
    return {**wanted, **project(net, source, ceilings, options.budget_tasks - unknown)}, known


def _learn(options: DragsterOptions, slot: SlotObservations, memory: DragsterMemory) -> DragsterMemory:
    """Add the slot's capacities to the samples, Eq. 8."""
    samples = {(one.operator, one.tasks): one for one in memory.samples}
    for name, observed in slot.capacity_per_s.items():
        if not (math.isfinite(observed) and observed > 0):
            continue
        key = (name, int(slot.tasks[name]))
        before = samples.get(key, CapacitySample(*key, count=0, mean_per_s=0.0))
        count = min(before.count + 1, options.samples_max)
        mean = before.mean_per_s + (observed - before.mean_per_s) / count
        samples[key] = CapacitySample(*key, count, mean)
    return replace(memory, samples=tuple(samples[key] for key in sorted(samples)))


def _scales(net: OperatorNetwork, source_per_s: Mapping[str, float], memory: DragsterMemory) -> dict[str, float]:
    """Return the largest output that each operator ever had to produce; the paper leaves the units open."""
    required = demand(net, source_per_s).offered
    return {name: max(rate, memory.scale_per_s.get(name, 0.0)) for name, rate in required.items()}


def _belief(options: DragsterOptions, slot: SlotObservations, memory: DragsterMemory, name: str) -> Posterior | None:
    """Return the posterior of an operator; None when it was never observed at work."""
    observed = [one for one in memory.samples if one.operator == name]
    if not observed:
        return None
    samples = NormalisedSamples(
        np.array([one.tasks for one in observed], float),
        np.array([one.mean_per_s for one in observed]) / memory.scale_per_s[name],
        np.array([one.count for one in observed], float),
    )
    most = slot.limits[name]
    length = max(options.length_scale_share * most, 1.0)
    kernel = Kernel(length, options.prior_deviation, options.noise)
    slope = samples.slope if options.linear_prior else 0.0
    return posterior(kernel, np.arange(1, most + 1), samples, slope=slope)


def _capacity(slot: SlotObservations, memory: DragsterMemory, name: str, belief: Posterior) -> float:
    """Return y(t-1) of an operator, records/s: as observed, else as believed."""
    observed = slot.capacity_per_s.get(name, math.nan)
    if math.isfinite(observed) and observed > 0:
        return observed
    return float(belief.mean[min(slot.tasks[name], slot.limits[name]) - 1]) * memory.scale_per_s[name]


def _targets(
    options: DragsterOptions,
    problem: SaddlePointProblem,
    capacity: Mapping[str, float],
    beliefs: Mapping[str, Posterior],
    memory: DragsterMemory,
) -> dict[str, float]:
    """Return operator -> capacity to track, records/s; of operators that are to move."""
    scale = memory.scale_per_s
    ceilings = {name: scale[name] * float(belief.mean.max()) for name, belief in beliefs.items()}
    needed = demand(problem.net, problem.source_per_s).offered
    saddle = saddle_targets(problem, memory.multipliers, ceilings, options.multiplier_weight)
    wanted = {name: max(saddle[name], min((1.0 + options.headroom) * needed[name], scale[name])) for name in capacity}
    if options.target is CapacityTarget.SADDLE:
        return wanted
    return gradient_targets(problem, capacity, memory.multipliers, wanted, options.eta)


def _choose(
    options: DragsterOptions,
    slot: SlotObservations,
    memory: DragsterMemory,
    beliefs: Mapping[str, Posterior],
    targets: Mapping[str, float],
) -> dict[str, int]:
    """Return the tasks that track the targets, Eq. 18 without the projection."""
    wanted = dict(slot.tasks)
    for name, target in targets.items():
        beta = weight(memory.slot, slot.limits[name], options.delta)
        wanted[name] = track(beliefs[name], target / memory.scale_per_s[name], beta, options.bonus)
    return wanted


def _ceilings(
    options: DragsterOptions, slot: SlotObservations, memory: DragsterMemory, beliefs: Mapping[str, Posterior]
) -> dict[str, Floats]:
    """Return operator -> (n,) the most that each number of tasks may be capable of, records/s."""
    return {
        name: memory.scale_per_s[name]
        * upper(belief, weight(memory.slot, slot.limits[name], options.delta), options.bonus)
        for name, belief in beliefs.items()
    }
