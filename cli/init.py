"""``tidewise init``: ask for the address of a Flink cluster and write a tidewise.toml of ten lines in dry-run mode.

Settings that are there already keep every line: the cluster is added at their end, in dry-run mode whatever theirs is.
"""

from __future__ import annotations

import argparse
import re
import shutil
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from pydantic import ValidationError
from rich.console import Console

from cli.arguments import CommandParser, require_writable_file
from cli.command import command
from cli.doctor.__main__ import findings_table
from cli.doctor.cluster import check_cluster
from cli.doctor.cluster_access import check_address
from cli.doctor.findings import Level
from cli.doctor.probe import Probe
from cli.run_table import open_console
from include.atomic_write import write_text
from include.settings import PROJECT, Cluster
from include.settings.loading import check_settings
from include.settings.names import check_cluster_name
from include.settings.refusals import faults_of

SECTION = """[clusters.{name}]
rest_url = "{rest_url}"   # the JobManager's REST API
slots_max = {slots}   # most slots of one job{has}
{paid}"""
WHOLE = f"""# Tidewise settings: docs/settings.md has every key, and `tidewise doctor` says whether these work here.
{SECTION}
[limits]
mode = "dry-run"   # nothing is sent; later "approve": each step waits for a person (docs/connect.md)

[planner]
goal = "balanced"   # or "cheap", "on_time": what a late minute weighs against slots
"""
OWN_MODE = """
[clusters.{name}.limits]
mode = "dry-run"        # nothing is sent to this cluster, whatever [limits] says of the others
"""
FILE = "tidewise.toml"
DEFAULT_URL = "http://localhost:8081"


class InitError(RuntimeError):
    """The file was not written; the message says what to do."""


@dataclass(frozen=True, slots=True)
class InitOptions:
    """What the file is made from.

    Attributes:
        slots: that the cluster has; None when it was not asked.
        taskmanager_slots: of a TaskManager where a single job runs, which pays whole ones; else 1.
    """

    rest_url: str
    name: str
    slots: int | None
    taskmanager_slots: int = 1


def suggest_name(rest_url: str) -> str:
    """Return a name for a cluster from its address."""
    host = urlsplit(rest_url).hostname or ""
    first = re.sub(r"-(rest|jobmanager)$", "", host.split(".")[0])
    return first if re.fullmatch(r"[a-z][a-z0-9-]*", first) and first != "localhost" else "flink"


def check_url(rest_url: str) -> str:
    """Return an address that the settings accept.

    Raises:
        InitError: they do not; with what to write.
    """
    try:
        Cluster(rest_url=rest_url)
    except ValidationError as refused:
        raise InitError("; ".join(map(str, faults_of(refused, root=Cluster)))) from refused
    return rest_url.rstrip("/")


