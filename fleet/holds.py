"""All holds, whoever or whatever made them: by a person, an undo, the settings, a variable, after a foreign change."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from fleet.facts import HoldFact
from fleet.log_tables import JobKey, Row, read_json
from include.control.holds import EVERYTHING, Hold, UnreadableHold, holds_of_variable
from include.control.undo_orders import UndoOrder
from include.settings import Settings
from models.control.undo import name_hold_until

Lifted = Iterable[tuple[str, str, str]]
"""Cluster, job and id of what persons have lifted."""


def list_fixed_holds(settings: Settings, variables: Mapping[str, str]) -> list[HoldFact]:
    """Return the holds of the settings and of the environment's variable."""
    levels: dict[str, tuple[str, Any]] = {
        "limits": (EVERYTHING, settings.limits),
        **{f"clusters.{name}.limits": (name, one.limits) for name, one in settings.clusters.items()},
        **{f'limits.jobs."{name}"': (name, one) for name, one in settings.limits.jobs.items()},
    }
    of_settings = [
        HoldFact("settings", scope, "", f"{key}.is_held = true", None, None, f"take {key}.is_held out of the settings")
        for key, (scope, level) in levels.items()
        if level.is_held
    ]
    of_variable = [
        HoldFact("variable", one.scope, "", one.reason, None, None, "take it out of the controller's environment")
        for one in holds_of_variable(variables, sorted(settings.clusters))
    ]
    return of_settings + of_variable


def list_holds_of_persons(holds: Iterable[Hold], orders: Sequence[UndoOrder]) -> list[HoldFact]:
    """Return the holds below the lake."""
    of_undos = [order.hold for order in orders]
    return [
        HoldFact(
            "undo" if one in of_undos else "person",
            *(one.scope, one.by, one.reason, one.since_s or None, one.until_s),
            _release_of(one),
        )
        for one in sorted(holds, key=lambda one: (one.scope, one.since_s))
    ]


def _release_of(one: Hold) -> str:
    if isinstance(one, UnreadableHold):
        return one.remedy
    return "tidewise release" if one.scope == EVERYTHING else f"tidewise release {one.scope}"


def list_holds_after_changes(last: Mapping[JobKey, Row], lifted: Lifted, now_s: float) -> list[HoldFact]:
    """Return the holds of jobs that somebody else has changed, from their last rows of the log."""
    ended = set(lifted)
    result = []
    for (cluster, job), row in sorted(last.items()):
        history = read_json(row, "history")
        until_s = _number(history.get("held_until_s"))
        if until_s is None or now_s >= until_s or (cluster, job, name_hold_until(until_s)) in ended:
            continue
        scope, because = f"{cluster}/{job}", str(history.get("held_because") or "somebody else changed the job")
        since_s = _number(history.get("last_change_at_s"))
        result.append(HoldFact("change", scope, "", because, since_s, until_s, f"tidewise release {scope}"))
    return result


def covers(hold: HoldFact, cluster: str, job: str) -> bool:
    """Whether a hold keeps requests from a job."""
    return hold.scope in {EVERYTHING, cluster, f"{cluster}/{job}"}


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) else None
