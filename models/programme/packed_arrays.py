"""Arrays as text, small and exactly as they will be read again."""

from __future__ import annotations

import math
from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence

import numpy as np

from models.arrays import Floats

Layout = Mapping[str, tuple[tuple[int, ...], str]]
"""Name -> shape and type: ``f8``, ``f4``, or ``i2`` for thousandths."""
_THOUSANDTHS = 1000.0
_NOTHING = -32768


def pack(arrays: Sequence[Floats], layout: Layout) -> str:
    """Return arrays as text, in the order of their layout.

    >>> layout = {"a": ((2,), "i2"), "b": ((1,), "f8")}
    >>> [one.tolist() for one in unpack(pack([np.array([1.2344, np.nan]), np.array([7.0])], layout), layout)]
    [[1.234, nan], [7.0]]
    """
    parts = []
    for values, (_, kind) in zip(arrays, layout.values(), strict=True):
        if kind == "i2":
            coded = np.clip(np.rint(np.asarray(values, float) * _THOUSANDTHS), _NOTHING + 1, -_NOTHING - 1)
            parts.append(np.where(np.isnan(coded), _NOTHING, coded).astype("<i2").tobytes())
        else:
            parts.append(np.asarray(values).astype("<" + kind).tobytes())
    return b64encode(b"".join(parts)).decode("ascii")


def unpack(text: str, layout: Layout) -> list[Floats]:
    """Return the arrays that :func:`pack` wrote.

    Raises:
        ValueError: the text is of another layout.
    """
    content, place, arrays = b64decode(text, validate=True), 0, []
    for shape, kind in layout.values():
        count = math.prod(shape)
        size = count * np.dtype(kind).itemsize
        raw = np.frombuffer(content[place : place + size], "<" + kind)
        if len(raw) != count:
            raise ValueError(f"packed arrays of {len(content)} bytes are not of this layout")
        place += size
        values = raw.astype(float)
        if kind == "i2":
            values = np.where(raw == _NOTHING, np.nan, values / _THOUSANDTHS)
        arrays.append(values.reshape(shape))
    if place != len(content):
        raise ValueError(f"packed arrays of {len(content)} bytes are not of this layout")
    return arrays
