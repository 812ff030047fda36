"""What every section of the settings is made of: frozen models with bounds for numbers and rules for texts."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from include.utc import DAY_S

SLOTS_MAX = 32_768  # Flink's largest maximum parallelism
NAME = r"[A-Za-z0-9][A-Za-z0-9._-]*"


class Section(BaseModel):
    """A section; unknown keys are refused, and so are infinite numbers and NaN."""

    # What was written is shown by include/settings/refusals.py alone, which knows where a secret may stand.
    model_config = ConfigDict(
        frozen=True, extra="forbid", allow_inf_nan=False, validate_default=False, hide_input_in_errors=True
    )

    def with_values(self, values: Mapping[str, Any]) -> Self:
        """Return a copy with some keys changed, unchecked; a key of a part is written ``costs.late_weight``."""
        parts: dict[str, dict[str, Any]] = {}
        changed: dict[str, Any] = {}
        for key, value in values.items():
            part, _, rest = key.partition(".")
            if rest:
                parts.setdefault(part, {})[rest] = value
            else:
                changed[key] = value
        unknown = sorted({*parts, *changed} - type(self).model_fields.keys())
        if unknown:
            raise KeyError(f"{type(self).__name__} has no {unknown}")
        nested = {part: getattr(self, part).with_values(inside) for part, inside in parts.items()}
        return self.model_copy(update=changed | nested)


def constant(value: Any, because: str) -> Any:
    """Return a field that has one value, whatever settings say; measurements and tests hand another to its class."""
    return Field(value, frozen=True, description=because)


def must_fit(pattern: str, refusal: str) -> AfterValidator:
    """Return the rule that all of a text fits a pattern; ``refusal`` says what else it is, and what to write."""

    def check(text: str) -> str:
        if not re.fullmatch(pattern, text):
            raise ValueError(refusal)
        return text

    return AfterValidator(check)


def _usable(text: str) -> str:
    if not text.strip():
        raise ValueError("must not be empty")
    if any(ord(letter) < 32 or ord(letter) == 127 for letter in text):
        raise ValueError("must not hold control characters such as NUL or a line break")
    return text


Text = Annotated[str, AfterValidator(_usable)]
Share = Annotated[float, Field(ge=0, le=1)]
"""A number from 0 to 1."""
Weight = Annotated[float, Field(ge=0, le=1e6)]
"""A price; prices count relative to each other."""
Seconds = Annotated[float, Field(ge=0, le=30 * DAY_S)]
WholeSeconds = Annotated[int, Field(ge=0, le=30 * DAY_S)]
Hours = Annotated[float, Field(gt=0, le=8760)]
HoursOrNone = Annotated[float, Field(ge=0, le=8760)]
Days = Annotated[int, Field(ge=1, le=3660)]