def ask_slots(rest_url: str) -> tuple[int, int]:
    """Return how many slots the cluster has, and of how many a job pays whole TaskManagers.

    Raises:
        InitError: no Flink answers there.
    """
    probe = Probe(rest_url)
    config, finding = check_address("cluster", probe)
    if config is None:
        raise InitError(f"{finding.text}: {finding.remedy} (--offline writes the file without asking)")
    overview = probe.get_json("/overview", {})
    total, managers = int(overview.get("slots-total", 0)), int(overview.get("taskmanagers", 0))
    is_alone = overview.get("jobs-running") == 1 and managers > 0 and total % managers == 0
    return max(total, 1), max(total // managers, 1) if is_alone else 1


def ask_person(options: argparse.Namespace, ask: Callable[[str], str]) -> InitOptions:
    """Return what to write, from the flags, else from the person; ``--yes`` takes what is suggested.

    Raises:
        InitError: an answer cannot be used.
    """

    def answer(given: str | None, question: str, suggested: str) -> str:
        if given is not None or options.yes:
            return given or suggested
        return ask(f"{question} [{suggested}]: ").strip() or suggested

    rest_url = check_url(answer(options.rest_url, "Address of the JobManager's REST API", DEFAULT_URL))
    slots, of_taskmanager = (None, 1) if options.offline else ask_slots(rest_url)
    name = answer(options.name, "Name of the cluster", suggest_name(rest_url))
    try:
        check_cluster_name(name)
    except ValueError as refused:
        raise InitError(str(refused)) from refused
    return InitOptions(rest_url, name, slots, of_taskmanager)


def render(answers: InitOptions, template: str = WHOLE) -> str:
    """Return the text of the file, or of the cluster's section alone."""
    has = f"; the cluster has {answers.slots}" if answers.slots else ""
    of_one, why = answers.taskmanager_slots, "its single job pays whole TaskManagers; 1 where others may share them"
    paid = f"taskmanager_slots = {of_one}   # {why}\n" if of_one > 1 else ""
    return template.format(rest_url=answers.rest_url, name=answers.name, slots=answers.slots or 64, has=has, paid=paid)


def read_clusters(target: Path) -> set[str]:
    """Return the clusters of settings that are there.

    Raises:
        InitError: they cannot be read.
    """
    try:
        return set(tomllib.loads(target.read_text(encoding="utf-8")).get("clusters", {}))
    except (OSError, ValueError, AttributeError, TypeError) as error:
        raise InitError(f"{target} cannot be read ({error}): correct it, or pass --force to replace it") from error


def add_cluster(target: Path, answers: InitOptions) -> str:
    """Return the text of settings that are there, with one cluster more.

    Raises:
        InitError: a cluster of that name is there.
    """
    if answers.name in read_clusters(target):
        raise InitError(
            f"{target} has a cluster {answers.name} already: correct [clusters.{answers.name}] there, pass --name for "
            f"another one, or --force to replace the whole file (it is kept as {target.name}.before)"
        )
    before = target.read_text(encoding="utf-8").rstrip("\n")
    return f"{before}\n\n{render(answers, SECTION)}{OWN_MODE.format(name=answers.name)}"


def write_file(target: Path, text: str) -> None:
    """Write the file; what was there is kept beside it with ``.before`` at its end."""
    if target.exists():
        shutil.copy2(target, target.with_name(f"{target.name}.before"))
    write_text(target, text)


def run(options: argparse.Namespace, console: Console, ask: Callable[[str], str] = input) -> int:
    """Ask, write, and show what the doctor says of the cluster; returns the exit code."""
    target = require_writable_file(options.file, "--file")
    is_added = target.exists() and not options.force
    if is_added:
        read_clusters(target)  # refuses, before any question
    answers = ask_person(options, ask)
    text = add_cluster(target, answers) if is_added else render(answers)
    settings = check_settings(tomllib.loads(text))
    write_file(target, text)
    done = f"{target} written"
    if is_added:
        done = f"cluster {answers.name} added to {target} (as it was: {target.name}.before)"
    console.print(f"init: {done}, in dry-run mode: nothing is sent to Flink", highlight=False, soft_wrap=True)
    findings = [] if options.offline else check_cluster(answers.name, settings.cluster(answers.name), settings)
    if findings:
        console.print(findings_table(findings))
    if target.resolve() != (PROJECT / FILE).resolve():
        console.print(f"use it by: export TIDEWISE_SETTINGS={target.resolve()}", highlight=False, soft_wrap=True)
    console.print("next: tidewise doctor, then make ui and switch the DAGs on (docs/connect.md)", highlight=False)
    return int(any(one.level is Level.ERROR for one in findings))


def _add_arguments(parser: CommandParser) -> None:
    parser.add_argument("--rest-url", help=f"address of the JobManager's REST API, such as {DEFAULT_URL}")
    parser.add_argument("--name", help="name of the cluster; default: from the address")
    parser.add_argument("--yes", action="store_true", help="ask nothing, take what is suggested")
    parser.add_argument("--offline", action="store_true", help="do not ask the cluster whether it is there")
    parser.add_argument(
        "--force", action="store_true", help="replace a file that is there, with its clusters, and keep it beside"
    )
    parser.add_argument("--file", type=Path, default=PROJECT / FILE, help=f"file to write; default: {FILE}")


main = command(
    "init",
    __doc__,
    _add_arguments,
    lambda options, _: run(options, open_console()),
    errors=(InitError,),
    stopped="stopped, nothing was written (--yes asks nothing)",
)
