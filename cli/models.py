"""``tidewise models``: which models are in use, what they say, and what persons have decided about them.

A decision holds for every later training until somebody lifts it: see docs/models_review.md.  Without ``--yes`` what
would change is only shown.
"""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from cli.arguments import CommandParser, UsageError
from cli.command import add_person, command, read_settings
from cli.permission import require_role
from cli.printing import print_lines
from cli.questions import cluster_and_job
from cli.setup_steps import never_silent
from include.backup.registry_copy import list_numbers
from include.control.interventions import Intervention, UserAction, record_intervention
from include.settings import Settings

if TYPE_CHECKING:
    from spark_jobs.model_acts import ActResult, ModelReview
    from spark_jobs.model_store import ModelStore

QUESTIONS = ("list", "show", "diff")
ACTS = {
    "approve": UserAction.APPROVE_MODEL,
    "reject": UserAction.REJECT_MODEL,
    "pin": UserAction.PIN_MODEL,
    "lift": UserAction.LIFT_MODEL,
    "rollback": UserAction.ROLL_BACK_MODEL,
}
OF_JOBS = ("reject", "pin", "lift")
WORDS = {
    "approve": "plans use version {0} from now on",
    "reject": "{1}version {0} is kept out of use until lifted",
    "pin": "{1}version {0} stays in use until lifted",
    "lift": "what was said of {1}version {0} no longer counts",
    "rollback": "plans go back to {2}, and the version in use is kept out of use until lifted",
}


def run(options: argparse.Namespace, now_s: float) -> int:
    """Answer a question, or do something.

    Raises:
        UsageError: it cannot be done.
        NotAllowedError: this person may not.
    """
    settings = read_settings(options)
    _check(options)
    _check_numbers(settings, options.version)
    with never_silent("models: MLflow is asked", file=sys.stderr):
        lines = _answer(settings, options, now_s)
    print_lines(lines)
    return 0


def _answer(settings: Settings, options: argparse.Namespace, now_s: float) -> list[str]:
    from mlflow.exceptions import MlflowException  # takes seconds to load

    from models.bundle.fleet_bundle import BundleError
    from spark_jobs.model_acts import ReviewRefusedError
    from spark_jobs.model_store import ModelStore

    for noisy in ("mlflow", "alembic"):
        logging.getLogger(noisy).setLevel(logging.ERROR)
    try:
        store = ModelStore(settings.mlflow)
        return _ask(store, options) if options.act in QUESTIONS else _do(store, settings, options, now_s)
    except ReviewRefusedError as error:
        raise UsageError(str(error)) from error
    except (BundleError, StopIteration, MlflowException, OSError) as error:  # whatever stands in the registry
        reported = str(error).partition("\n")[0] or "there is no bundle of models in it"
        raise UsageError(f"the models cannot be read: {reported}") from error


def _ask(store: ModelStore, options: argparse.Namespace) -> list[str]:
    from cli.model_pages import describe_difference, describe_operator, describe_version, list_lines

    if options.act == "list":
        return list_lines(store)
    if _names_job(options):
        return describe_operator(store, *options.version)
    return (describe_version if options.act == "show" else describe_difference)(store, *options.version)


def _do(store: ModelStore, settings: Settings, options: argparse.Namespace, now_s: float) -> list[str]:
    """Do what was asked for, or say what it would be; returns lines for a person."""
    from spark_jobs.model_acts import ModelReview

    by, at = require_role(settings.roles, "approve", options.by), f"{datetime.fromtimestamp(now_s, UTC):%FT%TZ}"
    acts = ModelReview(store, by, at, " ".join(options.reason or ()))
    version = options.version[0] if options.version else None
    jobs = [(cluster, job) for cluster, _, job in (name.partition("/") for name in options.job or ())]
    number = acts.find(version).number if version else None
    if not options.yes:
        of_jobs = f"{', '.join(options.job)} of " if options.job else ""
        back_to = f"version {number}" if number else "the champion before"
        again = f"nothing was done; to do it: tidewise models {_repeat(options)} --yes --reason ..."
        return [WORDS[options.act].format(number, of_jobs, back_to), again]
    done = _act(acts, options.act, version, jobs)
    _record(settings, options, by, now_s, done)
    champion = "none" if done.champion is None else f"version {done.champion.number} ({done.champion.model_version})"
    return [done.detail, f"in use: {champion}"]


def _check(options: argparse.Namespace) -> None:
    if options.act != "show" and any("/" in one for one in options.version):
        raise UsageError(f"{options.act} takes versions; a job is named by --job")
    count, most = len(options.version), 2 if options.act == "diff" or _names_job(options) else 1
    least = {"list": 0, "show": 0, "rollback": 0}.get(options.act, 1)
    if options.act == "list" and count:
        raise UsageError("list takes no version")
    if not least <= count <= most:
        wanted = "one version" if most == 1 else "one or two versions"
        raise UsageError(f"{options.act} takes {wanted}, as list shows it")
    if options.job and options.act not in OF_JOBS:
        raise UsageError(f"--job goes with {', '.join(OF_JOBS)}")


def _check_numbers(settings: Settings, versions: Sequence[str]) -> None:
    """Refuse a number that is not registered, where that is known without loading MLflow."""
    known = list_numbers(settings.mlflow)
    for name in versions:
        if known is not None and name.isdecimal() and int(name) not in known:
            from models.training.model_review import name_missing  # loads scipy

            raise UsageError(name_missing(name, known))


def _names_job(options: argparse.Namespace) -> bool:
    return options.act == "show" and "/" in "".join(options.version[:1])


def _act(acts: ModelReview, name: str, version: str | None, jobs: Sequence[tuple[str, str]]) -> ActResult:
    if name == "rollback":
        return acts.roll_back(version)
    if version is None:
        raise UsageError(f"{name} takes one version, as list shows it")
    if name == "approve":
        return acts.approve(version)
    of_jobs = {"reject": acts.reject, "pin": acts.pin, "lift": acts.lift}[name]
    return of_jobs(version, jobs)


def _repeat(options: argparse.Namespace) -> str:
    return " ".join([options.act, *options.version, *(f"--job {job}" for job in options.job or ())])


def _record(settings: Settings, options: argparse.Namespace, by: str, now_s: float, done: ActResult) -> None:
    """Write down who did what, and the version that was made for it as a training's would be."""
    reason = " ".join(options.reason or ())
    for scope in options.job or ["all"]:
        record_intervention(settings.paths.lake, Intervention(now_s, ACTS[options.act], scope, by, reason, done.detail))
    if done.made is not None:
        from cli.model_pages import write_made  # reads tables

        write_made(settings.paths.lake, done, datetime.fromtimestamp(now_s, UTC))


def _add_arguments(parser: CommandParser) -> None:
    parser.add_argument("act", choices=(*QUESTIONS, *ACTS), help="what to ask or to do")
    parser.add_argument(
        "version",
        nargs="*",
        help="number or model version; show: also cluster/job and an operator; default the champion",
    )
    parser.add_argument(
        "--job", action="append", type=cluster_and_job, help="cluster/job: reject, pin or lift it alone"
    )
    parser.add_argument("--yes", action="store_true", help="do it; without, it is only shown")
    add_person(parser)


main = command("models", __doc__, _add_arguments, run, reads=True, failed="NOTHING WAS DONE: ")
