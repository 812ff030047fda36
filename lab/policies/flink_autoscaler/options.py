"""The autoscaler's option keys with type and default, as release 1.15.0 and main 6e9caeb declare them.

Every key is known, so that a job's own Flink configuration can be given whole; those that decide a parallelism end up
in :class:`lab.policies.flink_autoscaler.config.AutoscalerConfig`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from lab.policies.flink_autoscaler.values import Kind

PREFIX = "job.autoscaler."


class ConfigError(ValueError):
    """A key or value that the autoscaler does not know."""


@dataclass(frozen=True, slots=True)
class Option:
    """One key.

    Attributes:
        key: in full; ``<name>`` and ``<parameter>`` stand for any text.
        kind: how its value is written.
        default: as written; None when there is none.
        release: where the key exists.
    """

    key: str
    kind: Kind
    default: str | None
    release: Literal["both", "1.15.0", "main"] = "both"


OPTIONS: tuple[Option, ...] = (
    Option("job.autoscaler.backlog-processing.lag-threshold", "duration", "5 min"),
    Option("job.autoscaler.catch-up.duration", "duration", "30 min"),
    Option("job.autoscaler.enabled", "boolean", "false"),
    Option("job.autoscaler.excluded.periods", "list", ""),
    Option("job.autoscaler.flink.rest-client.timeout", "duration", "10 s"),
    Option("job.autoscaler.history.max.age", "duration", "1 d"),
    Option("job.autoscaler.history.max.count", "integer", "3"),
    Option("job.autoscaler.memory.gc-pressure.threshold", "double", "1.0"),
    Option("job.autoscaler.memory.heap-usage.threshold", "double", "1.0"),
    Option("job.autoscaler.memory.tuning.enabled", "boolean", "false"),
    Option("job.autoscaler.memory.tuning.maximize-managed-memory", "boolean", "false"),
    Option("job.autoscaler.memory.tuning.overhead", "double", "0.2"),
    Option("job.autoscaler.memory.tuning.scale-down-compensation.enabled", "boolean", "true"),
    Option("job.autoscaler.metrics.busy-time.aggregator", "text", "MAX"),
    Option("job.autoscaler.metrics.custom-evaluator.<name>.<parameter>", "text", None, "main"),
    Option("job.autoscaler.metrics.custom-evaluator.<name>.class", "text", None, "main"),
    Option("job.autoscaler.metrics.custom-evaluators", "list", "", "main"),
    Option("job.autoscaler.metrics.window", "duration", "15 min"),
    Option("job.autoscaler.observed-scalability.coefficient-min", "double", "0.5"),
    Option("job.autoscaler.observed-scalability.enabled", "boolean", "false"),
    Option("job.autoscaler.observed-scalability.min-observations", "integer", "3"),
    Option("job.autoscaler.observed-true-processing-rate.lag-threshold", "duration", "30 s"),
    Option("job.autoscaler.observed-true-processing-rate.min-observations", "integer", "2"),
    Option("job.autoscaler.observed-true-processing-rate.switch-threshold", "double", "0.15"),
    Option("job.autoscaler.quota.cpu", "double", None),
    Option("job.autoscaler.quota.memory", "memory", None),
    Option("job.autoscaler.restart.time", "duration", "5 min"),
    Option("job.autoscaler.restart.time-tracking.enabled", "boolean", "false"),
    Option("job.autoscaler.restart.time-tracking.limit", "duration", "15 min"),
    Option("job.autoscaler.scale-down.interval", "duration", "1 h"),
    Option("job.autoscaler.scale-down.max-factor", "double", "0.6"),
    Option("job.autoscaler.scale-up.max-factor", "double", "100000.0"),
    Option("job.autoscaler.scaling.custom-executor.<name>.<parameter>", "text", None, "main"),
    Option("job.autoscaler.scaling.custom-executor.<name>.class", "text", None, "main"),
    Option("job.autoscaler.scaling.custom-executors", "list", "", "main"),
    Option("job.autoscaler.scaling.effectiveness.detection.enabled", "boolean", "false"),
    Option("job.autoscaler.scaling.effectiveness.threshold", "double", "0.1"),
    Option("job.autoscaler.scaling.enabled", "boolean", "true"),
    Option("job.autoscaler.scaling.event.interval", "duration", "30 min"),
    Option("job.autoscaler.scaling.key-group.partitions.adjust.mode", "text", "EVENLY_SPREAD", "1.15.0"),
    Option("job.autoscaler.scaling.parallelism-alignment.mode", "text", "BALANCED", "main"),
    Option("job.autoscaler.scaling.parallelism-alignment.mode.<name>.<parameter>", "text", None, "main"),
    Option("job.autoscaler.scaling.parallelism-alignment.mode.<name>.class", "text", None, "main"),
    Option("job.autoscaler.stabilization.interval", "duration", "5 min"),
    Option("job.autoscaler.utilization.max", "double", None),
    Option("job.autoscaler.utilization.min", "double", None),
    Option("job.autoscaler.utilization.target", "double", "0.7"),
    Option("job.autoscaler.vertex.exclude.ids", "list", ""),
    Option("job.autoscaler.vertex.max-parallelism", "integer", "200"),
    Option("job.autoscaler.vertex.min-parallelism", "integer", "1"),
    Option("autoscaler.standalone.control-loop.interval", "duration", "10 s"),
    Option("autoscaler.standalone.control-loop.parallelism", "integer", "100"),
    Option("autoscaler.standalone.event-handler.type", "text", "LOGGING"),
    Option("autoscaler.standalone.fetcher.flink-cluster.host", "text", "localhost"),
    Option("autoscaler.standalone.fetcher.flink-cluster.port", "integer", "8081"),
    Option("autoscaler.standalone.jdbc.event-handler.ttl", "duration", "90 d"),
    Option("autoscaler.standalone.jdbc.password-env-variable", "text", "JDBC_PWD"),
    Option("autoscaler.standalone.jdbc.url", "text", None),
    Option("autoscaler.standalone.jdbc.username", "text", None),
    Option("autoscaler.standalone.state-store.type", "text", "MEMORY"),
)

# Deprecated but still read: the half-width of the band around the target where maximum and minimum are not given.
BOUNDARY = Option("job.autoscaler.target.utilization.boundary", "double", "0.3")
