"""What runs for every change is what the README says, its system packages first."""

from __future__ import annotations

import re
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]


def test_the_system_packages_of_the_readme_are_installed_and_then_its_commands_run() -> None:
    readme, script = ((REPOSITORY / name).read_text() for name in ("README.md", ".ci/run"))
    (command,) = re.findall(r"^apt-get install .*$", readme, re.MULTILINE)
    lines = script.splitlines()
    installs = next(place for place, line in enumerate(lines) if line.endswith(command))
    assert lines[installs + 1 :] == ["make test", "make test-benchmarks"]
