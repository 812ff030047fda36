"""The best form of each rival that the search has found, ``best_forms.toml``, and what it was found with."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.replay.rivals.rival_catalogue import FORMED
from benchmarks.replay.rivals.rival_options import CandidateForm
from include.atomic_write import write_text

BEST_FORMS = Path(__file__).parent / "best_forms.toml"
_HEADER = """# Written by `python -m benchmarks.replay.tuning`: the best of each rival's trials on the tuning pieces of
# split.toml.  cost_own and cost_best: cost over the clairvoyant's there, of its own form and of this one.
"""


@dataclass(frozen=True, slots=True)
class BestForm:
    """Result of a search.

    Attributes:
        form: the best.
        trials: that were run, the first with the rival's own form.
        cost_own, cost_best: over the clairvoyant's, mean of the tuning pieces.
    """

    form: CandidateForm
    trials: int
    cost_own: float
    cost_best: float


def read_found(path: Path = BEST_FORMS) -> dict[str, BestForm]:
    """Return candidate -> its search's result; none before the first search."""
    if not path.is_file():
        return {}
    read: Mapping[str, Mapping[str, Any]] = tomllib.loads(path.read_text(encoding="utf-8"))
    return {name: _parse(name, entry) for name, entry in read.items()}


def read_forms(path: Path = BEST_FORMS) -> dict[str, CandidateForm]:
    """Return "<candidate>_best" -> its form."""
    return {f"{name}{FORMED}": result.form for name, result in read_found(path).items()}


def write_found(result: Mapping[str, BestForm], path: Path = BEST_FORMS) -> None:
    """Write the file, sorted by name."""
    parts = [_format_entry(name, result[name]) for name in sorted(result)]
    write_text(path, _HEADER + "".join(parts))


def _parse(name: str, entry: Mapping[str, Any]) -> BestForm:
    form = CandidateForm(
        name,
        entry.get("parameters", {}),
        headroom=float(entry["headroom"]),
        scale_down_delay_s=int(entry["scale_down_delay_s"]),
        cadence_s=int(entry["cadence_s"]),
    )
    return BestForm(form, int(entry["trials"]), float(entry["cost_own"]), float(entry["cost_best"]))


def _format_entry(name: str, result: BestForm) -> str:
    form = result.form
    lines = [
        "",
        f"[{name}]",
        f"trials = {result.trials}",
        f"cost_own = {result.cost_own:.4f}",
        f"cost_best = {result.cost_best:.4f}",
        f"headroom = {form.headroom!r}",
        f"scale_down_delay_s = {form.scale_down_delay_s}",
        f"cadence_s = {form.cadence_s}",
        f"parameters = {_format_value(form.parameters)}",
    ]
    return "\n".join(lines) + "\n"


def _format_value(value: object) -> str:
    if isinstance(value, Mapping):
        pairs = ", ".join(f'"{key}" = {_format_value(one)}' for key, one in value.items())
        return f"{{ {pairs} }}" if pairs else "{}"
    if isinstance(value, bool):
        return str(value).lower()
    return f'"{value}"' if isinstance(value, str) else repr(value)
