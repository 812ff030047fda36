"""What the type checker says of a change that no test notices: ``make check`` asks both."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from include.settings import PROJECT
from tools.rule_breaks import Break


def is_refused_by_types(changed: Break, work: Path) -> bool:
    """Return whether mypy refuses a change.

    Args:
        changed: the change.
        work: a folder for the changed file and for a cache of its own.
    """
    work.mkdir(parents=True, exist_ok=True)
    shadow = work / "changed.py"
    shadow.write_text(changed.source, encoding="utf-8")
    command = [sys.executable, "-m", "mypy", "--cache-dir", str(work / "mypy"), "--shadow-file", changed.file]
    done = subprocess.run([*command, str(shadow), changed.file], cwd=PROJECT, capture_output=True, check=False)
    return done.returncode == 1
