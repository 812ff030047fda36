"""Settings from environment variables: ``TIDEWISE__SECTION__KEY=value``.

Sections and keys are written in any case; names that are the user's own (clusters, jobs) exactly as in the file.  A
value is read as its key's type asks for; lists and tables are JSON.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel

from include.settings.refusals import SettingFault, key_paths, model_in, nearest_key, show_value
from include.settings.retired import list_constants
from include.settings.section import Section

PREFIX = "TIDEWISE__"
HOLD_VARIABLE = "TIDEWISE_HOLD"  # no setting: what is on hold; include/control/holds.py reads it
PAGE_TOKEN_VARIABLE = "TIDEWISE_PAGE_TOKEN"  # no setting: of `tidewise page --act`, which makes one where it is unset
_OTHERS = frozenset({"TIDEWISE_SETTINGS", "TIDEWISE_CONTTUNE_REAL_JOBS", HOLD_VARIABLE, PAGE_TOKEN_VARIABLE})
_NEAR_CLUSTER = 0.75
_NEAR = 0.9  # a Kubernetes service "tidewise" brings variables such as TIDEWISE_SERVICE_HOST, which are none of ours


class EnvironmentFaultError(ValueError):
    """A variable that cannot be used; carries the fault."""

    def __init__(self, fault: SettingFault) -> None:
        super().__init__(str(fault))


def read_environment(
    variables: Mapping[str, str], root: type[Section], names: Mapping[str, Mapping[str, object]]
) -> dict[str, Any]:
    """Return the settings that variables give, nested as in the file.

    ``names`` has those in the file of each table of sections, as ``clusters``.

    Raises:
        EnvironmentFaultError: a variable that names no key, or nearly one.
    """
    result: dict[str, Any] = {}
    for variable in sorted(variables):
        if variable.startswith(PREFIX) and _plain(variable) != HOLD_VARIABLE:
            _put(result, variable, variables[variable], root, names)
        else:
            _refuse_near_miss(variable, root)
    _check_clusters(result, variables, names.get("clusters", {}))
    return result


def _check_clusters(result: Mapping[str, Any], variables: Mapping[str, str], known: Mapping[str, object]) -> None:
    """Refuse limits, and names like a known one, for a cluster that no file has and that cannot be reached.

    A limit that is set for a misspelt cluster would miss the one that it was meant for.
    """
    for name, values in result.get("clusters", {}).items():
        if name in known or not isinstance(values, Mapping) or "rest_url" in values:
            continue
        near = get_close_matches(name.lower(), [one.lower() for one in known], n=1, cutoff=_NEAR_CLUSTER)
        if near or (known and "limits" in values):
            one = next((key for key in sorted(variables) if f"__{name}__" in key), f"{PREFIX}CLUSTERS")
            meant = [own for own in known if own.lower() in near] or sorted(known)
            raise EnvironmentFaultError(
                SettingFault(one, f"the settings file has no cluster {name!r}; write one of {', '.join(meant)}")
            )


def _put(
    result: dict[str, Any],
    variable: str,
    value: str,
    root: type[Section],
    names: Mapping[str, Mapping[str, object]],
) -> None:
    parts, at, place = variable.removeprefix(PREFIX).split("__"), result, list[str]()
    kind: type[BaseModel] = root
    while True:
        part = parts.pop(0).lower()
        if part not in kind.model_fields:
            rest = (part, *map(str.lower, parts))
            if any(one.path == (*place, *rest) for one in list_constants(root)):  # refused as one of a file is
                for section in rest[:-1]:
                    at = at.setdefault(section, {})
                at[rest[-1]] = _value(variable, value, Any)
                return
            meant = nearest_key(part, place, list(kind.model_fields), root)
            what = "key" if place else "section"
            write = _variable(meant, place)
            raise EnvironmentFaultError(SettingFault(variable, f"there is no such {what} {part!r}; write {write}"))
        place.append(part)
        annotation = kind.model_fields[part].annotation
        inside = model_in(annotation)
        if parts and get_origin(annotation) is dict:
            own = _own_name(variable, parts.pop(0), part, names.get(part, {}))
            place.append(own)
            at = at.setdefault(part, {})
            part, annotation = own, get_args(annotation)[1]
            if get_origin(annotation) is dict and parts:  # a policy's parameters
                at, annotation = at.setdefault(part, {}), Any
                part = parts.pop(0).lower()
                while parts:
                    at, part = at.setdefault(part, {}), parts.pop(0).lower()
        if not parts:
            if inside is not None and model_in(annotation) is not None and get_origin(annotation) is None:
                raise EnvironmentFaultError(
                    SettingFault(
                        variable,
                        f"names a section, not a key; write {variable}__{next(iter(inside.model_fields)).upper()}",
                    )
                )
            at[part] = _value(variable, value, annotation)
            return
        if inside is None:
            raise EnvironmentFaultError(
                SettingFault(
                    variable,
                    f"{'.'.join(place)} is a key and has none below it; write {_variable('.'.join(place), place)}",
                )
            )
        at, kind = at.setdefault(part, {}), inside


def _own_name(variable: str, name: str, table: str, known: Mapping[str, object]) -> str:
    """Return a name of the user's own; one that differs from a known one in its case alone is a slip."""
    same = [one for one in known if one.lower() == name.lower()]
    if same and name not in known:
        right = variable.replace(f"__{name}__", f"__{same[0]}__", 1)
        raise EnvironmentFaultError(
            SettingFault(variable, f"{table} has {same[0]!r}, not {name!r}: capitals count in its names; write {right}")
        )
    return name


