"""Write down that a target of the Makefile has passed: docs/runs_by_hand.toml, and from it docs/reliability.md."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

from cli.arguments import CommandParser
from include.atomic_write import write_text
from include.settings import PROJECT
from tools.promises import RUNS, HandRun, read_runs
from tools.reliability_doc import write_pages

TITLE = "# The last run of each target that make test leaves out; the targets write it (tools/record_run.py).\n"


def main(argv: Sequence[str]) -> int:
    """Write the row of a target; returns the exit code."""
    parser = CommandParser(prog="record_run", description=__doc__)
    parser.add_argument("target", help="of the Makefile")
    parser.add_argument("--said", default="passed", help="the last line of what it printed")
    arguments = parser.parse_args(argv)
    record_run(arguments.target, arguments.said, datetime.now(UTC), RUNS)
    write_pages()
    return 0


def record_run(target: str, said: str, now: datetime, path: Path) -> None:
    """Put a run in the place of the one before.

    Args:
        target: of the Makefile.
        said: its last line.
        now: when it ended.
        path: of the file.
    """
    commit = subprocess.run(
        ["git", "rev-parse", "--short=8", "HEAD"], cwd=PROJECT, capture_output=True, text=True, check=True
    ).stdout.strip()
    runs = {**read_runs(path), target: HandRun(commit, f"{now:%Y-%m-%d}", said)}
    rows = [
        f"\n[{json.dumps(name)}]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in asdict(run).items())
        for name, run in sorted(runs.items())
    ]
    write_text(path, TITLE + "".join(rows))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
