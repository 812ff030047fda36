"""Reading option values as Flink's configuration writes them: ``5 min``, ``1 gb``, ``true``, ``a;b``."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import Literal

Kind = Literal["duration", "boolean", "integer", "double", "list", "text", "memory"]
Value = float | int | bool | str | tuple[str, ...] | None

# Unit -> seconds; an amount without a unit is milliseconds in Flink.
_SECONDS = {
    **dict.fromkeys(("", "ms", "milli", "millis", "millisecond", "milliseconds"), 1e-3),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), 1.0),
    **dict.fromkeys(("m", "min", "minute", "minutes"), 60.0),
    **dict.fromkeys(("h", "hour", "hours"), 3600.0),
    **dict.fromkeys(("d", "day", "days"), 86400.0),
}
# Unit -> bytes; an amount without a unit is bytes.
_BYTES = {
    **dict.fromkeys(("", "b", "bytes"), 1),
    **dict.fromkeys(("k", "kb", "kibibytes"), 1 << 10),
    **dict.fromkeys(("m", "mb", "mebibytes"), 1 << 20),
    **dict.fromkeys(("g", "gb", "gibibytes"), 1 << 30),
    **dict.fromkeys(("t", "tb", "tebibytes"), 1 << 40),
}
_AMOUNT = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([A-Za-z]*)\s*")


def duration_s(text: str) -> float:
    """Return the seconds of a text such as ``5 min`` or ``10 s``."""
    amount, unit = _amount(text)
    return amount * _SECONDS[unit]


def memory_bytes(text: str) -> int:
    """Return the bytes of a text such as ``2 gb``."""
    amount, unit = _amount(text)
    return int(amount * _BYTES[unit])


def boolean(text: str) -> bool:
    """Return whether a text is ``true``; anything but true and false is refused."""
    return {"true": True, "false": False}[text.strip().lower()]


def strings(text: str) -> tuple[str, ...]:
    """Return the parts of a text separated by semicolons."""
    return tuple(part.strip() for part in text.split(";") if part.strip())


def read(kind: Kind, raw: object) -> Value:
    """Return the value of an option; numbers, booleans and lists may come already parsed (a duration in seconds).

    Raises:
        ValueError: the value is not of the kind.
    """
    try:
        return _READERS[kind](raw)
    except (KeyError, TypeError, ValueError, OverflowError):
        raise ValueError(f"{raw!r} is not a {kind}") from None


def _amount(text: str) -> tuple[float, str]:
    result = _AMOUNT.fullmatch(text)
    if result is None:
        raise ValueError(text)
    return float(result[1]), result[2].lower()


def _number(raw: object) -> float:
    if isinstance(raw, bool) or not isinstance(raw, (int, float, str)):
        raise TypeError(raw)
    number = float(raw)
    if math.isnan(number):
        raise ValueError(raw)
    return number


def _integer(raw: object) -> int:
    number = _number(raw)
    if number != int(number):
        raise ValueError(raw)
    return int(number)


def _list(raw: object) -> tuple[str, ...]:
    if isinstance(raw, str):
        return strings(raw)
    if isinstance(raw, Sequence) and all(isinstance(part, str) for part in raw):
        return tuple(raw)
    raise TypeError(raw)


def _text(raw: object) -> str:
    if not isinstance(raw, str):
        raise TypeError(raw)
    return raw.strip()


def _boolean(raw: object) -> bool:
    return raw if isinstance(raw, bool) else boolean(_text(raw))


def _duration(raw: object) -> float:
    return duration_s(raw) if isinstance(raw, str) else _number(raw)


def _memory(raw: object) -> int:
    return memory_bytes(raw) if isinstance(raw, str) else _integer(raw)


_READERS: dict[Kind, Callable[[object], Value]] = {
    "duration": _duration,
    "boolean": _boolean,
    "integer": _integer,
    "double": _number,
    "list": _list,
    "text": _text,
    "memory": _memory,
}
