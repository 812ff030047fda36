"""Rules 1-5: what must be processed and what could be processed, in records per second."""

from __future__ import annotations

import math

from lab.policies.flink_autoscaler.config import AutoscalerConfig, Release
from lab.policies.flink_autoscaler.topology import JobTopology
from lab.policies.flink_autoscaler.window import (
    ACCUMULATED_BUSY_MS,
    LAG,
    LOAD,
    OBSERVED_TPR,
    RECORDS_IN,
    RECORDS_IN_PER_S,
    RECORDS_OUT,
    MetricWindow,
)


def source_target_rate(input_per_s: float, lag_change_per_s: float) -> float:
    """Rule 1: what arrives at a source is what it reads and what its lag grows by, never negative; NaN if unknown."""
    arriving = input_per_s + lag_change_per_s
    return arriving if math.isnan(arriving) else max(0.0, arriving)


def catch_up_rate(lag: float, catch_up_s: float) -> float:
    """Rule 2: the extra rate that clears a source's lag in the catch-up duration, 0 when that duration is 0."""
    return 0.0 if catch_up_s == 0 else lag / catch_up_s


def edge_rate(topology: JobTopology, window: MetricWindow, upstream: str, downstream: str) -> float:
    """Return the records per second that flow over an edge, which Flink does not measure.

    The input of the downstream vertex is the most reliable: alone if it has one input, else less the output of its
    other inputs if each of those feeds nothing else.  Otherwise the upstream vertex's whole output stands in.
    """
    others = [name for name in topology.vertex(downstream).inputs if name != upstream]
    from_others = 0.0
    for name in others:
        alone = len(topology.outputs(name)) == 1
        from_others += window.rate_per_s(name, RECORDS_OUT) if alone else math.nan
    if math.isnan(from_others):
        return window.rate_per_s(upstream, RECORDS_OUT)
    return window.rate_per_s(downstream, RECORDS_IN) - from_others


def edge_ratio(topology: JobTopology, window: MetricWindow, upstream: str, downstream: str) -> float:
    """Rule 3: records over an edge per record into its upstream vertex; 0 when nothing goes in or out."""
    into = window.rate_per_s(upstream, RECORDS_IN)
    over = edge_rate(topology, window, upstream, downstream) if into > 0 else math.nan
    return over / into if over > 0 else 0.0


def busy_share(config: AutoscalerConfig, window: MetricWindow, vertex: str, parallelism: int) -> float:
    """Return the busy fraction of the busiest (MAX), laziest (MIN) or average (AVG) subtask over the window."""
    if config.metrics_busy_time_aggregator == "AVG":
        return window.rate_per_s(vertex, ACCUMULATED_BUSY_MS) / parallelism / 1000.0
    return window.mean(vertex, LOAD)


def busy_time_rate(input_per_s: float, busy: float) -> float:
    """Rule 4: the true processing rate, input / busy fraction; infinite when nothing comes in or nothing is busy."""
    if input_per_s == 0 or busy == 0:
        return math.nan if math.isnan(input_per_s) else math.inf
    return input_per_s / busy


def input_rate(config: AutoscalerConfig, window: MetricWindow, vertex: str) -> float:
    """Return the input rate that belongs to :func:`busy_share`, measured in the same way as it."""
    if config.release is Release.V1_10:
        return window.rate_per_s(vertex, RECORDS_IN)
    gauge = window.mean(vertex, RECORDS_IN_PER_S)
    if config.metrics_busy_time_aggregator == "AVG" or not math.isfinite(gauge):
        return window.rate_per_s(vertex, RECORDS_IN)
    return gauge


def observed_rate(config: AutoscalerConfig, input_per_s: float, backpressure_ms_per_s: float, lag: float) -> float:
    """Rule 5, one sample: the rate of a source that is catching up, corrected for backpressure.

    Returns:
        records/s; infinite when nothing comes in (so that it may scale down); NaN when it is not catching up, that is
        while its lag is below ``observed-true-processing-rate.lag-threshold`` of input, or when nothing is known.
    """
    if input_per_s == 0:
        return math.inf
    catching_up = lag >= config.observed_true_processing_rate_lag_threshold_s * input_per_s
    if not catching_up or not backpressure_ms_per_s < 1000:
        return math.nan
    return input_per_s / (1.0 - backpressure_ms_per_s / 1000.0)


def choose_rate(config: AutoscalerConfig, from_busy_time: float, observed: float) -> float:
    """Rule 5: the observed rate replaces one from busy time that is unknown, infinite or much larger."""
    if math.isnan(observed):
        return from_busy_time
    if not math.isfinite(from_busy_time):
        return observed
    most = observed * (1.0 + config.observed_true_processing_rate_switch_threshold)
    return observed if from_busy_time > most else from_busy_time


def true_processing_rate(config: AutoscalerConfig, window: MetricWindow, vertex: str, parallelism: int) -> float:
    """Rules 4 and 5: what a vertex could process at full capacity over the window; NaN if unknown."""
    from_busy_time = busy_time_rate(input_rate(config, window, vertex), busy_share(config, window, vertex, parallelism))
    least = config.observed_true_processing_rate_min_observations
    return choose_rate(config, from_busy_time, window.mean(vertex, OBSERVED_TPR, least=least))


def is_processing_backlog(config: AutoscalerConfig, lag: float, input_per_s: float) -> bool:
    """Rule 7: whether a source's lag is more than ``backlog-processing.lag-threshold`` of its input."""
    if math.isnan(input_per_s) or math.isnan(lag):
        return False
    if input_per_s == 0:
        return lag > 0
    return lag / input_per_s > config.backlog_processing_lag_threshold_s


def job_processes_backlog(config: AutoscalerConfig, topology: JobTopology, window: MetricWindow) -> bool:
    """Rule 7: whether any source does."""
    return any(
        is_processing_backlog(config, window.latest(vertex.name, LAG, 0.0), window.rate_per_s(vertex.name, RECORDS_IN))
        for vertex in topology.vertices
        if not vertex.inputs
    )
