"""What strangers put where something else belongs."""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator
from typing import Any

VALUES: list[Any] = [
    None, True, 0, -1, 1, 10**25, 10**400, 253_402_300_799_999, 0.5, 1e308, -1e300, float("nan"), float("inf"),
    "", " ", "NaN", "x", "200", "\ud83d", "\x00", "\n", [], {}, [None], [[]], {"id": None}, {"id": "1" * 32},
]  # fmt: skip
NAMES = [
    "", " ", "x", "job 0", "Foo$$Lambda$14/0x00$x", "it's \"quoted\"", "<script>alert(1)</script>", "💥 émoji",
    "a/b", "..", "\\", "%s%d{0}", "n" * 4096, "Source: orders", "\x00", "\ud83d", "x (11111111)", "line\nbreak",
]  # fmt: skip
IDS = [None, "", "short", "A" * 32, "g" * 32, "1" * 31, "1" * 33, "1" * 32, 1, "0" * 32]
TIMES_MS = [
    0, -1, 1, 10**9, 1_795_560_000, 1_795_560_000_000_000, 253_402_300_799_999, 253_402_300_800_000, 2**63 - 1, 2**63,
    10**400, 1.5, "soon", None, 4_102_444_800_000,
]  # fmt: skip


def places(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the way to every place inside a decoded text."""
    if at:
        yield at
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, one in inner:
        yield from places(one, (*at, key))


def put(random_: random.Random, value: Any, choices: list[Any], where: Any = lambda way: True) -> Any:
    """Return a value with something else in one of the places that ``where`` allows; as it is when there is none."""
    changed = copy.deepcopy(value)
    allowed = [way for way in places(changed) if where(way)]
    if not allowed:
        return changed
    *way, last = random_.choice(allowed)
    inside = changed
    for key in way:
        inside = inside[key]
    inside[last] = copy.deepcopy(random_.choice(choices))
    return changed


def drop(random_: random.Random, value: Any) -> Any:
    """Return a value without one of its parts."""
    changed = copy.deepcopy(value)
    allowed = list(places(changed))
    if not allowed:
        return changed
    *way, last = random_.choice(allowed)
    inside = changed
    for key in way:
        inside = inside[key]
    del inside[last]
    return changed
