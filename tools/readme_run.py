"""``make docs``: README's picture and what a run came to, from ``out`` after ``make run`` with the default policy."""

from __future__ import annotations

import hashlib
import html
import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from textwrap import fill
from typing import Any

from cli.arguments import CommandParser
from cli.run import describe_outcome
from include.atomic_write import write_text
from include.settings import PROJECT, Settings
from page.rendering import anchor_of
from tools.marked_page import put_between_marks

README = PROJECT / "README.md"
PICTURE = PROJECT / "docs" / "images" / "report_job.png"
JOB = "simulated/ad-attribution"
MARKS = ("<!-- run: written by `make docs` after `make run` -->", "<!-- end of run -->")
LINE_MAX = 98
BROWSERS = ("chromium", "chromium-browser", "google-chrome")


def describe_run(out: Path) -> dict[str, Any]:
    """Return what a run came to: policy, code version, the line that it ends with, and what its plan saves."""
    rows = json.loads((out / "plans.json").read_text(encoding="utf-8"))
    (policy,) = {row["policy"] for row in rows if row["policy"]}
    saved = re.search(r'<p class="sum">Planned: <b>(.*?)</b>', (out / "report.html").read_text(encoding="utf-8"))
    return {
        "policy": policy,
        "code_version": rows[0]["code_version"],
        "line": describe_outcome(json.loads((out / "run.json").read_text(encoding="utf-8"))),
        "planned": "" if saved is None else html.unescape(saved.group(1)),
    }


def write_part(made: Mapping[str, Any]) -> str:
    """Return the part of README that a run is quoted in."""
    planned = fill(f"Planned by the default policy, `{made['policy']}`: {made['planned']}.", LINE_MAX)
    return f"```\n{made['line']}\n```" + (f"\n\n{planned}" if made["planned"] else "")


def draw(report: Path, job: str, picture: Path) -> None:
    """Take the picture of a job's part of a saved page.

    Raises:
        FileNotFoundError: there is no Chromium.
    """
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        raise FileNotFoundError("no Chromium on PATH: apt-get install chromium")
    with tempfile.TemporaryDirectory() as profile:
        page = f"{report.resolve().as_uri()}#{anchor_of(job)}"
        words = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", f"--user-data-dir={profile}"]
        shot = [f"--screenshot={picture}", "--window-size=1240,1180", page]
        subprocess.run([browser, *words, *shot], capture_output=True, timeout=180, check=True)


def main(argv: Sequence[str]) -> int:
    """Write picture, its notes and the part of README; without a run of the default they stay as they are."""
    parser = CommandParser(prog="readme_run", description=__doc__)
    parser.add_argument("--out", type=Path, default=PROJECT / "out", help="of the run")
    out = parser.parse_args(argv).out
    if not (out / "report.html").is_file() or not (out / "run.json").is_file():
        print(f"README keeps its run: there is none in {out}; make run makes it")
        return 0
    made = describe_run(out)
    if made["policy"] != Settings().planner.policy:
        print(f"README keeps its run: that in {out} is by {made['policy']}, which is not the default")
        return 0
    draw(out / "report.html", JOB, PICTURE)
    made |= {"sha256": hashlib.sha256(PICTURE.read_bytes()).hexdigest()}
    write_text(PICTURE.with_suffix(".json"), json.dumps(made, indent=1, ensure_ascii=False) + "\n")
    write_text(README, put_between_marks(README.read_text(encoding="utf-8"), MARKS, write_part(made)))
    print(f"written: {PICTURE.relative_to(PROJECT)}, {README.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
