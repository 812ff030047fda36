"""The simulated replica of a real job: a job of the simulator with the capacity and downtimes of its models."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from include.domain.graph import JobGraph
from include.settings import Planner
from lab.simulation.end_to_end import EndToEnd
from lab.simulation.spec import JobSpec, OperatorSpec, SpecError
from models.bundle.job_models import JobModels
from models.scheduling.need import job_bounds, upper_limits
from models.topology.edges import Edge, complete_ratios, describe_edges, find_unknown

# An operator whose busy time Flink never measured is taken never to be the bottleneck.
UNMODELLED_FACTOR = 1000.0
LEAST_FETCH_DELAY_S = 1e-3
# Deviation: Phoebe measures latency at the sink.  The pipeline knows the age of what waits at the sources, which the
# simulator makes by itself; so nothing is added to it.
AT_THE_SOURCES = EndToEnd(base_ms=0.0, noise=0.0)


def _find_shares(name: str, graph: JobGraph, models: JobModels) -> dict[Edge, float]:
    """Return the records over each edge per record in; one for one behind an operator that was never observed."""
    observed = {at: ratio for at, ratio in models.selectivity.items() if np.isfinite(ratio)}
    shares = complete_ratios(graph, models.edges, {**dict.fromkeys(graph.names, 1.0), **observed})
    unknown = find_unknown(graph, shares)
    if unknown:
        raise SpecError(f"job {name!r}: what flows from {describe_edges(unknown)} is not known, so it has no replica")
    return shares


def build_replica(name: str, graph: JobGraph, models: JobModels, slots_max: int, options: Planner) -> JobSpec:
    """Return a job whose operators have the fitted capacity, mean of the posterior, at every parallelism.

    Args:
        name: of the job.
        graph: of the job.
        models: of the job; an operator without a capacity curve is never the bottleneck.
        slots_max: most slots of the job.
        options: of the planner, for the capacity beyond the curves' grid.

    Raises:
        SpecError: no operator has a capacity above 0, or it is not known what flows over an edge.
    """
    bounds = job_bounds(graph, models.capacity, upper_limits(graph, slots_max), options)
    curves = {at: np.maximum.accumulate(np.nan_to_num(one.mean_per_s)) for at, one in bounds.items()}
    curves = {at: curve for at, curve in curves.items() if curve.max(initial=0.0) > 0}
    if not curves:
        raise SpecError(f"job {name!r}: no operator has a capacity model, so its replica cannot be built")
    unlimited = UNMODELLED_FACTOR * max(float(curve.max()) for curve in curves.values())
    shares = _find_shares(name, graph, models)
    operators = []
    for operator in graph.operators:
        curve = np.maximum(curves.get(operator.name, np.full(slots_max, unlimited)), 1e-9)
        operators.append(
            OperatorSpec(
                name=operator.name,
                upstream=operator.upstream,
                per_subtask_per_s=float(curve[0]),
                max_parallelism=operator.max_parallelism,
                measured_per_s=tuple(curve.tolist()),
                output_shares={down: share for (up, down), share in shares.items() if up == operator.name},
            )
        )
    recovery = models.recovery
    spec = JobSpec(
        name=name,
        operators=tuple(operators),
        slots_max=slots_max,
        checkpoint_interval_s=max(recovery.checkpoint_interval_s, 1.0),
        restart_base_s=recovery.downtime_rescale_s,
        detection_s=max(recovery.downtime_restart_s - recovery.downtime_rescale_s, 0.0),
        downtime_noise=recovery.downtime_rescale_sd_s / max(recovery.downtime_rescale_s, 1e-9),
    )
    # The latency at the lowest utilisation that was observed; where none was, the simulator's own.
    known = models.latency.latency_at_knots_ms[:1]
    return replace(spec, fetch_delay_s=max(float(known[0]) / 1000.0, LEAST_FETCH_DELAY_S)) if known.size else spec
