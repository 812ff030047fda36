"""ContTune's loop over windows: learn, let the controller judge the job, go through the Big and the Small phase."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from include.domain.graph import JobGraph
from lab.policies.conttune.controller import ProvisionState, is_worth_restart, provision
from lab.policies.conttune.conttune_options import ContTuneOptions
from lab.policies.delayed_fall import Recent, delay_fall
from lab.policies.tuning.small import OperatorProblem, propose
from models.policies.observations import Observations
from models.policies.tuning.capacity_history import History
from models.policies.tuning.reading import MeanMetrics, learn_histories, read_windows, select_new_windows

# The parallelism that held a job up must not be found sufficient again.
MORE_THAN_EMITTED = 0.05
Phase = Literal["idle", "big", "small"]
Outcome = Literal["big", "small", "no window", "balanced", "settled", "gate", "limit", "delayed", "catching up"]


@dataclass(frozen=True, slots=True)
class TuningMemory:
    """Memory of a job.

    Attributes:
        seen_until_s: end of the last window that was read; None before the first.
        histories: operator -> what was observed of it.
        p_max: reached by the Big phase; the histories may hold larger ones.
        phase: of the tuning that has not settled yet; "idle" between tunings.
        recommended: within the delay of scale-downs.
        tuned_s: when the Small phase last changed the job, epoch seconds.
        held_up_per_s: source -> what it emitted when the present tuning began with the Big phase; more arrives.
    """

    seen_until_s: float | None = None
    histories: Mapping[str, History] = field(default_factory=dict)
    p_max: int = 0
    phase: Phase = "idle"
    recommended: Recent = ()
    tuned_s: float | None = None
    held_up_per_s: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TuningStep:
    """The decision of one step.

    Attributes:
        outcome: why.
        parallelism: operator -> instances to run from now on; None when the job stays as it is.
        began: whether a tuning began with this step.
    """

    outcome: Outcome
    parallelism: Mapping[str, int] | None = None
    began: bool = False


def advance(
    options: ContTuneOptions,
    graph: JobGraph,
    observations: Observations,
    running: Mapping[str, int],
    *,
    limits: Mapping[str, int],
    memory: TuningMemory,
) -> tuple[TuningStep, TuningMemory]:
    """Return the step after the latest windows, and the memory after it: at most one reconfiguration.

    Args:
        options: the settings.
        graph: the job, in whose order the observations are.
        observations: windows; those before ``memory.seen_until_s`` are left out.
        running: operator -> parallelism.
        limits: operator -> highest admissible parallelism.
        memory: of the job.
    """
    if _is_early(options, observations, memory):
        return TuningStep("no window"), memory
    fresh = select_new_windows(observations, memory.seen_until_s)
    histories = learn_histories(memory.histories, graph, fresh, options.keep)
    p_max = max(memory.p_max, largest(histories.values()), *running.values())
    until_s = (
        float(observations.window_start_s[-1] + observations.window_s) if len(observations) else memory.seen_until_s
    )
    known = replace(memory, seen_until_s=until_s, histories=histories, p_max=p_max)
    reading = read_windows(
        graph,
        fresh,
        running,
        headroom=options.headroom,
        catch_up_s=options.catch_up_s,
        at_least_per_s=_at_least_per_s(memory),
    )
    if reading is None:
        return TuningStep("no window"), known
    step, after = _tune(options, reading, running, limits, known)
    return _delay(options, step, running, after)


def _is_early(options: ContTuneOptions, observations: Observations, memory: TuningMemory) -> bool:
    """Whether the interval since the last decision is not over; its windows are read when it is."""
    if memory.seen_until_s is None or not len(observations):
        return False
    end_s = float(observations.window_start_s[-1] + observations.window_s)
    return end_s - memory.seen_until_s < options.interval_s


def _tune(
    options: ContTuneOptions,
    reading: MeanMetrics,
    running: Mapping[str, int],
    limits: Mapping[str, int],
    known: TuningMemory,
) -> tuple[TuningStep, TuningMemory]:
    state = _state(options, reading)
    if state is ProvisionState.BALANCED and known.phase == "idle":
        return TuningStep("balanced"), known
    # Rates that the Big phase has shown once stay known for the rest of the tuning.
    hidden = not reading.arrivals_known or (options.always_big and known.phase != "small")
    if state is ProvisionState.UNDER and hidden:
        if not reading.arrivals_known and _is_catching_up(options, known):
            return TuningStep("catching up"), known
        return _big(reading, running, limits, known)
    return _small(options, reading, running, limits, known)


def _delay(
    options: ContTuneOptions, step: TuningStep, running: Mapping[str, int], known: TuningMemory
) -> tuple[TuningStep, TuningMemory]:
    """Let the falls of a step wait, where the settings say so."""
    if not options.scale_down_delay_s:
        return step, known
    wanted, recent = delay_fall(
        known.recommended,
        known.seen_until_s or 0.0,
        running,
        step.parallelism or running,
        options.scale_down_delay_s,
    )
    after = replace(known, recommended=recent)
    if step.parallelism is None or wanted == dict(step.parallelism):
        return step, after
    if wanted == dict(running):
        return TuningStep("delayed"), replace(after, phase="idle")
    return replace(step, parallelism=wanted), after


def _state(options: ContTuneOptions, reading: MeanMetrics) -> ProvisionState:
    """Return the controller's state of the job.

    Deviation: a job whose operators are known to process less than arrives is under-provisioned too; a source that is
    the bottleneck itself shows no backpressure.
    """
    if reading.arrivals_known and reading.short:
        return ProvisionState.UNDER
    return provision(reading.backpressured, reading.cpu_usage, options.thresholds)


def big_step(parallelism: Mapping[str, int], p_max: int, *, limit: int | None = None) -> tuple[dict[str, int], int]:
    """Return what an under-provisioned job runs next, and p_max after it (lines 6-16 of Algorithm 1).

    Args:
        parallelism: operator -> running parallelism.
        p_max: largest parallelism observed in the job.
        limit: most that p_max may become.
    """
    bound = max(p_max, 1)
    if all(running >= bound for running in parallelism.values()):
        bound *= 2
    bound = bound if limit is None else min(bound, limit)
    # Deviation: no operator is scaled down by the phase that ends backpressure, should one run above p_max.
    return {name: max(bound, running) for name, running in parallelism.items()}, bound


def _at_least_per_s(memory: TuningMemory) -> dict[str, float]:
    """Return source -> what arrives there at least, as far as the present tuning knows."""
    if memory.phase == "idle":
        return {}
    return {name: (1.0 + MORE_THAN_EMITTED) * rate for name, rate in memory.held_up_per_s.items()}


def _is_catching_up(options: ContTuneOptions, known: TuningMemory) -> bool:
    """Whether backpressure may come from the restart of the last Small phase.

    Deviation: the paper knows the rates.  Without them the records that came in during a restart look like a higher
    demand; if they are not worked off within ``settle_s``, more is demanded than what was emitted meanwhile.
    """
    if known.phase == "big" or known.tuned_s is None or known.seen_until_s is None:
        return False
    return known.seen_until_s - known.tuned_s <= options.settle_s


def _big(
    reading: MeanMetrics, running: Mapping[str, int], limits: Mapping[str, int], known: TuningMemory
) -> tuple[TuningStep, TuningMemory]:
    """Double what can be tuned back later; an operator whose capacity was never observed keeps its parallelism."""
    tunable = {name: count for name, count in running.items() if known.histories.get(name)}
    if not tunable:
        return TuningStep("no window"), known
    requested, p_max = big_step(tunable, known.p_max, limit=max(limits.values()))
    wanted = {name: min(count, limits[name]) for name, count in requested.items()}
    if all(wanted[name] <= running[name] for name in wanted):
        return TuningStep("limit"), replace(known, phase="idle")
    held_up = known.held_up_per_s if known.phase == "big" else reading.taken_per_s
    after = replace(known, p_max=p_max, phase="big", held_up_per_s={} if reading.arrivals_known else held_up)
    return TuningStep("big", wanted, known.phase == "idle"), after


def _small(
    options: ContTuneOptions,
    reading: MeanMetrics,
    running: Mapping[str, int],
    limits: Mapping[str, int],
    known: TuningMemory,
) -> tuple[TuningStep, TuningMemory]:
    problems = [
        OperatorProblem(
            history=known.histories[name],
            required_per_s=reading.required_per_s[name],
            parallelism=count,
            capacity_per_s=reading.capacity_per_s[name],
            p_max=min(known.p_max, limits[name]),
        )
        for name, count in running.items()
    ]
    suggestions = propose(problems, alpha=options.alpha, acquisition=options.acquisition)
    wanted = {
        name: min(suggestion.parallelism, limits[name]) for name, suggestion in zip(running, suggestions, strict=True)
    }
    if wanted == dict(running):
        return TuningStep("settled"), replace(known, phase="idle")
    if not is_worth_restart(running, wanted, options.thresholds.decision):
        return TuningStep("gate"), replace(known, phase="idle")
    return TuningStep("small", wanted, known.phase == "idle"), replace(known, phase="small", tuned_s=known.seen_until_s)


def largest(histories: Iterable[History]) -> int:
    """Return p_max: the largest parallelism in any history of a job, 0 without observations."""
    return max((history[-1].parallelism for history in histories if history), default=0)
