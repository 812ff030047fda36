"""When the next steps are due, in a small file: the apply DAG reads it every 5 minutes without starting Spark.

The plan stage writes ``agenda.json``, the apply stage ``agenda_done.json``; neither writes the other's, so a new plan
is never hidden by an apply that was still at work on the old one.  Whatever cannot be read counts as due: Spark then
looks into the tables, which alone decide.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from include.atomic_write import write_json
from include.settings import Settings
from include.utc import IntervalError, format_utc, parse_utc

AGENDA = "agenda.json"
DONE = "agenda_done.json"


@dataclass(frozen=True, slots=True)
class Agenda:
    """The times at which steps of one plan are to be applied.

    Attributes:
        as_of: of the plan.
        apply_at: ascending.
    """

    as_of: datetime
    apply_at: tuple[datetime, ...]


def write_agenda(settings: Settings, as_of: datetime, apply_at: Iterable[datetime]) -> None:
    """Write the agenda of a plan."""
    times = [format_utc(timestamp) for timestamp in sorted(apply_at)]
    write_json(Path(settings.paths.out) / AGENDA, {"as_of": format_utc(as_of), "apply_at": times})


def remove_agenda(settings: Settings) -> None:
    """Take the agenda away before its table is rewritten: without one, everything may be due."""
    (Path(settings.paths.out) / AGENDA).unlink(missing_ok=True)


def write_done(settings: Settings, plan_as_of: datetime, until: datetime) -> None:
    """Record that the steps of a plan were dealt with up to and including a time."""
    done = {"plan_as_of": format_utc(plan_as_of), "until": format_utc(until)}
    write_json(Path(settings.paths.out) / DONE, done)


def read_agenda(settings: Settings) -> Agenda | None:
    """Return the agenda; None when it is missing or cannot be read."""
    try:
        found = json.loads((Path(settings.paths.out) / AGENDA).read_text())
        return Agenda(parse_utc(found["as_of"]), tuple(map(parse_utc, found["apply_at"])))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, IntervalError):
        return None


def _done_until(settings: Settings, plan_as_of: datetime) -> datetime | None:
    try:
        found = json.loads((Path(settings.paths.out) / DONE).read_text())
        same_plan = parse_utc(found["plan_as_of"]) == plan_as_of
        return parse_utc(found["until"]) if same_plan else None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, IntervalError):
        return None


def due(settings: Settings, as_of: datetime) -> bool:
    """Whether a step may be due at ``as_of``: only then is the apply stage worth starting."""
    agenda = read_agenda(settings)
    if agenda is None:
        return True
    until = _done_until(settings, agenda.as_of)
    return any(timestamp <= as_of and (until is None or timestamp > until) for timestamp in agenda.apply_at)
