"""Durations as Flink's configuration writes them, without any I/O."""

from __future__ import annotations

import re

# The labels of Flink's TimeUtils; a number alone counts milliseconds.
_UNITS_S = {
    **dict.fromkeys(("d", "day", "days"), 86_400.0),
    **dict.fromkeys(("h", "hour", "hours"), 3600.0),
    **dict.fromkeys(("m", "min", "minute", "minutes"), 60.0),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), 1.0),
    **dict.fromkeys(("", "ms", "milli", "millis", "millisecond", "milliseconds"), 1e-3),
    **dict.fromkeys(("µs", "micro", "micros", "microsecond", "microseconds"), 1e-6),
    **dict.fromkeys(("ns", "nano", "nanos", "nanosecond", "nanoseconds"), 1e-9),
}
_SIMPLE = re.compile(r"(\d+)\s*([a-zµ]*)")
_ISO = re.compile(r"p(?:(\d+)d)?(?:t(?:(\d+)h)?(?:(\d+)m)?(?:(\d+(?:\.\d+)?)s)?)?")


def parse_duration_s(text: str) -> float | None:
    """Return a duration, as ``10 min``, ``60000`` (ms) or ``PT10M`` (ISO), in s; None for what Flink would refuse."""
    plain = text.strip().lower()
    result = _SIMPLE.fullmatch(plain)
    if result is not None:
        unit_s = _UNITS_S.get(result[2])
        return None if unit_s is None else int(result[1]) * unit_s
    iso = _ISO.fullmatch(plain)
    if iso is None or not any(iso.groups()):
        return None
    return sum(float(one or 0) * unit_s for one, unit_s in zip(iso.groups(), (86_400, 3600, 60, 1), strict=True))
