"""Two weeks of mode auto against the double of Flink, poll by poll: nothing stranded, nothing lost."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from include.settings import PROJECT

pytestmark = [pytest.mark.long, pytest.mark.timeout(3600)]
DAYS = os.environ.get("TIDEWISE_AUTO_DAYS", "14")


def test_two_weeks_of_auto_strand_and_lose_nothing(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "benchmarks.auto_weeks", "--days", DAYS, "--out", str(tmp_path)]
    ended = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "Nothing stranded, nothing lost." in (tmp_path / "auto_weeks.md").read_text()
