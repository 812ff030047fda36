"""Facts as JSON, with a schema that stays: names of fields as in :mod:`fleet.facts`, times as ISO 8601 in UTC.

A field ``at_s`` becomes ``at``. A new field may come; none goes and none changes its meaning without another version.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime
from typing import Any

VERSION = 1
_TIMES = ("at_s", "since_s", "until_s", "as_of_s")


def to_json(kind: str, content: Mapping[str, Any]) -> str:
    """Return what a command prints: the name and version of its schema, then its content."""
    document = {"schema": f"tidewise.{kind}/{VERSION}", **dict(_field_of(*one) for one in content.items())}
    return json.dumps(document, ensure_ascii=False, indent=2, allow_nan=False)


def to_plain(value: Any) -> Any:
    """Return facts as JSON can hold them; a number that is none becomes null."""
    if is_dataclass(value) and not isinstance(value, type):
        return dict(_field_of(one.name, getattr(value, one.name)) for one in fields(value))
    if isinstance(value, Mapping):
        return {str(name): to_plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [to_plain(one) for one in value]
    if isinstance(value, datetime):
        return format_time(value.timestamp())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, str | int | float | bool | None) else str(value)


def format_time(at_s: float) -> str:
    """Return epoch seconds as ISO 8601."""
    return datetime.fromtimestamp(at_s, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _field_of(name: str, value: Any) -> tuple[str, Any]:
    if name.endswith(_TIMES) and isinstance(value, int | float | None):
        return name.removesuffix("_s"), None if value is None or not math.isfinite(value) else format_time(value)
    return name, to_plain(value)
