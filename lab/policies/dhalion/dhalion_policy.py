"""Dhalion as a policy of Tidewise."""

from __future__ import annotations

from dataclasses import dataclass, replace

from lab.policies.delayed_fall import Recent, delay_fall
from lab.policies.dhalion.dhalion_inputs import readings
from lab.policies.dhalion.dhalion_options import DhalionOptions
from lab.policies.dhalion.rules import resolve
from models.policies.immediate_change import hold, rescale_now
from models.policies.protocol import Schedule, Situation
from models.scheduling.need import upper_limits


@dataclass(frozen=True, slots=True)
class DhalionMemory:
    """Memory of one job.

    Attributes:
        last_seen_s: end of the last window used, epoch seconds; None before the first.
        last_action_s: when an operator was last scaled; None if never.
        actions: made so far.
        recommended: within the delay of scale-downs.
    """

    last_seen_s: float | None = None
    last_action_s: float | None = None
    actions: int = 0
    recommended: Recent = ()


class Dhalion:
    """Scales one operator at a time: up when it causes backpressure, down when it is idle.

    Sources keep their parallelism.

    Args:
        options: the settings; those of Heron and Flink when not given.
    """

    def __init__(self, options: DhalionOptions | None = None) -> None:
        self._options = options or DhalionOptions()

    def first_memory(self) -> DhalionMemory:
        """Return the memory of a job that was never decided on."""
        return DhalionMemory()

    def decide(self, situation: Situation, memory: DhalionMemory) -> tuple[Schedule, DhalionMemory]:
        """Return one operator's change, or none.

        Raises:
            DemandError: the forecast, from which the expectation is made, cannot be used.
        """
        options, observations = self._options, situation.observations
        if memory.last_seen_s is not None:
            observations = observations.since(memory.last_seen_s)
        if not len(observations):
            return hold(situation, "Dhalion has no new window to judge."), memory
        known = replace(memory, last_seen_s=float(observations.window_start_s[-1] + observations.window_s))
        if memory.last_action_s is not None and situation.as_of_s - memory.last_action_s < options.wait_s:
            return hold(situation, "Dhalion waits for queues to drain after its last action."), known
        limits = upper_limits(situation.graph, situation.slots_max)
        result = readings(situation.graph, observations, situation.parallelism, limits)
        action = resolve(options, result)
        if options.scale_down_delay_s:
            running = {name: one.instances for name, one in result.items()}
            wanted = running if action is None else {**running, action.operator: action.instances}
            remaining, recent = delay_fall(
                known.recommended, float(situation.as_of_s), running, wanted, options.scale_down_delay_s
            )
            known = replace(known, recommended=recent)
            if action is not None and remaining[action.operator] == running[action.operator]:
                return hold(situation, f"Dhalion lets a scale-down of {action.operator} wait."), known
        if action is None:
            return hold(
                situation, "Dhalion sees neither backpressure nor an idle operator that it could change."
            ), known
        known = replace(known, last_action_s=float(situation.as_of_s), actions=known.actions + 1)
        before = result[action.operator].instances
        reason = f"Dhalion scales {action.operator} from {before} to {action.instances}: {action.cause}."
        return rescale_now(situation, {action.operator: action.instances}, reason), known
