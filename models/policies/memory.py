"""A policy's memory as text, for the table that keeps it between two plans; the one place for all policies.

A memory is a frozen dataclass, or None, made of numbers, texts, enumerations, None, tuples, mappings with text keys and
further such dataclasses; no field may be either text or number, since JSON has no infinity and pydantic writes it as
``"Infinity"``.
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any, TypeVar

from pydantic import ConfigDict, TypeAdapter

T = TypeVar("T")

_CONFIG = ConfigDict(ser_json_inf_nan="strings")


def dump(memory: object) -> str:
    """Return a memory as JSON; equal memories give the same text, whatever the order of their mappings.

    Raises:
        pydantic_core.PydanticSerializationError: a value is not of the type that its field declares.

    >>> from models.control.state import UsedApproval
    >>> dump(UsedApproval("a1", float("inf")))
    '{"approval_id":"a1","until_s":"Infinity"}'
    """
    kind: Any = type(memory)
    written = _adapter(kind).dump_json((memory,), warnings="error")
    # Negative zero equals zero, so it must not make another text.
    (plain,) = json.loads(written, parse_float=lambda digits: float(digits) + 0.0)
    return json.dumps(plain, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def load(kind: type[T], text: str) -> T:
    """Return the memory that :func:`dump` wrote; of ``type(None)`` for a policy that remembers nothing.

    Fields that the text lacks get their defaults and those that ``kind`` lacks are dropped, so that a memory outlives
    an upgrade.

    Raises:
        pydantic.ValidationError: (a ValueError) the text is no memory of this kind.
    """
    wanted: Any = kind
    memory: T
    (memory,) = _adapter(wanted).validate_json(f"[{text}]")
    return memory


@lru_cache(maxsize=64)
def _adapter(kind: Any) -> TypeAdapter[Any]:
    # Inside a tuple: pydantic hands settings on to dataclasses within a type, but refuses them for a dataclass itself.
    return TypeAdapter(tuple[kind], config=_CONFIG)
