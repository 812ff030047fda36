"""From real traces to source rates: aligned on the weekday, shifted, stretched, scaled, mixed, with noise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from lab.simulation.spec import SpecError
from models.arrays import Floats

WEEK_S = 7 * 24 * 3600


@dataclass(frozen=True, slots=True)
class WeeklyTrace:
    """A measured input rate.

    Attributes:
        values: (n,) one value per ``step_s``, cut to whole weeks and divided by its 99.5th percentile.
        step_s: seconds between values.
        first_week_s: seconds from Monday 00:00 to the first value.
    """

    values: Floats
    step_s: int
    first_week_s: int

    @classmethod
    def from_values(cls, values: Floats, step_s: int, first_week_s: int, fine_step_s: int = 300) -> WeeklyTrace:
        """Build a trace: interpolate linearly to ``fine_step_s``, cut to whole weeks, normalise.

        Raises:
            SpecError: less than a week, or values that are negative or not finite.
        """
        if not np.isfinite(values).all() or (values < 0).any():
            raise SpecError("a trace holds values that are negative or not finite; repair or cut it")
        at = np.arange(0, values.size * step_s, fine_step_s)
        fine = np.interp(at, np.arange(values.size) * step_s, values)
        whole = fine.size // (WEEK_S // fine_step_s) * (WEEK_S // fine_step_s)
        if whole == 0:
            raise SpecError("a trace must cover at least one whole week, so that weekdays can be kept")
        fine = fine[:whole]
        return cls(fine / np.percentile(fine, 99.5), fine_step_s, first_week_s)

    def window(self, week_s: int, samples: int, weeks: int, hours: int) -> Floats:
        """Return ``samples`` values from a time of the week on, (samples,); it repeats after its last week.

        Args:
            week_s: seconds from Monday 00:00 to the first value wanted.
            samples: how many values.
            weeks: how many weeks later in the trace to begin.
            hours: how many hours the load lags behind the trace (another time zone); the weekday is kept.
        """
        shift_s = week_s - self.first_week_s + weeks * WEEK_S - hours * 3600
        return self.values[(shift_s // self.step_s + np.arange(samples)) % self.values.size]


@dataclass(frozen=True, slots=True)
class TracePart:
    """One trace in a mix.

    Attributes:
        trace: its name.
        weight: share in the mix.
        weeks, hours: see :meth:`WeeklyTrace.window`.
        contrast: stretches the distance from the peak: 1 leaves the trace, 2 doubles the depth of its nights.
    """

    trace: str
    weight: float = 1.0
    weeks: int = 0
    hours: int = 0
    contrast: float = 1.0


@dataclass(frozen=True, slots=True)
class SourceLoad:
    """The load of one source: a mix of traces, ``peak_per_s`` at its peak."""

    peak_per_s: float
    parts: tuple[TracePart, ...]
    sample_noise: float = 0.05
    step_noise: float = 0.02

    FLOOR = 0.02


def compute_shape(load: SourceLoad, traces: Mapping[str, WeeklyTrace], week_s: int, samples: int) -> Floats:
    """Return the noiseless rate of a source, (samples,) records/s, one per trace step.

    Raises:
        SpecError: a part names an unknown trace.
    """
    unknown = {part.trace for part in load.parts} - set(traces)
    if unknown:
        raise SpecError(f"unknown traces {sorted(unknown)}; known are {sorted(traces)}")
    total = np.zeros(samples)
    for part in load.parts:
        values = traces[part.trace].window(week_s, samples, part.weeks, part.hours)
        total += part.weight * (1.0 - part.contrast * (1.0 - values))
    return load.peak_per_s * np.maximum(total / sum(part.weight for part in load.parts), SourceLoad.FLOOR)


def draw_source_rates(
    loads: Sequence[SourceLoad],
    traces: Mapping[str, WeeklyTrace],
    week_s: int,
    *,
    steps: int,
    step_s: float,
    generator: np.random.Generator,
) -> Floats:
    """Return source rates with noise, (sources, steps) records/s.

    Values of the trace are joined linearly; each gets ``sample_noise``, each step ``step_noise``.
    """
    trace_step_s = next(iter(traces.values())).step_s
    samples = int(np.ceil(steps * step_s / trace_step_s)) + 1
    at = (np.arange(steps) + 0.5) * step_s
    rates = np.empty((len(loads), steps))
    for row, load in enumerate(loads):
        coarse = compute_shape(load, traces, week_s, samples)
        coarse = coarse * np.maximum(1.0 + load.sample_noise * generator.standard_normal(samples), 0.1)
        fine = np.interp(at, np.arange(samples) * trace_step_s, coarse)
        rates[row] = fine * np.maximum(1.0 + load.step_noise * generator.standard_normal(steps), 0.1)
    return rates
