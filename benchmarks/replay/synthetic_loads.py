"""Synthetic loads for tuning, never for test: ``--trace synthetic_spikes``, or ``synthetic_spikes:3`` for seed 3.

Each is two weeks from a Monday on, of the same values for the same name and seed on any machine.  They have what the
public tuning traces lack: noise that lasts, levels that change, crowds, heavy-tailed counts, noise that does not last.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import numpy as np
from scipy.signal import lfilter

from benchmarks.replay.replay_traces import DAY_BINS, ColumnChoice, Trace, TraceError, read_trace
from models.arrays import Floats

DAYS = 14
MONDAY = 1_700_438_400  # 2023-11-20 00:00 UTC
_BINS = DAYS * DAY_BINS
_HOUR_BINS = DAY_BINS // 24
_LEAST = 0.01  # of a load whose mean is about 1
Generator = np.random.Generator


def draw_slow_noise(generator: Generator) -> Floats:
    """Return a daily pattern times noise with a memory of three hours and a deviation of 35%."""
    slow = _draw_memory(generator, _BINS, 0.35, 3.0 * _HOUR_BINS)
    return np.asarray(_daily(0.5) * np.exp(slow + 0.03 * generator.standard_normal(_BINS)))


def draw_level_shifts(generator: Generator) -> Floats:
    """Return levels that last one to five hours each, log-normal, over a weak daily pattern."""
    levels: list[float] = []
    while len(levels) < _BINS:
        duration = int(generator.uniform(_HOUR_BINS, 5 * _HOUR_BINS))
        levels += [float(np.exp(generator.normal(0.0, 0.6)))] * duration
    noise = np.exp(0.04 * generator.standard_normal(_BINS))
    return np.asarray(levels[:_BINS] * noise * _daily(0.2, at=0.0))


def draw_crowds(generator: Generator) -> Floats:
    """Return five crowds a day, of Pareto heights, that come in 15 minutes and decay over 15 to 150."""
    load = 0.6 * _daily(1 / 3)
    for first in np.flatnonzero(generator.random(_BINS) < 5 / DAY_BINS):
        height, decay = min(0.4 * generator.pareto(1.5), 4.0), generator.uniform(3.0, 30.0)
        age = np.arange(_BINS - first)
        load[first:] += height * np.minimum((age + 1) / 3, 1.0) * np.exp(-age / decay)
    return np.asarray(load * np.exp(0.06 * generator.standard_normal(_BINS)))


def draw_changing_days(generator: Generator) -> Floats:
    """Return a clean daily pattern whose height and phase are others every day."""
    smooth = np.ones(2 * _HOUR_BINS) / (2 * _HOUR_BINS)
    heights = np.repeat(np.exp(generator.normal(0.0, 0.3, DAYS + 1)), DAY_BINS)
    phases = np.repeat(generator.normal(0.0, 2.0 / 24, DAYS + 1), DAY_BINS)
    height, phase = (np.convolve(values, smooth, "same")[:_BINS] for values in (heights, phases))
    day = np.arange(_BINS) / DAY_BINS
    load = 0.4 + height * (1.0 + np.sin(2 * np.pi * (day - 0.3 - phase))) / 2
    return np.asarray(load * np.exp(0.03 * generator.standard_normal(_BINS)))


def draw_spikes(generator: Generator) -> Floats:
    """Return counts of a few events in most windows, and clusters of bursts up to hundreds of times that.

    A cluster has one burst or several within some hours.  Heights are Pareto with exponent 1.1, so that their mean
    hardly exists; durations are log-normal, from one window to hours; a burst ends at once or decays.
    """
    rate = 4.0 * _daily(0.3)
    for first in np.flatnonzero(generator.random(_BINS) < 2.5 / DAY_BINS).tolist():
        for _ in range(int(generator.geometric(0.4))):
            begins = first + int(generator.exponential(1.5 * _HOUR_BINS))
            height = 4.0 * min(2.0 * (1.0 + generator.pareto(1.1)), 300.0)
            duration = float(np.clip(np.exp(generator.normal(1.0, 1.0)), 1.0, 4.0 * _HOUR_BINS))
            age = np.arange(max(_BINS - begins, 0))
            ends_at_once = generator.random() < 0.4
            shape = (age < duration).astype(float) if ends_at_once else np.exp(-age / duration)
            rate[begins:] += height * shape
    return np.asarray(generator.poisson(rate), float)


def draw_white_noise(generator: Generator) -> Floats:
    """Return gamma draws that forget everything from window to window, their deviation 0.8 of their mean."""
    return np.asarray(_daily(0.3) * generator.gamma(1.0 / 0.64, 0.64, _BINS))


def draw_quiet_start(generator: Generator) -> Floats:
    """Return counts that begin at two requests a minute in the night and reach sixty times that in a week."""
    day = np.arange(_BINS) / DAY_BINS
    growth = 60.0 ** np.minimum(day / 7.0, 1.0)
    pattern = np.exp(1.2 * (1.0 - np.cos(2 * np.pi * day)) / 2)
    noise = np.exp(_draw_memory(generator, _BINS, 0.15, _HOUR_BINS))
    return np.asarray(generator.poisson(10.0 * growth * pattern * noise), float)


def draw_steep_mornings(generator: Generator) -> Floats:
    """Return days of ten hours that rise fourfold in ten minutes, some of them five or ten minutes sooner or later."""
    minutes = np.arange(DAY_BINS) * 5
    days = []
    for begin in 480 + generator.choice([-10, -5, 0, 0, 0, 5, 10], DAYS):
        rises, falls = np.clip((minutes - begin) / 10, 0, 1), np.clip((minutes - 1080) / 60, 0, 1)
        days.append(0.5 + 1.5 * (rises - falls))
    noise = np.exp(_draw_memory(generator, _BINS, 0.03, _HOUR_BINS) + 0.02 * generator.standard_normal(_BINS))
    return np.asarray(np.concatenate(days) * noise)


def draw_squares(generator: Generator, lasts_min: int) -> Floats:
    """Return a load of 1% and of all, in turn."""
    high = np.arange(_BINS) * 5 // lasts_min % 2
    return np.asarray(np.where(high, 1.0, 0.01) * np.exp(0.02 * generator.standard_normal(_BINS)))


SYNTHETIC: Mapping[str, Callable[[Generator], Floats]] = {
    "synthetic_slow_noise": draw_slow_noise,
    "synthetic_level_shifts": draw_level_shifts,
    "synthetic_crowds": draw_crowds,
    "synthetic_changing_days": draw_changing_days,
    "synthetic_spikes": draw_spikes,
    "synthetic_white_noise": draw_white_noise,
    "synthetic_quiet_start": draw_quiet_start,
    "synthetic_steep_mornings": draw_steep_mornings,
    **{f"synthetic_squares_{minutes}min": partial(draw_squares, lasts_min=minutes) for minutes in (10, 20, 40, 90)},
}
"""Name -> what draws the (n,) mean rates of five minutes."""


def draw_load(name: str, seed: int = 0) -> Trace:
    """Return a synthetic load.

    Args:
        name: in :data:`SYNTHETIC`.
        seed: another one gives another load of the same kind.
    """
    draws = SYNTHETIC[name]
    about = " ".join((getattr(draws, "func", draws).__doc__ or "").split("\n\n")[0].split())
    values = draws(np.random.default_rng([seed, *name.encode()]))
    label = f"{name}_{seed}" if seed else name
    return Trace(label, MONDAY, np.maximum(values, _LEAST), (about.replace("Return ", "synthetic: ", 1),))


def read_load(path: Path, choice: ColumnChoice | None = None) -> Trace:
    """Return a synthetic load by its name, or a trace from a file.

    Args:
        path: of the file, or ``NAME`` or ``NAME:SEED`` of a synthetic load.
        choice: what a person says of the file's columns.

    Raises:
        TraceError: a seed that is no whole number, or a file that holds no trace.
    """
    name, _, seed = str(path).partition(":")
    if name not in SYNTHETIC or path.exists():
        return read_trace(path, choice)
    if seed and not (seed.isascii() and seed.isdigit()):
        raise TraceError(f"{path}: the seed of {name} is a whole number, not {seed!r}")
    return draw_load(name, int(seed or 0))


def _daily(share: float, at: float = 0.3) -> Floats:
    """Return a sine over the day around 1, ``at`` of a day after midnight on its way up."""
    return np.asarray(1.0 + share * np.sin(2 * np.pi * (np.arange(_BINS) / DAY_BINS - at)))


def _draw_memory(generator: Generator, bins: int, deviation: float, memory: float) -> Floats:
    """Return an AR(1) process in its stationary law that forgets within ``memory`` bins."""
    keep = float(np.exp(-1.0 / memory))
    draws = deviation * generator.standard_normal(bins)
    draws[1:] *= np.sqrt(1.0 - keep**2)
    return np.asarray(lfilter([1.0], [1.0, -keep], draws))
