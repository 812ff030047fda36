"""The rivals that only the replay has, by name."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from pydantic import ConfigDict, TypeAdapter

from benchmarks.replay.rivals.controller_alone import drive_without_plans
from benchmarks.replay.rivals.cpu_steps import CpuSteps
from benchmarks.replay.rivals.predictive_scaling import PredictiveScaling
from benchmarks.replay.rivals.rival_options import CpuStepsOptions, PredictiveScalingOptions, WeeklyScheduleOptions
from benchmarks.replay.rivals.weekly_schedule import WeeklySchedule
from lab.replay.drivers import PolicyDriver

BEST_CONSTANT = "best_constant"
CONTROLLER_ALONE = "controller_alone"
FORMED = "_best"
"""End of the names of candidates in their best form."""


@dataclass(frozen=True, slots=True)
class RivalEntry:
    """A rival.

    Attributes:
        make: options -> driver.
        options: class of its parameters.
        title: for people.
    """

    make: Callable[[Any], PolicyDriver[Any]]
    options: Any
    title: str


RIVALS: Mapping[str, RivalEntry] = {
    "weekly_schedule": RivalEntry(WeeklySchedule, WeeklyScheduleOptions, "last week's hourly maximum + 20%, by hand"),
    "predictive_scaling": RivalEntry(
        PredictiveScaling, PredictiveScalingOptions, "predictive scaling and target tracking, as AWS"
    ),
    "cpu_steps": RivalEntry(CpuSteps, CpuStepsOptions, "CPU rule of AWS' managed Flink"),
}


def list_rivals() -> tuple[str, ...]:
    """Return all names, the reference in hindsight last."""
    return (CONTROLLER_ALONE, *RIVALS, BEST_CONSTANT)


def build_rival(name: str, parameters: Mapping[str, object]) -> PolicyDriver[Any]:
    """Return a rival's driver.

    Raises:
        KeyError: no rival has this name.
        pydantic.ValidationError: (a ValueError) a parameter that it lacks, or out of range.
    """
    if name == CONTROLLER_ALONE:
        return drive_without_plans(parameters)
    entry = RIVALS[name]
    (options,) = _adapter(entry.options).validate_python([dict(parameters)])
    return entry.make(options)


@cache
def _adapter(kind: Hashable) -> TypeAdapter[Any]:
    wanted: Any = kind
    # Inside a tuple: pydantic refuses settings for a dataclass itself, and hands them on to one within a type.
    return TypeAdapter(tuple[wanted], config=ConfigDict(extra="forbid", allow_inf_nan=False))
