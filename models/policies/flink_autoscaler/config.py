"""The settings that decide a parallelism, read from the autoscaler's own keys."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from enum import StrEnum

from models.policies.flink_autoscaler.options import BOUNDARY, OPTIONS, PREFIX, Option
from models.policies.flink_autoscaler.values import Value, read


class ConfigError(ValueError):
    """A key or value that the autoscaler does not know."""


class Alignment(StrEnum):
    """Alignment of a parallelism to key groups or partitions; the legacy modes are those of release 1.15.0."""

    BALANCED = "BALANCED"
    EVENLY_SPREAD = "EVENLY_SPREAD"
    OFF = "OFF"
    LEGACY_EVENLY_SPREAD = "LEGACY_EVENLY_SPREAD"
    LEGACY_MAXIMIZE_UTILISATION = "LEGACY_MAXIMIZE_UTILISATION"


@dataclass(frozen=True, slots=True)
class AutoscalerConfig:
    """Settings of one job; each field's default is the key's.

    Fields are named as their keys without prefix, words joined by underscores, durations with ``_s``.
    """

    backlog_processing_lag_threshold_s: float = 300.0
    catch_up_duration_s: float = 1800.0
    excluded_periods: tuple[str, ...] = ()
    history_max_age_s: float = 86400.0
    history_max_count: int = 3
    memory_gc_pressure_threshold: float = 1.0
    memory_heap_usage_threshold: float = 1.0
    metrics_busy_time_aggregator: str = "MAX"
    metrics_window_s: float = 900.0
    observed_scalability_coefficient_min: float = 0.5
    observed_scalability_enabled: bool = False
    observed_scalability_min_observations: int = 3
    observed_true_processing_rate_lag_threshold_s: float = 30.0
    observed_true_processing_rate_min_observations: int = 2
    observed_true_processing_rate_switch_threshold: float = 0.15
    quota_cpu: float | None = None
    quota_memory: int | None = None
    restart_time_s: float = 300.0
    restart_time_tracking_enabled: bool = False
    restart_time_tracking_limit_s: float = 900.0
    scale_down_interval_s: float = 3600.0
    scale_down_max_factor: float = 0.6
    scale_up_max_factor: float = 100_000.0
    scaling_effectiveness_detection_enabled: bool = False
    scaling_effectiveness_threshold: float = 0.1
    scaling_enabled: bool = True
    stabilization_interval_s: float = 300.0
    target_utilization_boundary: float = 0.3
    utilization_max: float | None = None
    utilization_min: float | None = None
    utilization_target: float = 0.7
    vertex_exclude_ids: tuple[str, ...] = ()
    vertex_max_parallelism: int = 200
    vertex_min_parallelism: int = 1
    # Deviation from main, whose default is BALANCED: release 1.15.0, which users run, spreads evenly (rule 10).
    alignment: Alignment = Alignment.LEGACY_EVENLY_SPREAD

    @classmethod
    def from_options(cls, options: Mapping[str, object], *, ranges: bool = True) -> AutoscalerConfig:
        """Read keys as Flink's configuration has them, with or without ``job.autoscaler.``.

        A duration may be a text (``5 min``), or seconds under its key followed by ``_s``.

        Args:
            options: key -> value.
            ranges: whether values outside the ranges that the operator's validation allows are refused.

        Raises:
            ConfigError: an unknown key, a value of another type or out of its range; the message names it.
        """
        given: dict[str, Value] = {}
        for key, raw in options.items():
            option = _option(key)
            try:
                given[option.key] = None if raw is None else read(option.kind, raw)
            except ValueError as error:
                raise ConfigError(f"autoscaler option {key!r}: {error}") from None
        decisive = {_field(key): value for key, value in given.items() if _field(key) in _FIELDS}
        config = cls(**decisive, alignment=_alignment(given))  # type: ignore[arg-type]
        if ranges:
            config.check()
        return config

    def check(self) -> None:
        """Refuse values outside their ranges.

        Raises:
            ConfigError: with the key.
        """
        high = 1.0 if self.utilization_max is None else self.utilization_max
        low = 0.0 if self.utilization_min is None else self.utilization_min
        ranges = {
            "utilization.target": (0.0 < self.utilization_target <= 1.0, "in (0, 1]"),
            "utilization.max": (self.utilization_target <= high <= 1.0, "between utilization.target and 1"),
            "utilization.min": (0.0 <= low <= self.utilization_target, "between 0 and utilization.target"),
            "scale-down.max-factor": (0.0 <= self.scale_down_max_factor <= 1.0, "in [0, 1]"),
            "scale-up.max-factor": (self.scale_up_max_factor >= 0.0, "0 or more"),
            "vertex.min-parallelism": (self.vertex_min_parallelism >= 1, "1 or more"),
            "vertex.max-parallelism": (
                self.vertex_min_parallelism <= self.vertex_max_parallelism,
                "at least vertex.min-parallelism",
            ),
            "observed-scalability.coefficient-min": (0 < self.observed_scalability_coefficient_min <= 1, "in (0, 1]"),
        }
        for key, (holds, wanted) in ranges.items():
            if not holds:
                raise ConfigError(f"autoscaler option {PREFIX}{key} must be {wanted}")

    def utilization_bounds(self) -> tuple[float, float]:
        """Return lowest and highest utilisation without a scaling: as given, else target -+ boundary (rule 7)."""
        low, high = self.utilization_min, self.utilization_max
        return (
            self.utilization_target - self.target_utilization_boundary if low is None else low,
            self.utilization_target + self.target_utilization_boundary if high is None else high,
        )


# Options whose field has another name than the key.
_MODE = f"{PREFIX}scaling.parallelism-alignment.mode"
_LEGACY_MODE = f"{PREFIX}scaling.key-group.partitions.adjust.mode"
_SHORT = {"alignment": _MODE}
_FIELDS = {field.name for field in fields(AutoscalerConfig)} - {"alignment"}
_KNOWN = {option.key: option for option in (*OPTIONS, BOUNDARY) if "<" not in option.key}
_FAMILIES = [
    (re.compile(re.sub(r"<\w+>", "[^.]+", option.key.replace(".", r"\."))), option)
    for option in OPTIONS
    if "<" in option.key
]


def _option(key: str) -> Option:
    for name in (_SHORT.get(key, key), f"{PREFIX}{key}", f"{PREFIX}{key.removesuffix('_s')}"):
        if name in _KNOWN:
            return _KNOWN[name]
        for pattern, option in _FAMILIES:
            if pattern.fullmatch(name):
                return Option(name, option.kind, option.default, option.release)
    raise ConfigError(f"the autoscaler has no option {key!r}; its keys are listed in its documentation")


def _field(key: str) -> str:
    name = re.sub(r"[.-]", "_", key.removeprefix(PREFIX))
    return f"{name}_s" if _KNOWN.get(key, BOUNDARY).kind == "duration" else name


def _alignment(given: Mapping[str, Value]) -> Alignment:
    """Return the mode: the newer key first, then the legacy key, then the default."""
    newer, legacy = given.get(_MODE), given.get(_LEGACY_MODE)
    if newer is None and legacy is None:
        return Alignment.LEGACY_EVENLY_SPREAD
    name = str(newer) if newer is not None else f"LEGACY_{legacy}"
    if name not in Alignment.__members__:
        raise ConfigError(f"alignment mode {name!r} is not built in; choose one of {list(Alignment.__members__)}")
    return Alignment[name]
