"""``tidewise doctor``: tell whether Tidewise will work here; exit code 1 when something does not."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from cli.arguments import CommandParser
from cli.command import command
from cli.doctor.checkup import CheckOptions, run_checks
from cli.doctor.findings import Finding, Level, count_levels, hide_credentials
from cli.run_table import open_console

_STYLES = {Level.OK: "green", Level.WARNING: "yellow", Level.ERROR: "bold red"}


def findings_table(findings: Sequence[Finding]) -> Table:
    """Return the findings as a table, a section for each part."""
    table = Table(show_header=True, header_style="bold", box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for title in ("", "part", "check"):
        table.add_column(title, no_wrap=bool(not title))
    table.add_column("found, and what to do", ratio=1)
    last = ""
    for one in findings:
        reported = Text(hide_credentials(one.text))
        if one.remedy:
            reported.append(f"\n-> {hide_credentials(one.remedy)}", style="bold")
        part = Text(one.part if one.part != last else "")
        table.add_row(Text(str(one.level), style=_STYLES[one.level]), part, Text(one.check), reported)
        last = one.part
    return table


def _add_arguments(parser: CommandParser) -> None:
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of a table")
    parser.add_argument("--cluster", action="append", default=[], help="only this cluster; may be given several times")
    parser.add_argument("--prometheus", help="address of a Prometheus-compatible server, with its prefix")
    parser.add_argument("--kafka", help="brokers, host:port separated by commas")
    parser.add_argument("--no-airflow", action="store_true", help="do not start Airflow, which takes ten seconds")


def run(options: argparse.Namespace, _: float) -> int:
    """Check and print; returns the exit code."""
    extent = CheckOptions(options.cluster, options.prometheus, options.kafka, with_airflow=not options.no_airflow)
    progress = Console(stderr=True)
    with progress.status("doctor: looking ...") as status:

        def show(name: str, result: list[Finding]) -> None:
            status.update(f"doctor: {name} done, {len(result)} findings; looking further ...")

        findings = run_checks(extent, show)
    counts = count_levels(findings)
    if options.json:
        print(json.dumps({"counts": counts, "findings": [one.to_json() for one in findings]}, indent=1))
    else:
        open_console().print(findings_table(findings))
        print(f"doctor: {counts[Level.OK]} ok, {counts[Level.WARNING]} warnings, {counts[Level.ERROR]} errors")
    return 1 if counts[Level.ERROR] else 0


main = command("doctor", __doc__, _add_arguments, run)
