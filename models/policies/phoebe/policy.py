"""Phoebe and TWRES as policies of the protocol."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import numpy as np

from models.policies.immediate_change import now, stay
from models.policies.phoebe import latency_model, optimiser, twres, view
from models.policies.phoebe.learned_models import LearnedModels, Profiled
from models.policies.phoebe.optimiser import ScaleOutModels
from models.policies.phoebe.options import PhoebeOptions, TwresOptions
from models.policies.phoebe.profile import Capacity
from models.policies.phoebe.rows import Measurement, Profile
from models.policies.phoebe.rule import Candidate
from models.policies.phoebe.uptime import Uptime
from models.policies.protocol import Schedule, Situation

_SAMPLES_KEPT = 200
_FEWEST_CAPACITIES = 3


@dataclass(frozen=True, slots=True)
class PhoebeMemory:
    """What Phoebe remembers of a job.

    Attributes:
        uptime: since when the job runs undisturbed.
        profile: of the profiling phase; empty when there was none.
        samples: measured at evaluations, oldest first; M_L is refitted on profile and samples.
        sampled_at_s: of the last sample.
        expected_recovery_s: R of the scale-out chosen at the last evaluation; None when it was not known.
    """

    uptime: Uptime = field(default_factory=Uptime)
    profile: Profile = field(default_factory=Profile)
    samples: tuple[Measurement, ...] = ()
    sampled_at_s: int | None = None
    expected_recovery_s: float | None = None


class Phoebe:
    """The smallest scale-out that recovers within the target with a normal latency.

    The choice holds for the next 600 s, as in the paper; what plans less often covers more with a longer horizon.

    Deviation: the prototype refits M_L every time it looks at the job, which is every minute while nothing changes;
    here once per evaluation interval.

    Args:
        profile: of the job; without one the pipeline's models are used (see ``learnt``).
        options: the settings.
    """

    def __init__(self, profile: Profile | None = None, options: PhoebeOptions | None = None) -> None:
        self._profile = profile or Profile()
        self._options = options or PhoebeOptions()

    def first_memory(self) -> PhoebeMemory:
        """Return the memory of a job that was never decided on: it holds the profile."""
        return PhoebeMemory(profile=self._profile)

    def decide(self, situation: Situation, memory: PhoebeMemory) -> tuple[Schedule, PhoebeMemory]:
        """Return a change now or none.

        Raises:
            DemandError: the forecast cannot be used.
        """
        options, at = self._options, situation.as_of_s
        known = replace(memory, uptime=memory.uptime.updated(situation.observations))
        if not known.uptime.settled(at, options.evaluation_interval_s):
            return stay(situation, _waiting(options.evaluation_interval_s)), known
        known = _sampled(known, situation, options.evaluation_interval_s)
        models = _models(situation, known)
        if models is None:
            return stay(situation, "nothing is known yet about the capacity of any operator"), known
        current = view.scale_out(situation)
        found, projected = self._evaluate(situation, models, options.candidates(situation.slots_max))
        choice = optimiser.choose(found, projected, current, rule=options.rule, target_s=options.recovery_target_s)
        why = optimiser.reason(choice, current, options.recovery_target_s)
        chosen = found.get(choice.scale_out)
        known = replace(known, expected_recovery_s=_finite(chosen.recovery_s) if chosen is not None else None)
        if choice.scale_out == current:
            return stay(situation, why), known
        known = replace(known, uptime=known.uptime.changed(at))
        return now(situation, view.everywhere(situation, choice.scale_out), why), known

    def expected_recovery_s(self, situation: Situation, memory: PhoebeMemory) -> float:
        """Return what M_R expects of a failure at this moment at the running scale-out, s; NaN when it is not known."""
        models = _models(situation, memory)
        if models is None:
            return math.nan
        current = view.scale_out(situation)
        return self._evaluate(situation, models, (current,))[0][current].recovery_s

    def _evaluate(
        self, situation: Situation, models: ScaleOutModels, scale_outs: tuple[int, ...]
    ) -> tuple[dict[int, Candidate], float]:
        options, recovery = self._options, situation.models.recovery
        return optimiser.evaluate(
            models,
            view.load(situation, options.horizon_s, recovery.checkpoint_interval_s),
            scale_outs,
            downtime_s=recovery.downtime_s("restart"),
            checkpoint_interval_s=recovery.checkpoint_interval_s,
            bins=options.bins,
        )


@dataclass(frozen=True, slots=True)
class TwresMemory:
    """What TWRES remembers of a job; see :class:`PhoebeMemory`."""

    uptime: Uptime = field(default_factory=Uptime)
    profile: Profile = field(default_factory=Profile)


class Twres:
    """The smallest scale-out whose maximum sustainable throughput covers the forecast, one more when it is late.

    Args:
        profile: of the job; without one the pipeline's capacity curves are sampled instead.
        options: the settings.
    """

    def __init__(self, profile: Profile | None = None, options: TwresOptions | None = None) -> None:
        self._profile = profile or Profile()
        self._options = options or TwresOptions()

    def first_memory(self) -> TwresMemory:
        """Return the memory of a job that was never decided on: it holds the profile."""
        return TwresMemory(profile=self._profile)

    def decide(self, situation: Situation, memory: TwresMemory) -> tuple[Schedule, TwresMemory]:
        """Return a change now or none.

        Raises:
            DemandError: the forecast cannot be used.
        """
        options, at = self._options, situation.as_of_s
        known = replace(memory, uptime=memory.uptime.updated(situation.observations))
        if not known.uptime.settled(at, options.evaluation_interval_s):
            return stay(situation, _waiting(options.evaluation_interval_s)), known
        throughput = _sustainable(situation, known.profile)
        if throughput is None:
            return stay(situation, "nothing is known yet about the capacity of any operator"), known
        records = float(view.forecast_per_s(situation, int(options.window_s)).sum())
        seen, current = view.measured(situation), view.scale_out(situation)
        wanted = twres.choose(
            throughput,
            tuple(range(1, situation.slots_max + 1)),
            current,
            forecast_records=records,
            latency_ms=math.nan if seen is None else seen.latency_ms,
            window_s=options.window_s,
            abnormal_latency_ms=options.abnormal_latency_ms,
        )
        why = f"{records:,.0f} records are expected within {options.window_s:.0f} s: {wanted} workers"
        if wanted == current:
            return stay(situation, why), known
        known = replace(known, uptime=known.uptime.changed(at))
        return now(situation, view.everywhere(situation, wanted), why), known


def _waiting(interval_s: int) -> str:
    return f"the job was interrupted less than {interval_s} s ago, so its metrics say little"


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def _sampled(memory: PhoebeMemory, situation: Situation, interval_s: int) -> PhoebeMemory:
    """Add what is measured now, once per evaluation interval."""
    at, last = situation.as_of_s, memory.sampled_at_s
    seen = view.measured(situation)
    if seen is None or (last is not None and at - last < interval_s):
        return memory
    return replace(memory, samples=(*memory.samples, seen)[-_SAMPLES_KEPT:], sampled_at_s=at)


def _models(situation: Situation, memory: PhoebeMemory) -> ScaleOutModels | None:
    profile = memory.profile
    fitted = latency_model.fit((*profile.rows, *memory.samples)) if profile.rows else None
    if fitted is None or len(profile.capacity) < _FEWEST_CAPACITIES:
        return LearnedModels.of(situation)
    workers, capacity = _capacities(profile)
    return Profiled(Capacity.fit(workers, capacity), fitted)


def _sustainable(situation: Situation, profile: Profile) -> twres.SustainableThroughput | None:
    if len(profile.capacity) >= _FEWEST_CAPACITIES:
        return twres.SustainableThroughput.fit(*_capacities(profile))
    learned = LearnedModels.of(situation)
    if learned is None:
        return None
    workers = np.arange(1, situation.slots_max + 1)
    return twres.SustainableThroughput.fit(workers, learned.capacity_per_s(workers.tolist()))


def _capacities(profile: Profile) -> tuple[list[int], list[float]]:
    return [point.scale_out for point in profile.capacity], [point.capacity_per_s for point in profile.capacity]
