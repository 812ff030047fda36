"""ContTune's loop as a policy over observed windows: one decision is one step, at most one reconfiguration."""

from __future__ import annotations

from models.policies.conttune.manager import Memory, Step, advance
from models.policies.conttune.options import Options
from models.policies.immediate_change import feasible, now, stay
from models.policies.protocol import Schedule, Situation
from models.scheduling.need import upper_limits

_WHY = {
    "no window": "has no new undisturbed window of the running parallelism",
    "balanced": "finds the job neither over- nor under-provisioned",
    "settled": "finds the running parallelism right",
    "gate": "finds the change too small to be worth a restart",
    "limit": "runs the job at its highest admissible parallelism already",
}


class WindowTuner:
    """A variant of ContTune.

    The Big phase is left out when the rates at which records arrive are known (footnote 3 of the paper).

    Args:
        options: the settings.
        name: of the system, for reasons.
    """

    def __init__(self, options: Options, name: str) -> None:
        self.options = options
        self._name = name

    def first_memory(self) -> Memory:
        """Return the memory of a job that was never decided on."""
        return Memory()

    def decide(self, situation: Situation, memory: Memory) -> tuple[Schedule, Memory]:
        """Return the next step of the tuning, and the memory with what the new windows taught.

        Raises:
            DemandError: the forecast, from which the expectation is made, cannot be used.
        """
        graph = situation.graph
        running = {name: situation.parallelism[name] for name in graph.names}
        limits = dict(zip(graph.names, upper_limits(graph, situation.slots_max).tolist(), strict=True))
        step, memory = advance(self.options, graph, situation.observations, running, limits=limits, memory=memory)
        if step.parallelism is None:
            return stay(situation, f"{self._name} {_WHY[step.outcome]}."), memory
        return now(situation, step.parallelism, self._sentence(situation, step)), memory

    def _sentence(self, situation: Situation, step: Step) -> str:
        asked = feasible(situation, step.parallelism or {})
        moved = ", ".join(
            f"{name} {situation.parallelism[name]} -> {count}"
            for name, count in zip(situation.graph.names, asked.tolist(), strict=True)
            if count != situation.parallelism[name]
        )
        if step.outcome == "big":
            return f"{self._name}'s Big phase ends the backpressure first: {moved}."
        return f"{self._name}'s Small phase looks for the least parallelism that sustains the rates: {moved}."
