"""``make docs``: docs/settings.md from the settings, lab/settings.md from the policies' parameters."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, fields, replace
from datetime import datetime
from enum import Enum
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from include.policy_catalogue import PolicyEntry, catalogue
from include.policy_parameters import parameters_class
from include.settings import PROJECT, Settings
from include.settings.refusals import model_in
from include.settings.retired import write_constant
from include.settings.section import Section
from tools.markdown import format_list

PAGE, LAB_PAGE = PROJECT / "docs" / "settings.md", PROJECT / "lab" / "settings.md"
_HEAD = """# Settings

<!-- Made by `make docs` from `include/settings`; edit that. -->

A key stands with its default; without one it is unset or empty. `tidewise.toml` in the working directory, or the
file that `TIDEWISE_SETTINGS` names, overrides the defaults, and a variable overrides the file:
`TIDEWISE__PLANNER__COSTS__LATE_WEIGHT=4` is `late_weight` in `[planner.costs]`. Names of clusters and jobs are written
exactly, capitals included. What cannot be used is refused when the settings are loaded, in one line with the key, the
value, why, and what to write.

Units stand at the end of a key: `_s` seconds, `_h` hours, `_days` days; a share is from 0 to 1. `1..8` are the least
and the largest value, `>0..8` leaves the least out. A heading with several sections has the keys of each.
`[profiling]`, `[backtest]` and `[advise]` are on the [laboratory's page](../lab/settings.md).
"""
_POLICIES = """## Policies

[Choosing a policy](policies.md#choosing-a-policy) says when each decides. A section `[policies.<name>]` sets a policy's
[parameters](../lab/settings.md).

A policy of your own is a Python package with an entry point of the group `tidewise.policies`: its name is the policy's,
its value `module:ENTRY` names a `PolicyEntry` (`include/policy_catalogue.py`). Install it where Airflow and Spark run.
"""
_RETIRED = """## Keys that went

A key that has moved is refused with the one to write, a key that is a constant now with its value and the reason.
`tidewise settings --migrate` rewrites a file that has some.
"""
_LAB_HEAD = """# Settings of the laboratory

<!-- Made by `make docs` from `include/settings` and the policies' parameters; edit those. -->

Sections of the [settings](../docs/settings.md) that the laboratory's stages and policies alone ask.
"""
_PARAMETERS = """# Parameters of the policies

Keys of the sections `[policies.<name>]` of the [settings](../docs/settings.md#policies).
"""
LABORATORY = {"profiling", "backtest", "advise"}
"""Sections whose stages are the laboratory's."""
LEVELS = {"limits": "fleet", "clusters.<name>.limits": "cluster", "limits.jobs.<name>": "job"}
_LIMITS = ("gt", "ge", "lt", "le")
_PLAIN = {"", "list", "number", "table", "text", "time", "true or false"}
"""What a default tells of what is allowed."""
_WITHOUT_VALUE = {"unset", "empty"}
"""Defaults that no settings file can have."""


@dataclass(frozen=True, slots=True)
class Key:
    """One line of a table."""

    name: str
    default: str
    allowed: str
    meaning: str


def page() -> str:
    """Return the whole page."""
    parts = [_HEAD, *_describe_sections(of_laboratory=False), _POLICIES]
    rows = ((f"`{name}`", entry.title) for name, entry in catalogue().items())
    return _join([*parts, format_list(rows), _RETIRED])


def lab_page() -> str:
    """Return the page of the laboratory's sections and of the policies' parameters."""
    parts = [_LAB_HEAD, *_describe_sections(of_laboratory=True), _PARAMETERS]
    for name, kind, users in parameter_classes():
        parts += [f"## [policies.{name}]", *_presets(users), _keys(parameter_keys(kind))]
    return _join(parts)


def _join(parts: Iterable[str]) -> str:
    return "\n\n".join(part.strip("\n") for part in parts) + "\n"


def _describe_sections(*, of_laboratory: bool) -> Iterator[str]:
    """Yield heading, sentence and table of each section; one table for what several levels have."""
    for model, paths in sections().items():
        if of_laboratory != (paths[0].split(".")[0] in LABORATORY):
            continue
        base = level_base(model)
        levels = sorted((each for each in sections() if level_base(each) is base), key=_order)
        if model is levels[-1]:
            heads = paths if base is model else [sections()[each][0] for each in levels]
            if own := list(_keys_of(levels)):
                yield from (f"## {', '.join(f'[{path}]' for path in heads)}", _sentence(base), _keys(own))


def level_base(model: type[BaseModel]) -> type[BaseModel]:
    """Return what the levels of limits have in common; any other section itself."""
    return model if model.__mro__[1] is Section else model.__mro__[1]


def _order(level: type[BaseModel]) -> int:
    path = sections()[level][0]
    return [*LEVELS].index(path) if path in LEVELS else 0


def _keys_of(levels: Sequence[type[BaseModel]]) -> Iterator[Key]:
    for name in dict.fromkeys(name for level in levels for name in level.model_fields):
        having = [level for level in levels if name in level.model_fields]
        if (key := _setting(name, having[0].model_fields[name])) is not None:
            places = ", ".join(LEVELS[sections()[level][0]] for level in having) if len(having) < len(levels) else ""
            yield replace(key, meaning=key.meaning + (f"; may be set at: {places}" if places else ""))


def sections() -> dict[type[BaseModel], list[str]]:
    """Return each class of sections -> its sections, in the order of the settings, constants apart."""
    result: dict[type[BaseModel], list[str]] = {}

    def add(model: type[BaseModel], path: str) -> None:
        if path:
            result.setdefault(model, []).append(path)
        for name, field in model.model_fields.items():
            inside = model_in(field.annotation)
            if inside is not None and not field.frozen:
                table = "" if field.annotation is inside else ".<name>"
                add(inside, f"{path}.{name}{table}".lstrip("."))

    add(Settings, "")
    return result


def _setting(name: str, field: FieldInfo) -> Key | None:
    if field.frozen or model_in(field.annotation) is not None:
        return None
    default = "required" if field.is_required() else _value(field.get_default(call_default_factory=True))
    return Key(name, default, _describe_allowed(field.annotation, field.metadata, default), field.description or "")


def parameter_classes() -> Iterator[tuple[str, type[Any], dict[str, PolicyEntry]]]:
    """Yield the name to head each class of parameters with, the class, and the policies that have it."""
    users: dict[type[Any], dict[str, PolicyEntry]] = {}
    for name, entry in catalogue().items():
        kind = parameters_class(name)
        if kind is not None:
            users.setdefault(kind, {})[name] = entry
    for kind, entries in users.items():
        yield "], [policies.".join(entries), kind, entries


def parameter_keys(kind: type[Any], within: str = "") -> Iterator[Key]:
    """Yield the parameters of a class, those of its parts as ``part.key``."""
    hints = get_type_hints(kind, include_extras=True)
    for field in fields(kind):
        if not field.metadata.get("setting", True):
            continue
        base, metadata = _plain(hints[field.name])
        about = next((one for one in metadata if isinstance(one, FieldInfo)), None)
        if hasattr(base, "__dataclass_fields__"):
            yield from parameter_keys(base, f"{within}{field.name}.")
            continue
        limits, meaning = (about.metadata, about.description or "") if about else ([], "")
        default = _default(field)
        yield Key(f"{within}{field.name}", default, _describe_allowed(base, limits, default), meaning)
        if get_origin(base) is tuple and hasattr(get_args(base)[0], "__dataclass_fields__"):
            yield from parameter_keys(get_args(base)[0], f"{within}{field.name}[].")


def _default(field: Field[Any]) -> str:
    if field.default is not MISSING:
        return _value(field.default)
    return "required" if field.default_factory is MISSING else _value(field.default_factory())


def _plain(hint: Any) -> tuple[Any, Sequence[Any]]:
    return (get_args(hint)[0], get_args(hint)[1:]) if get_origin(hint) is Annotated else (hint, ())


def _presets(users: Mapping[str, PolicyEntry]) -> Iterator[str]:
    for name, entry in users.items():
        if entry.preset:
            values = ", ".join(f"`{key} = {write_constant(value)}`" for key, value in entry.preset.items())
            yield f"`{name}` has {values} unless set."


def _describe_allowed(annotation: Any, metadata: Iterable[Any], default: str = "") -> str:
    base, inner = _plain(annotation)
    limits = _limits([*inner, *metadata])
    if get_origin(base) is Literal:
        return ", ".join(f"`{value}`" for value in get_args(base))
    if isinstance(base, type) and issubclass(base, Enum):
        return ", ".join(f"`{one.value}`" for one in base)
    if get_origin(base) in {Union, UnionType}:
        parts = [_describe_allowed(part, metadata) for part in get_args(base) if part is not NoneType]
        return " or ".join(parts) + ("; unset" if NoneType in get_args(base) and default != "unset" else "")
    kind = {bool: "true or false", int: "integer", float: "number", str: "text", datetime: "time"}.get(base, "")
    if get_origin(base) is dict:
        kind = "table"
    elif get_origin(base) is tuple:
        kind = "list of tables" if hasattr(get_args(base)[0], "__dataclass_fields__") else "list"
    if limits and kind == "number":
        kind = ""
    words = {"ge": "", "gt": ">", "le": "..", "lt": "..<"}
    bounds = "".join(f"{word}{write_constant(limits[name])}" for name, word in words.items() if name in limits)
    return " ".join(filter(None, [kind, bounds]))


def _limits(metadata: Iterable[Any]) -> dict[str, float]:
    result: dict[str, float] = {}
    for one in metadata:
        parts = one.metadata if isinstance(one, FieldInfo) else [one]
        result |= {name: getattr(part, name) for part in parts for name in _LIMITS if hasattr(part, name)}
    return result


def _value(value: object) -> str:
    if value is None:
        return "unset"
    if isinstance(value, Mapping):
        return "empty"
    return f"`{write_constant(str(value) if isinstance(value, str) else value)}`"


def _sentence(model: type[BaseModel]) -> str:
    return " ".join((model.__doc__ or "").split()).replace("``", "`")


def _keys(keys: Iterable[Key]) -> str:
    return format_list((_assign(key), _meaning(key) + ("" if _is_told(key) else f" ({key.allowed})")) for key in keys)


def _assign(key: Key) -> str:
    """Return a key with its default as a settings file has it."""
    if key.default == "required":
        return f"`{key.name}`, required"
    return f"`{key.name}`" if key.default in _WITHOUT_VALUE else f"`{key.name} = {key.default.strip('`')}`"


def _is_told(key: Key) -> bool:
    """Whether default and meaning say what is allowed."""
    values = [re.escape(value.strip("`")) for value in key.allowed.split(", ")]
    return key.allowed in _PLAIN or all(re.search(rf"\b{value}\b", key.meaning) for value in values)


def _meaning(key: Key) -> str:
    """Return what a key means without the unit that its name ends with."""
    unit, _, rest = key.meaning.partition("; ")
    return rest if rest and key.name.endswith(f"_{unit}") else key.meaning


def main(argv: Sequence[str] | None = None) -> int:
    """Write the page, or with ``--check`` say whether it is stale."""
    parser = argparse.ArgumentParser(prog="python -m tools.settings_doc", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 when the page is stale")
    made = {PAGE: page(), LAB_PAGE: lab_page()}
    stale = [path.name for path, text in made.items() if not path.is_file() or path.read_text(encoding="utf-8") != text]
    if parser.parse_args(argv).check:
        if stale:
            print(f"{', '.join(stale)}: stale; run make docs", file=sys.stderr)
        return int(bool(stale))
    for path, text in made.items():
        path.write_text(text, encoding="utf-8")
    print(f"written: {', '.join(str(path.relative_to(PROJECT)) for path in made)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
