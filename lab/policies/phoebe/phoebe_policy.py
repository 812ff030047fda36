"""Phoebe as a policy: the smallest scale-out that recovers within the target with a normal latency."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from lab.policies.phoebe import latency_model, optimiser, phoebe_inputs
from lab.policies.phoebe.capacity_profile import CapacityRegression
from lab.policies.phoebe.learned_models import NO_CAPACITY, LearnedModels, ProfiledModels
from lab.policies.phoebe.optimiser import ScaleOutModels
from lab.policies.phoebe.phoebe_options import PhoebeOptions
from lab.policies.phoebe.rule import Candidate
from lab.policies.phoebe.settling_policy import SettlingMemory, SettlingPolicy
from lab.profiling.rows import MIN_CAPACITIES, Measurement, Profile
from models.policies.protocol import Situation

__all__ = ["Phoebe", "PhoebeMemory", "PhoebeOptions"]

_MAX_SAMPLES = 200


@dataclass(frozen=True, slots=True)
class PhoebeMemory(SettlingMemory):
    """Phoebe's memory of a job.

    Attributes:
        samples: measured at evaluations, oldest first; M_L is refitted on the profile and those of its latency.
        sampled_at_s: of the last sample.
        expected_recovery_s: R of the scale-out chosen at the last evaluation; None when it was not known.
    """

    samples: tuple[Measurement, ...] = ()
    sampled_at_s: int | None = None
    expected_recovery_s: float | None = None


class Phoebe(SettlingPolicy[PhoebeMemory]):
    """The smallest scale-out that recovers within the target with a normal latency.

    The choice holds for the next 600 s, as in the paper; a caller that plans less often sets a longer horizon.

    Deviation: the prototype refits M_L at every evaluation, which is every minute while nothing changes; here once per
    evaluation interval.

    Args:
        profile: of the job; without one the pipeline's models are used.
        options: the settings.
    """

    def __init__(self, profile: Profile | None = None, options: PhoebeOptions | None = None) -> None:
        self._options = options or PhoebeOptions()
        super().__init__(profile, self._options.evaluation_interval_s)

    def first_memory(self) -> PhoebeMemory:
        """Return the memory of a job that was never decided on: it holds the profile."""
        return PhoebeMemory(profile=self._profile)

    def expected_recovery_s(self, situation: Situation, memory: PhoebeMemory) -> float:
        """Return what M_R expects of a failure now at the running scale-out, s; NaN when it is not known."""
        models = _models(situation, memory)
        if models is None:
            return math.nan
        current = phoebe_inputs.scale_out(situation)
        return self._evaluate(situation, models, (current,))[0][current].recovery_s

    def _choose(self, situation: Situation, memory: PhoebeMemory) -> tuple[int | None, str, PhoebeMemory]:
        options = self._options
        memory = _add_sample(memory, situation, options.evaluation_interval_s)
        models = _models(situation, memory)
        if models is None:
            return None, NO_CAPACITY, memory
        current = phoebe_inputs.scale_out(situation)
        scale_outs = options.candidates(situation.slots_max)
        candidates, projected = self._evaluate(situation, models, scale_outs)
        choice = optimiser.choose_scale_out(
            candidates, projected, current, rule=options.rule, target_s=options.recovery_target_s
        )
        reason = optimiser.reason(choice, current, options.recovery_target_s)
        candidate = candidates.get(choice.scale_out)
        recovery_s = candidate.recovery_s if candidate is not None else math.nan
        expected = float(recovery_s) if math.isfinite(recovery_s) else None
        return choice.scale_out, reason, replace(memory, expected_recovery_s=expected)

    def _evaluate(
        self, situation: Situation, models: ScaleOutModels, scale_outs: tuple[int, ...]
    ) -> tuple[dict[int, Candidate], float]:
        options, recovery = self._options, situation.models.recovery
        return optimiser.evaluate_scale_outs(
            models,
            phoebe_inputs.load(situation, options.horizon_s, recovery.checkpoint_interval_s),
            scale_outs,
            downtime_s=recovery.downtime_s("restart"),
            checkpoint_interval_s=recovery.checkpoint_interval_s,
            bins=options.bins,
        )


def _add_sample(memory: PhoebeMemory, situation: Situation, interval_s: int) -> PhoebeMemory:
    """Add what is measured now, once per evaluation interval."""
    at, last = situation.as_of_s, memory.sampled_at_s
    sample = phoebe_inputs.measure(situation)
    if sample is None or (last is not None and at - last < interval_s):
        return memory
    return replace(memory, samples=(*memory.samples, sample)[-_MAX_SAMPLES:], sampled_at_s=at)


def _models(situation: Situation, memory: PhoebeMemory) -> ScaleOutModels | None:
    """Return the models of the job's profile, else those that the pipeline has trained, None without any."""
    profile = memory.profile
    fitted = latency_model.fit(latency_model.rows_of_one_latency(profile.rows, memory.samples))
    if fitted is None or len(profile.capacity) < MIN_CAPACITIES:
        return LearnedModels.of(situation)
    return ProfiledModels(CapacityRegression.fit(*profile.capacities), fitted)
