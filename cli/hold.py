"""``tidewise hold`` and ``tidewise release``: stop everything, a cluster or a job at once, and let it go on again.

A hold is read by every controller before each request. It needs no restart and no setting.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime

from cli.arguments import EXIT_USAGE, CommandParser, number
from cli.embedded import below
from cli.known_jobs import UnknownNameError, check_scope, read_known_jobs
from cli.permission import require_role
from cli.printing import print_lines
from fleet.acts.holds import NotControlledError, NotOnHoldError, record_hold, release_holds, write_hold
from fleet.acts.people import NotAllowedError
from fleet.facts import HoldFact
from include.control.holds import EVERYTHING, Hold
from include.control.small_objects import StoreUnreadableError
from include.place import place
from include.settings import (
    PROJECT,
    SETTINGS_FILE_VARIABLE,
    Settings,
    SettingsError,
    load_settings,
    require_named_file,
)
from include.settings.environment import HOLD_VARIABLE
from include.spark.submission import anchor_paths

_MOST_HOURS = 24 * 365


def hold(options: argparse.Namespace, settings: Settings, now_s: float) -> None:
    """Write the holds; a name that nobody knows stops none of them, unless it is forced.

    Raises:
        UnknownNameError: a cluster or job that nobody knows.
        NotControlledError: the holds are written, but no controller works on this lake.
        NotAllowedError: this person may not hold.
        StoreUnreadableError: nothing is on hold.
    """
    by = require_role(settings.roles, "hold", options.by)
    scopes = [EVERYTHING] if options.all else options.scopes
    if not options.force:
        _check_scopes(scopes, settings, now_s)
    until_s = None if options.hours is None else now_s + 3600 * options.hours
    made = [Hold(scope, " ".join(options.reason or ()), by, now_s, until_s) for scope in scopes]
    missed: list[Hold] = []
    for one in made:
        if write_hold(settings, one, now_s):
            print_lines([f"{describe(one)}; nothing is sent from now on"])
        else:
            missed.append(one)
    for one in made:  # only when all is on hold
        record_hold(settings, one)
    if missed:
        raise NotControlledError(
            f"{'; '.join(map(describe, missed))}: written to {settings.paths.lake}, where no controller has done "
            f"anything within an hour, so it may have stopped nothing; check {SETTINGS_FILE_VARIABLE} and paths.lake, "
            f"or set {HOLD_VARIABLE}=all for the controller"
        )


def release(options: argparse.Namespace, settings: Settings, now_s: float) -> None:
    """End holds by their exact scope, those after a foreign change as well; say what is still on hold.

    Raises:
        UnknownNameError: there is no such hold.
        NotAllowedError: this person may not release.
        StoreUnreadableError: some may still be there.
    """
    by = require_role(settings.roles, "hold", options.by)
    scopes = options.scopes or ([] if options.all else [EVERYTHING])
    reason = " ".join(options.reason or ())
    held = _read_all(settings, now_s)
    try:
        for what in release_holds(settings, held, scopes, by=by, reason=reason, now_s=now_s, is_all=options.all):
            print_lines([f"released: {what}"])
    except NotOnHoldError as error:
        raise UnknownNameError(str(error)) from error
    show(settings, now_s)


def _read_all(settings: Settings, now_s: float) -> list[HoldFact]:
    from fleet.fleet_reader import FleetReader  # reads tables: not before something is on hold

    return FleetReader(settings, os.environ).read_holds(now_s)


def show(settings: Settings, now_s: float, *, as_json: bool = False) -> None:
    """Print all holds in force: of the store, of this environment, of the settings, after foreign changes.

    Raises:
        StoreUnreadableError: the holds cannot be read, so nothing is sent.
    """
    holds = _read_all(settings, now_s)
    if as_json:
        from fleet.plain import to_json

        print(to_json("holds", {"at_s": now_s, "holds": holds}))
        return
    print_lines(map(_describe_fact, holds) if holds else ["nothing is on hold"])


def _describe_fact(one: HoldFact) -> str:
    if one.kind == "settings":
        return f"the settings hold: {one.reason}"
    if one.kind == "variable":
        return Hold(one.scope, one.reason).describe()
    if one.kind == "change":
        return f"{one.scope} is left alone: {one.reason} (until {_time(one.until_s or 0.0)}); {one.release}"
    return describe(Hold(one.scope, one.reason, one.by, one.since_s or 0.0, one.until_s))


def describe(one: Hold) -> str:
    """Return a hold with its time."""
    until = "until it is released" if one.until_s is None else f"until {_time(one.until_s)}"
    since = f"since {_time(one.since_s)}, " if one.since_s else ""
    return f"{one.describe()} ({since}{until})"


def _time(at_s: float) -> str:
    return f"{datetime.fromtimestamp(at_s, UTC):%Y-%m-%d %H:%M}Z"


def _check_scopes(scopes: Sequence[str], settings: Settings, now_s: float) -> None:
    jobs = read_known_jobs(settings, now_s) if any("/" in scope for scope in scopes) else set()
    for scope in scopes:
        if scope != EVERYTHING and scope not in settings.clusters:
            check_scope(scope, settings, jobs or read_known_jobs(settings, now_s))


def _parse(argv: Sequence[str]) -> argparse.Namespace:
    parser = CommandParser(prog="hold", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    to_hold = commands.add_parser("hold", prog="tidewise hold", help="stop")
    to_release = commands.add_parser("release", prog="tidewise release", help="let go on")
    for one in (to_hold, to_release):
        one.add_argument("scopes", nargs="*", help='cluster, or "cluster/job"')
        one.add_argument("--out", type=place, help=f"folder of make run, such as {PROJECT / 'out'}; default: settings")
        one.add_argument("--reason", nargs="+", help="why, for others to read")
        one.add_argument("--by", help="who; default: your login")
    to_hold.add_argument("--hours", type=number(0, _MOST_HOURS, above=True), help="it ends by itself")
    to_hold.add_argument(
        "--force",
        action="store_true",
        help="hold a name that is not known yet, and until it is its cluster or everything",
    )
    to_hold.add_argument("--all", action="store_true", help="hold everything: all jobs of all clusters")
    to_hold.add_argument("--list", action="store_true", help="show what is on hold")
    to_hold.add_argument("--json", action="store_true", help="with --list: as JSON, with a schema that stays")
    to_release.add_argument(
        "--all", action="store_true", help="release every hold of a person; not those after a foreign change"
    )
    options = parser.parse_args(argv)
    if options.command == "hold" and not options.list and options.all == bool(options.scopes):
        parser.error('expected a cluster, "cluster/job", or --all for everything: nothing is on hold by this command')
    return options


def main(argv: Sequence[str]) -> int:
    """Hold, release or show; a failure is one message that says what to do."""
    options = _parse(argv)
    reported = f"{options.command}: " + ("FAILED: " if options.command == "hold" and not options.list else "")
    try:
        if options.out is not None:
            os.environ.update(below(options.out))
        require_named_file()
        settings, now_s = anchor_paths(load_settings()), time.time()
        if options.command == "release":
            release(options, settings, now_s)
        elif options.list:
            show(settings, now_s, as_json=options.json)
        else:
            hold(options, settings, now_s)
    except UnknownNameError as error:
        print_lines([f"{reported}{error}"], sys.stderr)
        return EXIT_USAGE
    except (NotControlledError, NotAllowedError) as error:
        print_lines([f"{reported}{error}"], sys.stderr)
        return 1
    except StoreUnreadableError as error:
        instead = f"a controller that cannot read it sends nothing; for another set {HOLD_VARIABLE}=all"
        print_lines([f"{reported}{error}; {instead}"], sys.stderr)
        return 1
    except SettingsError as error:
        print(f"{reported}{error}; a controller with these settings sends nothing", file=sys.stderr)
        return 1
    return 0