def _value(variable: str, text: str, annotation: Any) -> Any:
    if annotation is Any:  # a parameter: its class says later of which type it is
        try:
            return json.loads(text)
        except ValueError:
            return text
    if not _is_composed(annotation):
        return None if text == "" and type(None) in get_args(annotation) else text
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        example = '["programme"]' if get_origin(annotation) is tuple else '{"cluster/job": "programme"}'
        raise EnvironmentFaultError(
            SettingFault(variable, f"is no JSON ({error}); write '{example}', say", _show_value(variable, text))
        ) from None  # the error holds the text


def _show_value(variable: str, text: str) -> str | None:
    """Return a value for the message; none where somebody may have written a secret."""
    return None if "__CONNECTION__" in variable.upper() else show_value(text)


def _is_composed(annotation: Any) -> bool:
    """Whether values of a type are written as JSON: lists, tables, and numbers in whose place a table may stand."""
    origin, parts = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _is_composed(parts[0])
    if origin in {Union, UnionType}:
        return any(map(_is_composed, parts))
    return origin in {dict, tuple, list} or model_in(annotation) is not None


def _variable(path: str, place: Sequence[str] = ()) -> str:
    """Return the variable of a key; names of the user's own, which ``place`` has in capitals, stay as they are."""
    if not path.replace(".", "_").isidentifier():
        return path
    own = {part for part in place if part != part.lower()}
    return PREFIX + "__".join(part if part in own else part.upper() for part in path.split("."))


def _refuse_near_miss(variable: str, root: type[Section]) -> None:
    """Refuse a variable that was probably meant to be one of ours."""
    if not variable.upper().startswith("TIDEWISE") or variable in _OTHERS:
        return
    meant = {_plain(_variable(path)): _variable(path) for path in key_paths(root) if "<" not in path}
    meant |= {name: name for name in ("TIDEWISE_SETTINGS", HOLD_VARIABLE)}
    plain = _plain(variable)
    for table in ("CLUSTERS", "POLICIES"):
        if plain.startswith(f"TIDEWISE_{table}_"):
            rest = variable.upper().partition(table)[2].lstrip("_")
            raise EnvironmentFaultError(SettingFault(variable, f"is not read; write {PREFIX}{table}__{rest}, say"))
    if near := get_close_matches(plain, meant, n=1, cutoff=_NEAR):
        raise EnvironmentFaultError(SettingFault(variable, f"is not read; write {meant[near[0]]}"))


def _plain(variable: str) -> str:
    return "_".join(part for part in variable.upper().split("_") if part)
