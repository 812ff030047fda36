"""A slot from what Flink reports."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from lab.policies.dragster.dragster_memory import SlotObservations
from lab.policies.dragster.network import OperatorNetwork, demand
from lab.policies.undisturbed_windows import undisturbed_windows
from models.arrays import Ints
from models.policies.observations import Observations
from models.policies.window_means import mean_per_operator, source_rates


def observe_slot(
    net: OperatorNetwork, observations: Observations, tasks: Mapping[str, int], limits: Ints
) -> SlotObservations:
    """Return a slot from its windows, those without a rescale when there are any.

    Capacities are counted in output units as Eq. 8 has them: the capacity times what the operator would send
    per record of its input.

    Args:
        net: the job's network.
        observations: windows of the slot, at least one, operators in the order of the graph.
        tasks: operator -> running tasks; windows of other parallelism are not used for capacity.
        limits: (O,) most tasks.
    """
    names = net.graph.names
    undisturbed, names = undisturbed_windows(observations), net.graph.names
    same = undisturbed.parallelism == np.array([tasks[name] for name in names])
    capacity = mean_per_operator(np.where(same, undisturbed.true_processing_rate_per_s, np.nan))
    rates, last = source_rates(undisturbed), np.nan_to_num(observations.pending_records[-1], posinf=0.0)
    source = {name: float(rates[net.graph.position(name)]) for name in net.graph.sources}
    per_input = _output_per_input(net, source)
    capacities = {}
    for name in net.tuned:
        value = float(capacity[net.graph.position(name)]) * per_input[name]
        if np.isfinite(value) and value > 0:
            capacities[name] = value
    return SlotObservations(
        source_per_s=source,
        backlog={name: max(float(last[net.graph.position(name)]), 0.0) for name in source},
        tasks={name: tasks[name] for name in net.tuned},
        capacity_per_s=capacities,
        limits={name: int(limits[net.graph.position(name)]) for name in net.tuned},
    )


def _output_per_input(net: OperatorNetwork, source_per_s: Mapping[str, float]) -> dict[str, float]:
    """Return what each operator sends per record received, at the offered rates (at equal ones when there are none)."""
    rates = source_per_s if any(rate > 0 for rate in source_per_s.values()) else dict.fromkeys(source_per_s, 1.0)
    needed = demand(net, rates)
    ratios = {}
    for operator in net.graph.operators:
        if operator.is_source:
            continue
        received = sum(needed.over[up, operator.name] for up in dict.fromkeys(operator.upstream))
        ratios[operator.name] = needed.offered[operator.name] / received if received > 0 else 1.0
    return ratios
