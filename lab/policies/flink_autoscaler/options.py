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
class ConfigOption:
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


OPTIONS: tuple[ConfigOption, ...] = (
    ConfigOption("job.autoscaler.backlog-processing.lag-threshold", "duration", "5 min"),
    ConfigOption("job.autoscaler.catch-up.duration", "duration", "30 min"),
    ConfigOption("job.autoscaler.enabled", "boolean", "false"),
    ConfigOption("job.autoscaler.excluded.periods", "list", ""),
    ConfigOption("job.autoscaler.flink.rest-client.timeout", "duration", "10 s"),
    ConfigOption("job.autoscaler.history.max.age", "duration", "1 d"),
    ConfigOption("job.autoscaler.history.max.count", "integer", "3"),
    ConfigOption("job.autoscaler.memory.gc-pressure.threshold", "double", "1.0"),
    ConfigOption("job.autoscaler.memory.heap-usage.threshold", "double", "1.0"),
    ConfigOption("job.autoscaler.memory.tuning.enabled", "boolean", "false"),
    ConfigOption("job.autoscaler.memory.tuning.maximize-managed-memory", "boolean", "false"),
    ConfigOption("job.autoscaler.memory.tuning.overhead", "double", "0.2"),
    ConfigOption("job.autoscaler.memory.tuning.scale-down-compensation.enabled", "boolean", "true"),
    ConfigOption("job.autoscaler.metrics.busy-time.aggregator", "text", "MAX"),
    ConfigOption("job.autoscaler.metrics.custom-evaluator.<name>.<parameter>", "text", None, "main"),
    ConfigOption("job.autoscaler.metrics.custom-evaluator.<name>.class", "text", None, "main"),
    ConfigOption("job.autoscaler.metrics.custom-evaluators", "list", "", "main"),
    ConfigOption("job.autoscaler.metrics.window", "duration", "15 min"),
    ConfigOption("job.autoscaler.observed-scalability.coefficient-min", "double", "0.5"),
    ConfigOption("job.autoscaler.observed-scalability.enabled", "boolean", "false"),
    ConfigOption("job.autoscaler.observed-scalability.min-observations", "integer", "3"),
    ConfigOption("job.autoscaler.observed-true-processing-rate.lag-threshold", "duration", "30 s"),
    ConfigOption("job.autoscaler.observed-true-processing-rate.min-observations", "integer", "2"),
    ConfigOption("job.autoscaler.observed-true-processing-rate.switch-threshold", "double", "0.15"),
    ConfigOption("job.autoscaler.quota.cpu", "double", None),
    ConfigOption("job.autoscaler.quota.memory", "memory", None),
    ConfigOption("job.autoscaler.restart.time", "duration", "5 min"),
    ConfigOption("job.autoscaler.restart.time-tracking.enabled", "boolean", "false"),
    ConfigOption("job.autoscaler.restart.time-tracking.limit", "duration", "15 min"),
    ConfigOption("job.autoscaler.scale-down.interval", "duration", "1 h"),
    ConfigOption("job.autoscaler.scale-down.max-factor", "double", "0.6"),
    ConfigOption("job.autoscaler.scale-up.max-factor", "double", "100000.0"),
    ConfigOption("job.autoscaler.scaling.custom-executor.<name>.<parameter>", "text", None, "main"),
    ConfigOption("job.autoscaler.scaling.custom-executor.<name>.class", "text", None, "main"),
    ConfigOption("job.autoscaler.scaling.custom-executors", "list", "", "main"),
    ConfigOption("job.autoscaler.scaling.effectiveness.detection.enabled", "boolean", "false"),
    ConfigOption("job.autoscaler.scaling.effectiveness.threshold", "double", "0.1"),
    ConfigOption("job.autoscaler.scaling.enabled", "boolean", "true"),
    ConfigOption("job.autoscaler.scaling.event.interval", "duration", "30 min"),
    ConfigOption("job.autoscaler.scaling.key-group.partitions.adjust.mode", "text", "EVENLY_SPREAD", "1.15.0"),
    ConfigOption("job.autoscaler.scaling.parallelism-alignment.mode", "text", "BALANCED", "main"),
    ConfigOption("job.autoscaler.scaling.parallelism-alignment.mode.<name>.<parameter>", "text", None, "main"),
    ConfigOption("job.autoscaler.scaling.parallelism-alignment.mode.<name>.class", "text", None, "main"),
    ConfigOption("job.autoscaler.stabilization.interval", "duration", "5 min"),
    ConfigOption("job.autoscaler.utilization.max", "double", None),
    ConfigOption("job.autoscaler.utilization.min", "double", None),
    ConfigOption("job.autoscaler.utilization.target", "double", "0.7"),
    ConfigOption("job.autoscaler.vertex.exclude.ids", "list", ""),
    ConfigOption("job.autoscaler.vertex.max-parallelism", "integer", "200"),
    ConfigOption("job.autoscaler.vertex.min-parallelism", "integer", "1"),
    ConfigOption("autoscaler.standalone.control-loop.interval", "duration", "10 s"),
    ConfigOption("autoscaler.standalone.control-loop.parallelism", "integer", "100"),
    ConfigOption("autoscaler.standalone.event-handler.type", "text", "LOGGING"),
    ConfigOption("autoscaler.standalone.fetcher.flink-cluster.host", "text", "localhost"),
    ConfigOption("autoscaler.standalone.fetcher.flink-cluster.port", "integer", "8081"),
    ConfigOption("autoscaler.standalone.jdbc.event-handler.ttl", "duration", "90 d"),
    ConfigOption("autoscaler.standalone.jdbc.password-env-variable", "text", "JDBC_PWD"),
    ConfigOption("autoscaler.standalone.jdbc.url", "text", None),
    ConfigOption("autoscaler.standalone.jdbc.username", "text", None),
    ConfigOption("autoscaler.standalone.state-store.type", "text", "MEMORY"),
)

# Deprecated but still read: the half-width of the band around the target where maximum and minimum are not given.
BOUNDARY = ConfigOption("job.autoscaler.target.utilization.boundary", "double", "0.3")
