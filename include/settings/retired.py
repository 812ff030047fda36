"""Keys that settings once had: what was moved, and what became a constant and why."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from include.settings.refusals import MOVED, SettingFault, model_in, show_value, write_path

Path = tuple[str, ...]
_OF_RIVALS = "only policies of lab/ that plan ahead ask it, and their published costs are with this value"
_RIVALS: Mapping[str, Mapping[str, object]] = {
    "planner": {"load_quantile": 0.9},
    "planner.costs": {
        **{"rescale_margin": 3.0, "failure_margin": 2.0, "recovery_quantile": 0.5},
        **{"overload_tolerance": 0.0, "overload_late_share": 0.06, "overload_slots_share": 0.3},
    },
    "planner.timing": {"lead_margin_s": 60.0, "max_lead_s": 1800},
    "planner.reactive": {
        **{"utilisation_max": 1.05, "lag_s": 15.0, "overload": 1.1, "hold_s": 0, "utilisation_target": 0.9},
        **{"rescales_for_catch_up": True, "rescales_while_restarting": True, "scale_down_margin": 1.0},
        **{"unplanned_utilisation_target": 0.85, "unplanned_utilisation_max": 0.95},
    },
    "forecast": {"plan_error_max": 0.15},
}
"""Section -> constants of policies that went to the laboratory, as lab/scheduling/planner_settings.py has them."""
_GONE = ("planner", "reactive")
"""The section of which nothing is left."""


@dataclass(frozen=True, slots=True)
class Constant:
    """A key that has one value.

    Attributes:
        path: its sections, and itself; ``<name>`` stands for a name of the user's own.
        value: that it has.
        because: why nobody needs another one.
    """

    path: Path
    value: object
    because: str

    def refuse(self, path: Path, given: object) -> SettingFault:
        """Return the fault of settings that set it."""
        reason = f"is a constant now: {write_constant(self.value)}, because {self.because}"
        return SettingFault(
            write_path(path), f"{reason}; remove it (tidewise settings --migrate does)", show_value(given)
        )


def write_constant(value: object) -> str:
    """Return the value of a constant as a person writes it."""
    return f"{value:g}" if isinstance(value, float) else show_value(value)


def list_constants(model: type[BaseModel]) -> Iterator[Constant]:
    """Yield what became a constant: of a settings' tree, and of policies that went to the laboratory."""
    yield from _list_frozen(model)
    for section, values in _RIVALS.items():
        yield from (Constant((*section.split("."), key), value, _OF_RIVALS) for key, value in values.items())


def _list_frozen(model: type[BaseModel], within: Path = (), because: str | None = None) -> Iterator[Constant]:
    """Yield the frozen keys of a model; that a whole section is frozen is the reason of each of its keys."""
    for name, field in model.model_fields.items():
        inside, why = model_in(field.annotation), field.description if field.frozen else because
        path = (*within, name) if inside is None or field.annotation is inside else (*within, name, "<name>")
        if inside is not None:
            yield from _list_frozen(inside, path, why)
        elif why:
            yield Constant(path, field.get_default(call_default_factory=True), why)


def find_constants(values: Mapping[str, Any], model: type[BaseModel]) -> Iterator[tuple[Path, SettingFault, bool]]:
    """Yield path and fault of each key of nested values that became a constant, and whether it says another value."""
    for one in list_constants(model):
        for path, given in _matches(values, one.path):
            yield path, one.refuse(path, given), given != one.value


def drop_retired(values: Any, within: Path = ()) -> Any:
    """Return nested values without the constants that no section has any more; what is no table as it is."""
    if not isinstance(values, Mapping):
        return values
    retired = _RIVALS.get(".".join(within), {})
    result = {key: drop_retired(value, (*within, key)) for key, value in values.items() if key not in retired}
    return {key: value for key, value in result.items() if value != {} or (*within, key) != _GONE}


def find_moved(values: Mapping[str, Any], within: Path = ()) -> Iterator[tuple[Path, Path]]:
    """Yield path and present path of each key of nested values that is written otherwise now."""
    for key, value in values.items():
        path = (*within, key)
        if isinstance(value, Mapping):
            yield from find_moved(value, path)
        elif (place := MOVED.get(write_path(path))) is not None:
            yield path, tuple(place.split("."))
        elif key in MOVED:
            yield path, (*within, *MOVED[key].split("."))


def _matches(values: Any, pattern: Path) -> Iterator[tuple[Path, object]]:
    if not pattern:
        yield (), values
    elif isinstance(values, Mapping):
        first, *rest = pattern
        for name in values if first == "<name>" else {first} & values.keys():
            yield from (((name, *path), given) for path, given in _matches(values[name], tuple(rest)))
