"""Every command in benchmarks/ prints its help, whatever its texts contain."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

import benchmarks

ROOT = Path(benchmarks.__file__).parent
COMMANDS = sorted(
    ".".join(path.relative_to(ROOT.parent).with_suffix("").parts)
    for path in ROOT.rglob("*.py")
    if "CommandParser(" in path.read_text(encoding="utf-8")
)


@pytest.mark.parametrize("name", COMMANDS)
def test_help_is_printed(name, capsys):
    with pytest.raises(SystemExit) as stop:
        importlib.import_module(name).main(["--help"])
    assert stop.value.code == 0
    assert capsys.readouterr().out.startswith("usage: ")
