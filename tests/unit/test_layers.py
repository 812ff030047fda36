"""The rules that tools check, as tests: layers, lint, types."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
TOOLS = Path(sys.executable).parent


@pytest.mark.parametrize(
    "command",
    [["lint-imports"], ["ruff", "check", "."], ["ruff", "format", "--check", "."], ["mypy"]],
    ids=lambda command: "-".join(command[:2]),
)
def test_tool_finds_nothing(command):
    done = subprocess.run(
        [TOOLS / command[0], *command[1:]], cwd=REPOSITORY, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
