"""ContTune and its baseline Big+DS2 as policies over observed windows."""

from __future__ import annotations

from lab.policies.conttune.conttune_options import ContTuneOptions
from lab.policies.conttune.tuning_loop import TuningMemory, TuningStep, advance
from lab.policies.described_changes import describe_changes
from lab.policies.tuning.tuning_options import Acquisition
from models.policies.immediate_change import hold, rescale_now
from models.policies.protocol import Schedule, Situation
from models.scheduling.need import upper_limits

_WHY = {
    "no window": "has no new undisturbed window of the running parallelism",
    "balanced": "finds the job neither over- nor under-provisioned",
    "settled": "finds the running parallelism right",
    "gate": "finds the change too small to be worth a restart",
    "catching up": "lets the job catch up after its last reconfiguration",
    "delayed": "lets a scale-down wait",
    "limit": "runs the job at its highest admissible parallelism already",
}


class TuningPolicy:
    """A variant of ContTune: one decision is one step of its loop, at most one reconfiguration.

    The Big phase is left out when the rates at which records arrive are known (footnote 3 of the paper).

    Args:
        options: the settings.
        name: of the system, for reasons.
    """

    def __init__(self, options: ContTuneOptions, name: str) -> None:
        self.options = options
        self._name = name

    def first_memory(self) -> TuningMemory:
        """Return the memory of a job that was never decided on."""
        return TuningMemory()

    def decide(self, situation: Situation, memory: TuningMemory) -> tuple[Schedule, TuningMemory]:
        """Return the next step of the tuning, and the memory with what was learned from the new windows.

        Raises:
            DemandError: the forecast, from which the expectation is made, cannot be used.
        """
        graph = situation.graph
        running = {name: situation.parallelism[name] for name in graph.names}
        limits = dict(zip(graph.names, upper_limits(graph, situation.slots_max).tolist(), strict=True))
        step, memory = advance(self.options, graph, situation.observations, running, limits=limits, memory=memory)
        if step.parallelism is None:
            return hold(situation, f"{self._name} {_WHY[step.outcome]}."), memory
        return rescale_now(situation, step.parallelism, self._sentence(situation, step)), memory

    def _sentence(self, situation: Situation, step: TuningStep) -> str:
        changes = describe_changes(situation, step.parallelism or {})
        if step.outcome == "big":
            return f"{self._name}'s Big phase ends the backpressure first: {changes}."
        return f"{self._name}'s Small phase looks for the least parallelism that sustains the rates: {changes}."


class ContTune(TuningPolicy):
    """ContTune with the known region of its main results, radius 3."""

    def __init__(self, options: ContTuneOptions | None = None) -> None:
        super().__init__(options or ContTuneOptions(), "ContTune")


class ContTuneAlpha0(TuningPolicy):
    """ContTune that uses its model at observed parallelisms only: DS2 with a cache."""

    def __init__(self, options: ContTuneOptions | None = None) -> None:
        super().__init__(options or ContTuneOptions(alpha=0), "ContTune with alpha 0")


class BigDs2(TuningPolicy):
    """Big+DS2, a baseline of ContTune: the Big phase of every tuning, then DS2's linear rule until it settles."""

    def __init__(self, options: ContTuneOptions | None = None) -> None:
        super().__init__(options or ContTuneOptions(acquisition=Acquisition.LINEAR, always_big=True), "Big+DS2")
