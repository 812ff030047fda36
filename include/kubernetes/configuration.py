"""``spec.flinkConfiguration`` of a resource: keys may be written flat or nested, as YAML allows both."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

Path = tuple[str, ...]


def flatten(configuration: object) -> dict[str, str]:
    """Return key -> value as text, as Flink reads it; what is no object has no keys."""
    return {".".join(path): _text(value) for path, value in _leaves(configuration, ())}


def find_path(configuration: object, key: str) -> Path:
    """Return where a key stands, as the keys to follow; the flat key where it stands nowhere."""
    if isinstance(configuration, Mapping) and key not in configuration:
        for head, below in configuration.items():
            if isinstance(below, Mapping) and key.startswith(f"{head}."):
                rest = key.removeprefix(f"{head}.")
                path = find_path(below, rest)
                if _has(below, path):
                    return (str(head), *path)
    return (key,)


def nest(path: Path, value: Any) -> dict[str, Any]:
    """Return an object that has one value at a path."""
    nested: Any = value
    for key in reversed(path):
        nested = {key: nested}
    return dict(nested)


def _has(configuration: object, path: Path) -> bool:
    for key in path:
        if not isinstance(configuration, Mapping) or key not in configuration:
            return False
        configuration = configuration[key]
    return True


def _leaves(result: object, path: Path) -> Iterator[tuple[Path, object]]:
    if isinstance(result, Mapping):
        for key, value in result.items():
            yield from _leaves(value, (*path, str(key)))
    elif path and result is not None:
        yield path, result


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
