"""Rates, times and counts as reasons write them."""

from __future__ import annotations

from datetime import UTC, datetime


def format_rate(value: float) -> str:
    """Write a rate briefly: 950, 8.2k, 124k, 3.1M."""
    for limit, divisor, unit in ((1e3, 1.0, ""), (1e6, 1e3, "k"), (1e9, 1e6, "M")):
        if value < limit * 0.9995:
            scaled = value / divisor
            return f"{scaled:.0f}{unit}" if scaled >= 99.5 or not unit else f"{scaled:.2g}{unit}"
    return f"{value / 1e9:.3g}G"


def format_duration(seconds: float) -> str:
    """Write a duration briefly: 40 s, 2 min 40 s, 3 h 10 min."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    large, small, names = (whole // 60, whole % 60, ("min", "s"))
    if whole >= 3600:
        large, small, names = (whole // 3600, whole % 3600 // 60, ("h", "min"))
    return f"{large} {names[0]}" + (f" {small} {names[1]}" if small else "")


def format_count(count: float | None, noun: str) -> str:
    """Write a count with its noun: 1 slot, 12 slots; slots unknown."""
    return f"{noun}s unknown" if count is None else f"{count:,.0f} {noun}{'' if round(count) == 1 else 's'}"


def format_late(minutes: float) -> str:
    """Write late minutes: none, less than a minute, or whole ones."""
    if minutes < 0.05:
        return "no late minute"
    return "less than 1 late minute" if minutes < 0.5 else format_count(minutes, "late minute")


def format_clock(epoch_s: int, as_of_s: int) -> str:
    """Write a time of day in UTC, with the day when it is not the day of planning."""
    timestamp, today = datetime.fromtimestamp(epoch_s, UTC), datetime.fromtimestamp(as_of_s, UTC)
    return f"{timestamp:%H:%M}" if timestamp.date() == today.date() else f"{timestamp:%H:%M on %Y-%m-%d}"
