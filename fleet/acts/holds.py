"""Putting jobs on hold and letting them go on: holds of persons, and those after a foreign change."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from fleet.facts import HoldFact
from include.control.controlled_lake import is_controlled
from include.control.holds import EVERYTHING, Hold, HoldStore
from include.control.interventions import Intervention, UserAction, record_intervention
from include.control.lifted_blocks import LiftedBlock, LiftedBlockStore
from include.settings import Settings
from models.control.undo import name_hold_until


class NotControlledError(Exception):
    """It is written, but no controller seems to read it; the message is one line."""


class NotOnHoldError(ValueError):
    """Nothing has this scope; the message has what is on hold."""


def write_hold(settings: Settings, made: Hold, now_s: float) -> bool:
    """Write a hold; returns whether a controller works on this lake and will read it.

    Raises:
        StoreUnreadableError: it was not written.
    """
    HoldStore(settings.paths.lake).write(made)
    cluster = made.scope.partition("/")[0]
    return is_controlled(settings.paths.lake, cluster if cluster in settings.clusters else None, now_s)


def record_hold(settings: Settings, made: Hold) -> None:
    """Keep who has put it on hold."""
    one = Intervention(made.since_s, UserAction.HOLD, made.scope, made.by, made.reason, until_s=made.until_s)
    record_intervention(settings.paths.lake, one)


def release_holds(
    settings: Settings,
    holds: Collection[HoldFact],
    scopes: Collection[str],
    *,
    by: str,
    reason: str,
    now_s: float,
    is_all: bool = False,
) -> Iterator[str]:
    """End holds by their exact scope, and those after a foreign change; yield each as it has ended.

    ``holds`` are those in force. ``is_all``: every hold of a person, and none after a foreign change: nobody has put a
    job on those.

    Raises:
        NotOnHoldError: there is no such hold; nothing was released.
        StoreUnreadableError: some may still be there.
    """
    store, lake = HoldStore(settings.paths.lake), settings.paths.lake
    named = store.read_named(now_s)
    changed = {one.scope: one for one in holds if one.kind == "change"}
    held = {*(one.scope for one in named.values()), *changed}
    missing = [scope for scope in scopes if scope not in held]
    if missing:
        known = ", ".join(map(repr, sorted(held))) or "nothing"
        raise NotOnHoldError(f"{missing[0]!r} is not on hold; on hold: {known}")
    for name, one in named.items():
        if is_all or one.scope in scopes:
            store.release(name)
            yield name_hold(one)
            record_intervention(lake, Intervention(now_s, UserAction.RELEASE, one.scope, by, reason, name_hold(one)))
    for scope in [scope for scope in changed if scope in scopes]:
        _release_change(lake, changed[scope], by, now_s)
        detail = f"left alone since {changed[scope].reason}"
        yield f"{scope}, {detail}"
        record_intervention(lake, Intervention(now_s, UserAction.RELEASE, scope, by, reason, detail))


def name_hold(one: Hold) -> str:
    """Return what is held, by whom and why."""
    what = "everything" if one.scope == EVERYTHING else one.scope
    by = f" by {one.by}" if one.by else ""
    return f"{what}, held{by}{f': {one.reason}' if one.reason else ''}"


def _release_change(lake: str, one: HoldFact, by: str, now_s: float) -> None:
    cluster, _, job = one.scope.partition("/")
    LiftedBlockStore(lake).write(LiftedBlock(cluster, job, name_hold_until(one.until_s or 0.0), by, now_s))
