"""What Tidewise promises, the tests that check it, and which command runs each of them.

As a program it prints the files whose long tests ``make nightly`` runs.
"""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from include.settings import PROJECT
from tools.long_parts import read_parts

PROMISES, RUNS = PROJECT / "docs" / "promises.toml", PROJECT / "docs" / "runs_by_hand.toml"


@dataclass(frozen=True, slots=True)
class Promise:
    """A promise of docs/promises.toml.

    Attributes:
        text: the promise.
        tests: files or ``file::test`` that check it.
        not_checked: what no test checks.
        commands: targets of the Makefile that check it at length.
    """

    text: str
    tests: tuple[str, ...]
    not_checked: str
    commands: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class HandRun:
    """The last run of a target that somebody starts by hand or a workflow starts by night.

    Attributes:
        commit: on which it ran.
        on: the day, as ISO 8601.
        said: its last line.
    """

    commit: str
    on: str
    said: str


def read_promises(path: Path = PROMISES) -> list[Promise]:
    """Return the promises in the order of the file.

    Raises:
        ValueError: a promise names no test.
    """
    entries: list[dict[str, Any]] = tomllib.loads(path.read_text())["promise"]
    result = [
        Promise(entry["text"], tuple(entry["tests"]), entry["not_checked"], tuple(entry.get("commands", ())))
        for entry in entries
    ]
    untested = [promise.text for promise in result if not promise.tests]
    if untested:
        raise ValueError(f"no test checks: {'; '.join(untested)}")
    return result


def read_runs(path: Path = RUNS) -> dict[str, HandRun]:
    """Return the last run of each target that has one."""
    return {target: HandRun(**entry) for target, entry in tomllib.loads(path.read_text()).items()}


def targets_of(test: str) -> tuple[str, ...]:
    """Return the targets of the Makefile that run a test, the quickest first.

    Args:
        test: a file, or ``file::test``.

    Raises:
        LookupError: there is no such test, or no target runs it.
    """
    file, _, name = test.partition("::")
    marks = _read_marks(PROJECT / file)
    if name and name not in marks:
        raise LookupError(f"there is no test {test}")
    lengths = {marks[name]} if name else set(marks.values())
    of_folder = {"unit": "check", "tools": "check", "benchmarks": "test-benchmarks", "services": "test-benchmarks"}
    short = of_folder.get(Path(file).parts[1], "test")
    by_hand = tuple(target for target, part in read_parts().items() if file in part.tests)
    result = ((short,) if False in lengths else ()) + (by_hand if True in lengths else ())
    if not result:
        raise LookupError(f"no target runs {test}")
    return result


@cache
def _read_marks(path: Path) -> Mapping[str, bool]:
    """Return, for each test of a file, whether it is marked long."""
    if not path.is_file():
        raise LookupError(f"there is no file {path.relative_to(PROJECT)}")
    module = ast.parse(path.read_text())
    marks = [
        ast.unparse(line.value)
        for line in module.body
        if isinstance(line, ast.Assign) and getattr(line.targets[0], "id", "") == "pytestmark"
    ]
    is_long = any("mark.long" in text for text in marks)
    result = {
        node.name: is_long or any(ast.unparse(mark) == "pytest.mark.long" for mark in node.decorator_list)
        for node in ast.walk(module)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test")
    }
    return result or {"": is_long}  # the tests of a state machine have no function of their own


def list_nightly() -> list[str]:
    """Return the files with long tests of promises, but for those of tests/long, which need more than a night."""
    files = dict.fromkeys(test.partition("::")[0] for promise in read_promises() for test in promise.tests)
    return [file for file in files if True in _read_marks(PROJECT / file).values() and "tests/long/" not in file]


if __name__ == "__main__":
    print(" ".join(list_nightly()))
