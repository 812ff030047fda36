"""Faults in settings as one line each: the key, its value, why it cannot be used, and what to write."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from datetime import date
from difflib import get_close_matches
from enum import Enum
from typing import Any, get_args

from pydantic import BaseModel, ValidationError

from include.policy_catalogue import nearest
from include.policy_parameters import read_parameters

_LONGEST = 120  # of a value that is shown
MOVED = {  # how keys are written now, with all sections or within their own one
    "apply.mode": "limits.mode",
    "apply.cooldown_s": "limits.cooldown_s",
    "apply_mode": "limits.mode",
    "step_up_max_slots": "steps.up_max_slots",
    "step_up_max_share": "steps.up_max_share",
    "step_down_max_slots": "steps.down_max_slots",
    "step_down_max_share": "steps.down_max_share",
}
_SLIP = 0.8  # so alike is a slip of the same section, before a key of another one
_LOGIN = re.compile(r"//.*@")
_URL_QUERY = re.compile(r"""([a-z][a-z0-9+.-]*://[^\s"'?#]*?(?:[?#]|%3f|%23))[^\s"',;]*""", re.IGNORECASE)
_QUERY = re.compile(r"([?#]|%3[fF]|%23).+", re.DOTALL)  # of a URL, or of what was meant as one
_NEVER_SHOWN = "connection"  # a section in whose place somebody may have written a secret


@dataclass(frozen=True, slots=True)
class SettingFault:
    """One key that cannot be used.

    Attributes:
        key: with its sections; empty for the whole tree.
        reason: why, with what to write.
        value: as it was written; None where it is part of the reason.
    """

    key: str
    reason: str
    value: str | None = None

    def __str__(self) -> str:
        """Return the line."""
        shown = self.key if self.value is None else f"{self.key} = {self.value}"
        line = f"{shown}: {self.reason}" if shown else self.reason
        return _URL_QUERY.sub(r"\1...", line)


def faults_of(
    error: Exception, within: tuple[str, ...] = (), root: type[BaseModel] | None = None
) -> list[SettingFault]:
    """Return the faults of a validation, in order; none for another error.

    Locations are within some sections, and start from a model, or from the parameters of the policy that ``within``
    names.
    """
    if not isinstance(error, ValidationError):
        return []
    result = []
    for one in error.errors(include_url=False):
        place = [part for part in one["loc"] if part != "[key]"]
        if root is None:
            place = place[1:]  # parameters are validated within a tuple
        result.append(_fault(one, [*within, *place], root))
    return result


def faults_of_parameters(error: ValueError, policy: str) -> list[SettingFault]:
    """Return the faults of a policy's parameters."""
    place = f"policies.{policy}"
    result = faults_of(error, ("policies", policy)) or [SettingFault(place, str(error))]
    see = f"; write what docs/settings.md allows under [{place}]"
    reported = ("; write", "; remove")
    return [
        one if any(map(one.reason.__contains__, reported)) else replace(one, reason=one.reason + see) for one in result
    ]


def _fault(one: Mapping[str, Any], place: list[Any], root: type[BaseModel] | None) -> SettingFault:
    key = write_path(place)
    kind, value = one["type"], None if _NEVER_SHOWN in place else show_value(one.get("input"))
    if kind in {"extra_forbidden", "unexpected_keyword_argument"}:
        siblings = keys_at(place[:-1], root)
        return SettingFault(
            key, f"there is no such key; write {nearest_key(str(place[-1]), place[:-1], siblings, root)}", value
        )
    if kind == "missing":
        return SettingFault(key, f"is missing; write {key} as well")
    message = str(one["msg"]).removeprefix("Value error, ")
    if kind == "value_error" and isinstance(one.get("input"), Mapping | BaseModel):  # several keys together
        return SettingFault(key, message)
    message = message.replace("Input should be", "must be").replace("String should", "must")
    if kind in {"model_type", "dict_type"}:
        message = f"must be a section; write [{key}] and its keys below"
    return SettingFault(key, message if "; write" in message else message + _instead(place, root), value)


def _instead(place: Sequence[Any], root: type[BaseModel] | None) -> str:
    """Return what to write instead: the default."""
    known = place and _NEVER_SHOWN not in place
    default = _defaults(place[:-1], root).get(str(place[-1])) if known else None
    if default is None:
        return "; remove it" if place else ""
    return f"; write {show_value(default)}, say"


def show_value(value: object) -> str:
    """Return a value as TOML writes it, on one line, shortened and without passwords."""
    if isinstance(value, bool):
        text = str(value).lower()
    elif isinstance(value, str):
        text = '"' + hide_url_secrets(value).encode("unicode_escape").decode("ascii") + '"'
    elif isinstance(value, date):
        text = value.isoformat()
    elif isinstance(value, Enum):
        text = show_value(value.value)
    elif isinstance(value, tuple | list):
        text = f"[{', '.join('[...]' if isinstance(one, tuple | list) else show_value(one) for one in value[:20])}]"
    elif isinstance(value, Mapping):
        text = "{...}" if value else "{}"
    else:
        text = repr(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def hide_url_secrets(text: str) -> str:
    """Return a text without what a URL may hold of secrets: login, query and fragment."""
    return _QUERY.sub(r"\1...", _LOGIN.sub("//...@", text))


def write_path(path: Sequence[object]) -> str:
    """Return a key with its sections as TOML writes them."""
    return ".".join(map(_write_part, path))


def _write_part(part: object) -> str:
    text = str(part)
    return text if re.fullmatch(r"[A-Za-z0-9_-]+", text) else show_value(text)


def nearest_key(key: str, section: Sequence[Any], siblings: Sequence[str], root: type[BaseModel] | None) -> str:
    """Return the key that was probably meant: of the same section, or of that name in another one."""
    where = [*map(_write_part, section)]
    if (moved := MOVED.get(".".join([*where, key]))) is not None:
        return moved
    if key in MOVED:
        return ".".join([*where, MOVED[key]])
    above = [section[:depth] for depth in range(len(section) - 1, 0, -1)]
    if (place := next((one for one in above if root and key in keys_at(one, root)), None)) is not None:
        return write_path([*place, key])
    if near := get_close_matches(key, siblings, n=1, cutoff=_SLIP):
        return ".".join([*where, near[0]])
    elsewhere = [] if root is None else [path for path in key_paths(root) if path.rpartition(".")[2] == key]
    if elsewhere:
        return min(elsewhere, key=lambda path: path.count("<"))
    result = nearest(key, siblings)
    return ".".join([*where, result]) if result in siblings else result


def keys_at(section: Sequence[Any], root: type[BaseModel] | None) -> list[str]:
    """Return the keys of a section."""
    return list(_defaults(section, root))


def _defaults(section: Sequence[Any], root: type[BaseModel] | None) -> Mapping[str, Any]:
    """Return key -> default of a section; None for a key whose default cannot be written down."""
    if root is None:
        made: Any = read_parameters(str(section[1]), {})
        for part in section[2:]:
            made = getattr(made, str(part), None)
        settable = [one for one in fields(made) if one.metadata.get("setting", True)] if is_dataclass(made) else []
        return {one.name: getattr(made, one.name) for one in settable}
    model: type[BaseModel] | None = root
    for part in section:
        field = model.model_fields.get(str(part)) if model else None
        if field is not None:
            model = model_in(field.annotation)
    result = {name: field for name, field in model.model_fields.items() if not field.frozen} if model else {}
    defaults = {name: field.get_default(call_default_factory=True) for name, field in result.items()}
    return {name: None if isinstance(one, BaseModel | Mapping) else one for name, one in defaults.items()}


def model_in(annotation: Any) -> type[BaseModel] | None:
    """Return the section that a key holds, alone or in a table of them; None for any other key."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((model for one in get_args(annotation) if (model := model_in(one))), None)


def key_paths(model: type[BaseModel], within: str = "") -> Iterator[str]:
    """Yield all keys of a tree with their sections; a table of sections has ``<name>`` in the place of each."""
    for name, field in model.model_fields.items():
        path = f"{within}{name}"
        inside = model_in(field.annotation)
        if field.frozen:
            continue
        if inside is None:
            yield path
        else:
            yield from key_paths(inside, f"{path}." if inside is field.annotation else f"{path}.<name>.")
