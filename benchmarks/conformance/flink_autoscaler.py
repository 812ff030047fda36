"""Cases of the Flink autoscaler's rules, one function per kind of case."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from benchmarks.conformance.cases import CaseError, Json, Outcome, attempt, differences, number
from benchmarks.conformance.flink_inputs import ANY_PARALLELISM, demand_of, history_of, state_of, topology_of, window_of
from lab.policies.flink_autoscaler.alignment import ParallelismLimits, align, is_aligned
from lab.policies.flink_autoscaler.autoscaler_memory import AutoscalerMemory, DelayedScaleDown, Scaling
from lab.policies.flink_autoscaler.config import AutoscalerConfig
from lab.policies.flink_autoscaler.evaluate import Evaluation, evaluate_vertices
from lab.policies.flink_autoscaler.gates import Resources
from lab.policies.flink_autoscaler.job_scaling import decide
from lab.policies.flink_autoscaler.target_capacity import bounds, scaling_coefficient
from lab.policies.flink_autoscaler.topology import JobTopology, TopologyVertex
from lab.policies.flink_autoscaler.true_rates import busy_time_rate, choose_rate, edge_ratio, is_processing_backlog
from lab.policies.flink_autoscaler.vertex_scaling import VertexChange, scale_parallelism, scale_vertex
from lab.policies.flink_autoscaler.window import OBSERVED_TPR, MetricWindow


def check(case: Json) -> Outcome:
    """Run one case."""
    expected = case.get("expected")
    got = attempt(_run, case)
    name = str(case.get("id", case.get("name", "(no id)")))
    if not isinstance(expected, dict) or not expected:
        return Outcome(name, expected, got, ("expected",))
    if "error" in got:
        return Outcome(name, expected, got, () if "error" in expected else ("error",))
    limits = {side: expected[side] for side in ("gt", "lt") if side in expected}
    plain = {key: wanted for key, wanted in expected.items() if key not in limits}
    differing = [*differences(plain, got), *_outside(limits, got)]
    return Outcome(name, expected, got, tuple(differing))


def _outside(limits: Json, got: Json) -> list[str]:
    """Return which of the limits ``gt`` and ``lt`` a result of a single number breaks."""
    values = list(got.values())
    if len(values) != 1 or not isinstance(values[0], (int, float)):
        return list(limits)
    holds = {"gt": lambda limit: values[0] > limit, "lt": lambda limit: values[0] < limit}
    return [side for side, limit in limits.items() if not holds[side](number(limit))]


def _run(case: Json) -> dict[str, Any]:
    kind = case["kind"]
    if kind not in KINDS:
        raise CaseError(f"unknown kind {kind!r}; known are {sorted(KINDS)}")
    options = dict(case.get("config") or {})
    inputs = {"max_parallelism": options.pop("max_parallelism", ANY_PARALLELISM), **case["inputs"]}
    return KINDS[kind](AutoscalerConfig.from_options(options, ranges=False), inputs)


def _align(config: AutoscalerConfig, inputs: Json) -> dict[str, Any]:
    limits = ParallelismLimits(inputs.get("lower", 1), inputs.get("upper", 2**31 - 1), inputs["max_parallelism"])
    partitions, target = inputs.get("num_source_partitions", 0), inputs["target"]
    if is_aligned(inputs.get("input_ship", ()), partitions):
        target = align(config.alignment, inputs["parallelism"], target, limits, partitions)
    return {"new_parallelism": target}


def _scale_factor(config: AutoscalerConfig, inputs: Json) -> dict[str, Any]:
    limits = ParallelismLimits(inputs.get("lower", 1), inputs.get("upper", 2**31 - 1), inputs["max_parallelism"])
    wanted = scale_parallelism(
        config,
        inputs["parallelism"],
        number(inputs["scale_factor"]),
        limits,
        input_ship=inputs.get("input_ship", ()),
        source_partitions=inputs.get("num_source_partitions", 0),
    )
    return {"new_parallelism": wanted}


def _processing_backlog(config: AutoscalerConfig, inputs: Json) -> dict[str, Any]:
    rate = number(inputs["num_records_in_rate"])
    return {"processing_backlog": is_processing_backlog(config, number(inputs["lag"]), rate)}


def _thresholds(config: AutoscalerConfig, inputs: Json) -> dict[str, Any]:
    result = bounds(
        config,
        demand_of(inputs),
        restart_s=number(inputs.get("restart_time_s", config.restart_time_s)),
        processing_backlog=inputs.get("processing_backlog", False),
    )
    return {
        "scale_up_rate_threshold": result.scale_up_below_per_s,
        "scale_down_rate_threshold": result.scale_down_above_per_s,
    }


def _coefficient(config: AutoscalerConfig, inputs: Json) -> dict[str, Any]:
    history = [scaling.observation for scaling in history_of(inputs["history"])]
    return {"coefficient": scaling_coefficient(config, history)}


def _true_rate(config: AutoscalerConfig, inputs: Json) -> dict[str, Any]:
    samples = np.array([number(sample) for sample in inputs.get("observed_tpr_samples") or [None]])
    window = MetricWindow(np.arange(float(len(samples))), {"vertex": {OBSERVED_TPR: samples}})
    observed = window.mean("vertex", OBSERVED_TPR, least=config.observed_true_processing_rate_min_observations)
    busy = busy_time_rate(number(inputs["input_rate"]), number(inputs["busy_ms_per_s"]) / 1000.0)
    return {"true_processing_rate": choose_rate(config, busy, observed)}


def _edge_ratios(_: AutoscalerConfig, inputs: Json) -> dict[str, Any]:
    topology = topology_of(inputs["edges"], inputs)
    window = window_of(inputs["samples"])
    return {f"{one}->{other}": edge_ratio(topology, window, one, other) for one, other in inputs["edges"]}


def _evaluate(config: AutoscalerConfig, inputs: Json) -> dict[str, Any]:
    result = evaluate_vertices(
        config,
        topology_of(inputs["topology"], inputs),
        window_of(inputs["samples"]),
        restart_s=number(inputs.get("restart_time_s", config.restart_time_s)),
    )
    return {
        name: {
            "load": result.load[name],
            "target_data_rate": state.demand.target_per_s,
            "catch_up_data_rate": state.demand.catch_up_per_s,
            "true_processing_rate": state.true_processing_per_s,
            "scale_up_rate_threshold": state.bounds.scale_up_below_per_s,
            "scale_down_rate_threshold": state.bounds.scale_down_above_per_s,
        }
        for name, state in result.vertices.items()
    } | {"processing_backlog": result.processing_backlog}


def _vertex_scale(config: AutoscalerConfig, inputs: Json) -> dict[str, Any]:
    change, _ = _scale(config, inputs, history_of(inputs.get("history", [])), None)
    return {
        "new_parallelism": change.parallelism,
        "outside_utilization_bound": change.outside_bounds,
        "expected_processing_rate": change.expected_per_s,
    }


def _ineffective(config: AutoscalerConfig, inputs: Json) -> dict[str, Any]:
    history: list[Scaling] = []
    result: list[int] = []
    expected: dict[str, float] = {}
    for index, step in enumerate(inputs["steps"]):
        of_step = replace(config, scaling_effectiveness_detection_enabled=step.get("detection", False))
        change, _ = _scale(of_step, {**inputs, **step}, history, None)
        result.append(change.parallelism)
        if change.expected_per_s is not None:
            expected[str(index)] = change.expected_per_s
        if step.get("record", False):
            rate = number(step["true_processing_rate"])
            history.append(Scaling(index, change.current, change.parallelism, rate, change.expected_per_s))
    return {"new_parallelism": result, "expected_processing_rate_after_step": expected}


def _scale_down(config: AutoscalerConfig, inputs: Json) -> dict[str, Any]:
    delayed: DelayedScaleDown | None = None
    result: list[int] = []
    for step in inputs["steps"]:
        change, delayed = _scale(config, {**inputs, **step}, [], delayed)
        result.append(change.parallelism)
    return {"new_parallelism": result}


def _job_decision(config: AutoscalerConfig, inputs: Json) -> dict[str, Any]:
    topology, window = topology_of(inputs["topology"], inputs), window_of(inputs["samples"])
    result = evaluate_vertices(config, topology, window, restart_s=config.restart_time_s)
    plan, _ = decide(config, topology, result, AutoscalerMemory(), now_s=float(window.times_s[-1]))
    return {"new_parallelism": plan.parallelism(topology)}


def _job_gate(config: AutoscalerConfig, inputs: Json) -> dict[str, Any]:
    given = {name: {**inputs, **one} for name, one in inputs.items() if isinstance(one, dict)}
    if not given:
        raise CaseError("the inputs name no vertices")
    states = {name: state_of(config, one) for name, one in given.items()}
    topology = JobTopology.of(
        TopologyVertex(name, one.parallelism, one.max_parallelism) for name, one in states.items()
    )
    resources = Resources(number(inputs.get("gc_pressure")), number(inputs.get("heap_usage")))
    evaluation = Evaluation(states, {}, processing_backlog=False)
    plan, _ = decide(
        config, topology, evaluation, AutoscalerMemory(), now_s=inputs.get("now_s", 0.0), resources=resources
    )
    return {"vertices_in_plan": len(plan.changes), "new_parallelism": plan.parallelism(topology)}


def _scale(
    config: AutoscalerConfig, inputs: Json, history: Sequence[Scaling], delayed: DelayedScaleDown | None
) -> tuple[VertexChange, DelayedScaleDown | None]:
    now_s = number(inputs.get("t_s", 0.0))
    state = state_of(config, inputs)
    return scale_vertex(config, state, restart_s=config.restart_time_s, now_s=now_s, history=history, delayed=delayed)


KINDS: dict[str, Callable[[AutoscalerConfig, Json], dict[str, Any]]] = {
    "align": _align,
    "edge_output_ratio": _edge_ratios,
    "evaluate": _evaluate,
    "ineffective_sequence": _ineffective,
    "job_decision": _job_decision,
    "job_gate": _job_gate,
    "processing_backlog": _processing_backlog,
    "scale_down_sequence": _scale_down,
    "scale_factor": _scale_factor,
    "scaling_coefficient": _coefficient,
    "thresholds": _thresholds,
    "tpr": _true_rate,
    "vertex_scale": _vertex_scale,
}
