"""Parameters of policies: the dataclass that a policy's entry names, filled from ``[policies.<name>]`` and checked."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import fields
from functools import cache
from typing import Any

from pydantic import ConfigDict, TypeAdapter

from include.policy_catalogue import entry_of, import_object

_CONFIG = ConfigDict(extra="forbid", allow_inf_nan=False)


class NoParametersError(ValueError):
    """A policy without parameters was given some."""


def parameters_class(name: str) -> type[Any] | None:
    """Return the class of a policy's parameters; None for a policy without any."""
    path = entry_of(name).parameters
    return import_object(path) if path else None


def read_parameters(name: str, given: Mapping[str, object]) -> Any:
    """Return a policy's parameters: its own presets, overridden by those that are given; None for one without any.

    Raises:
        NoParametersError: there are none to give.
        pydantic.ValidationError: (a ValueError) one is not known or out of range.
        ValueError: they do not go together.
    """
    kind: Any = parameters_class(name)
    if kind is None:
        if given:
            raise NoParametersError(f"policy {name} has no parameters; remove them")
        return None
    if fixed := sorted(one.name for one in fields(kind) if one.name in given and not one.metadata.get("setting", True)):
        raise NoParametersError(f"{fixed[0]} of policy {name} is no setting; remove it")
    # Inside a tuple: pydantic refuses settings for a dataclass itself, and hands them on to one within a type.
    (made,) = _adapter(kind).validate_python([{**entry_of(name).preset, **given}])
    if hasattr(made, "check"):
        made.check()
    return made


@cache
def _adapter(kind: Hashable) -> TypeAdapter[Any]:
    wanted: Any = kind
    return TypeAdapter(tuple[wanted], config=_CONFIG)
