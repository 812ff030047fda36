"""Dragster as policies of Tidewise: one decision is one slot."""

from __future__ import annotations

from dataclasses import replace

from lab.policies.dragster.dragster_inputs import observe_slot
from lab.policies.dragster.dragster_memory import DragsterMemory
from lab.policies.dragster.dragster_options import CapacityTarget, DragsterOptions
from lab.policies.dragster.dragster_slot import advance
from lab.policies.dragster.given_network import MisfitError, apply_given
from lab.policies.dragster.throughput_learning import learn_network, measure_flows, remember_flows
from lab.policies.undisturbed_windows import NO_LOAD_PER_S
from models.policies.immediate_change import hold, rescale_now
from models.policies.protocol import Schedule, Situation
from models.scheduling.need import upper_limits
from models.topology import measure_edge_ratios


class Dragster:
    """Tracks, operator by operator, the capacity that the load asks for, and learns which parallelism has it.

    Sources keep their parallelism, as in the paper.  Throughput functions and splitting weights that are not given are
    learnt; with one that does not fit the job's graph the job is left alone, and the reason names it.

    Deviation: x_i is the number of tasks.  The paper allows a vector of resources and varies tasks alone, too: Flink
    changes nothing but parallelism without a new deployment.

    Args:
        options: the settings.
    """

    def __init__(self, options: DragsterOptions | None = None) -> None:
        self._options = options or DragsterOptions()

    def first_memory(self) -> DragsterMemory:
        """Return the memory of a job that was never decided on."""
        return DragsterMemory()

    def decide(self, situation: Situation, memory: DragsterMemory) -> tuple[Schedule, DragsterMemory]:
        """Return the next slot's configuration.

        Raises:
            DemandError: the forecast, from which the expectation is made, cannot be used.
        """
        graph, observations = situation.graph, situation.observations
        if memory.last_seen_s is not None:
            observations = observations.since(memory.last_seen_s)
        if not len(observations):
            return hold(situation, "Dragster has no new window to learn from."), memory
        limits = upper_limits(graph, situation.slots_max)
        flows = remember_flows(memory.flows, measure_flows(graph, observations), self._options.flows_max)
        ratios = measure_edge_ratios(
            graph, observations.processing_rate_per_s, observations.output_rate_per_s, observations.idle_share
        )
        net = learn_network(graph, flows, self._options.throughput, situation.models.selectivity, ratios)
        try:
            net = apply_given(net, self._options.h, self._options.alpha)
        except MisfitError as error:
            return hold(situation, f"Dragster leaves the job as it is: {error}"), memory
        slot = observe_slot(net, observations, situation.parallelism, limits)
        wanted, known = advance(self._options, net, slot, replace(memory, flows=flows))
        known = replace(known, last_seen_s=float(observations.window_start_s[-1] + observations.window_s))
        if not any(rate >= NO_LOAD_PER_S for rate in slot.source_per_s.values()):
            return hold(situation, "Dragster saw no records arrive and leaves the job as it is."), known
        return rescale_now(situation, dict(wanted), self._reason(wanted, slot.tasks, known.slot)), known

    def _reason(self, wanted: dict[str, int], tasks: object, slot: int) -> str:
        if wanted == tasks:
            return f"Dragster keeps the configuration in slot {slot}: it tracks the capacity that the load asks for."
        how = "saddle point" if self._options.target is CapacityTarget.SADDLE else "gradient"
        return f"Dragster's {how} needs another capacity, or tries a new parallelism, in slot {slot}."
