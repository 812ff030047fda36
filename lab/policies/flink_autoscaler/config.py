"""The settings that decide a parallelism, read from the autoscaler's own keys."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field

from include.settings.section import SLOTS_MAX
from include.utc import DAY_S
from lab.policies.flink_autoscaler.excluded_periods import in_period
from lab.policies.flink_autoscaler.options import BOUNDARY, OPTIONS, PREFIX, ConfigError, ConfigOption
from lab.policies.flink_autoscaler.values import Value, read


class Alignment(StrEnum):
    """Alignment of a parallelism to key groups or partitions; the legacy modes are those of release 1.15.0."""

    BALANCED = "BALANCED"
    EVENLY_SPREAD = "EVENLY_SPREAD"
    OFF = "OFF"
    LEGACY_EVENLY_SPREAD = "LEGACY_EVENLY_SPREAD"
    LEGACY_MAXIMIZE_UTILISATION = "LEGACY_MAXIMIZE_UTILISATION"


class Release(StrEnum):
    """Release whose rules are meant.

    CURRENT: 1.15.0.  V1_10: 1.10.0, which differs in two rules: a scale-down that has waited takes what is recommended
    then, not the highest recommendation meanwhile, and joins another vertex's scaling before (rule 11); the true
    processing rate is made from the counter of input records while the busy time is a mean of gauges (rule 4).
    """

    CURRENT = "1.15.0"
    V1_10 = "1.10.0"


@dataclass(frozen=True, slots=True)
class AutoscalerConfig:
    """Settings of one job; each field's default is the key's.

    Fields are named as their keys without prefix, words joined by underscores, durations with ``_s``.
    """

    backlog_processing_lag_threshold_s: Annotated[
        float,
        Field(
            ge=0,
            le=366 * DAY_S,
            description="s; lag of a source in seconds of input from which a backlog is being processed: no scale-down",
        ),
    ] = 300.0
    catch_up_duration_s: Annotated[
        float,
        Field(
            ge=0,
            le=366 * DAY_S,
            description="s; a backlog is to be worked off within this; 0: no extra capacity for it",
        ),
    ] = 1800.0
    excluded_periods: Annotated[
        tuple[str, ...], Field(description="times without scaling: daily periods or Quartz cron expressions")
    ] = ()
    history_max_age_s: Annotated[
        float, Field(ge=0, le=366 * DAY_S, description="s; past scalings older than this are forgotten")
    ] = 86400.0
    history_max_count: Annotated[int, Field(ge=1, le=10_000, description="past scalings kept per vertex")] = 3
    memory_gc_pressure_threshold: Annotated[
        float, Field(ge=0, le=1, description="share of time in garbage collection above which nothing is scaled")
    ] = 1.0
    memory_heap_usage_threshold: Annotated[
        float, Field(ge=0, le=1, description="share of the heap in use above which nothing is scaled")
    ] = 1.0
    metrics_busy_time_aggregator: Annotated[
        Literal["MAX", "AVG", "MIN"], Field(description="how the busy time of subtasks becomes one")
    ] = "MAX"
    metrics_window_s: Annotated[
        float, Field(ge=0, le=366 * DAY_S, description="s; window over which metrics are averaged")
    ] = 900.0
    observed_scalability_coefficient_min: Annotated[
        float, Field(gt=0, le=1, description="lower limit of the scalability that is observed")
    ] = 0.5
    observed_scalability_enabled: Annotated[
        bool, Field(description="use the scalability that past scalings have shown, instead of linear")
    ] = False
    observed_scalability_min_observations: Annotated[
        int, Field(ge=1, le=10_000, description="past scalings needed for it")
    ] = 3
    observed_true_processing_rate_lag_threshold_s: Annotated[
        float,
        Field(
            ge=0, le=366 * DAY_S, description="s; lag from which the rate of a source counts as observed at full load"
        ),
    ] = 30.0
    observed_true_processing_rate_min_observations: Annotated[
        int, Field(ge=1, le=10_000, description="such observations needed")
    ] = 2
    observed_true_processing_rate_switch_threshold: Annotated[
        float,
        Field(
            ge=0,
            le=1,
            description="relative difference of the rate from busy time above which the observed one is used",
        ),
    ] = 0.15
    quota_cpu: Annotated[
        float | None, Field(gt=0, le=1e9, description="cores that all TaskManagers may have together; unset: no limit")
    ] = None
    quota_memory: Annotated[
        int | None, Field(gt=0, le=2**60, description="bytes that all TaskManagers may have together; unset: no limit")
    ] = None
    restart_time_s: Annotated[float, Field(ge=0, le=366 * DAY_S, description="s; expected duration of a restart")] = (
        300.0
    )
    restart_time_tracking_enabled: Annotated[bool, Field(description="use the restarts that were measured instead")] = (
        False
    )
    restart_time_tracking_limit_s: Annotated[
        float, Field(ge=0, le=366 * DAY_S, description="s; upper limit of a measured restart")
    ] = 900.0
    scale_down_interval_s: Annotated[
        float,
        Field(
            ge=0, le=366 * DAY_S, description="s; a scale-down waits for so long and takes the highest recommendation"
        ),
    ] = 3600.0
    scale_down_max_factor: Annotated[
        float, Field(ge=0, le=1, description="largest share of a vertex's parallelism that one scale-down takes")
    ] = 0.6
    scale_up_max_factor: Annotated[
        float, Field(ge=0, le=1e9, description="largest growth of a vertex's parallelism in one scale-up, as a factor")
    ] = 100_000.0
    scaling_effectiveness_detection_enabled: Annotated[
        bool, Field(description="stop scaling a vertex up when the last scale-up brought too little")
    ] = False
    scaling_effectiveness_threshold: Annotated[
        float, Field(ge=0, le=1, description="share of the expected growth that a scale-up must bring")
    ] = 0.1
    scaling_enabled: Annotated[bool, Field(description="scale at all")] = True
    stabilization_interval_s: Annotated[
        float, Field(ge=0, le=366 * DAY_S, description="s; after a start or scaling metrics are not used for so long")
    ] = 300.0
    target_utilization_boundary: Annotated[
        float,
        Field(ge=0, le=1, description="half-width of the band around the target, where maximum and minimum are unset"),
    ] = 0.3
    utilization_max: Annotated[
        float | None,
        Field(ge=0, le=1, description="utilisation above which a vertex is scaled up; unset: target + boundary"),
    ] = None
    utilization_min: Annotated[
        float | None,
        Field(ge=0, le=1, description="utilisation below which a vertex is scaled down; unset: target - boundary"),
    ] = None
    utilization_target: Annotated[float, Field(gt=0, le=1, description="utilisation that a scaling aims at")] = 0.7
    vertex_exclude_ids: Annotated[tuple[str, ...], Field(description="ids of vertices that are never scaled")] = ()
    vertex_max_parallelism: Annotated[int, Field(ge=1, le=SLOTS_MAX, description="largest parallelism of a vertex")] = (
        200
    )
    vertex_min_parallelism: Annotated[
        int, Field(ge=1, le=SLOTS_MAX, description="smallest parallelism of a vertex")
    ] = 1
    # Deviation from main, whose default is BALANCED: release 1.15.0, which users run, spreads evenly (rule 10).
    alignment: Annotated[Alignment, Field(description="how a parallelism is aligned to key groups or partitions")] = (
        Alignment.LEGACY_EVENLY_SPREAD
    )

    # Only for the comparison with the published jars, the last of which on Maven Central that runs alone is 1.10.0.
    release: Release = field(default=Release.CURRENT, metadata={"setting": False})

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
        for period in self.excluded_periods:
            in_period(period, datetime(2024, 1, 1, tzinfo=UTC))

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
_FIELDS = {one.name for one in fields(AutoscalerConfig)} - {"alignment", "release"}
_KNOWN = {option.key: option for option in (*OPTIONS, BOUNDARY) if "<" not in option.key}
_FAMILIES = [
    (re.compile(re.sub(r"<\w+>", "[^.]+", option.key.replace(".", r"\."))), option)
    for option in OPTIONS
    if "<" in option.key
]


def _option(key: str) -> ConfigOption:
    for name in (_SHORT.get(key, key), f"{PREFIX}{key}", f"{PREFIX}{key.removesuffix('_s')}"):
        if name in _KNOWN:
            return _KNOWN[name]
        for pattern, option in _FAMILIES:
            if pattern.fullmatch(name):
                return ConfigOption(name, option.kind, option.default, option.release)
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
