"""``make mutate-rules``: which rules of the controller may be removed or inverted without a unit test that notices.

A change that no test notices is shown to the type checker, which ``make check`` asks as well: many a guard is there for
it alone.

``[tool.mutation.rules]`` in pyproject.toml names the files and their tests. Each change is tried in a process of its
own, which imports the changed file in the place of the one on disk: nothing is written.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import json
import os
import signal
import subprocess
import sys
import time
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from cli.arguments import CommandParser, number, whole_number
from include.settings import PROJECT
from tools.rule_breaks import Break, read_breaks

# Imported before the processes are forked, which then need not: what the tests need and the project does not change.
_PRELOADED = ("pytest", "hypothesis", "numpy", "pandas", "pyarrow", "deltalake", "pydantic", "croniter", "structlog")
_OWN = frozenset({"benchmarks", "cli", "controller", "fleet", "include", "models", "spark_jobs", "tests", "tools"})
_LONGEST_S = 600.0
NOTICED, SURVIVED, BY_TYPES = "noticed", "survived", "noticed by the types"


@dataclass(frozen=True, slots=True)
class RuleFiles:
    """What is changed as one, and the tests that have to notice, the quickest first."""

    name: str
    sources: tuple[str, ...]
    tests: tuple[str, ...]

    def files(self, root: Path) -> list[str]:
        """Return the source files below a root, relative to it."""
        return sorted({str(path.relative_to(root)) for pattern in self.sources for path in root.glob(pattern)})


def read_rule_files(pyproject: Path = PROJECT / "pyproject.toml") -> list[RuleFiles]:
    """Return what pyproject.toml names."""
    table = tomllib.loads(pyproject.read_text())["tool"]["mutation"]["rules"]
    return [RuleFiles(name, tuple(entry["sources"]), tuple(entry["tests"])) for name, entry in table.items()]


class ChangedSource(importlib.abc.MetaPathFinder, importlib.abc.InspectLoader):
    """Imports one module from a text in the place of its file."""

    def __init__(self, module: str, file: Path, source: str) -> None:
        self._module, self._file, self._source = module, file, source

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Return the module's spec; None for every other module."""
        del path, target
        if fullname != self._module:
            return None
        return importlib.util.spec_from_file_location(fullname, self._file, loader=self)

    def get_source(self, fullname: str) -> str:
        """Return the text."""
        del fullname
        return self._source

    def get_filename(self, fullname: str) -> str:
        """Return the file in whose place it stands, for tracebacks."""
        del fullname
        return str(self._file)


def run_tests(tests: Sequence[str], changed: Break | None) -> int:
    """Run files of tests one after the other in this process, with a changed file; returns the first code but 0."""
    import pytest

    if changed is not None:
        module = changed.file.removesuffix(".py").replace("/", ".")
        sys.meta_path.insert(0, ChangedSource(module, PROJECT / changed.file, changed.source))
    options = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:randomly", "-m", "not long"]
    codes = (int(pytest.main([*options, test])) for test in tests)
    return next((code for code in codes if code), 0)


def start_child(tests: Sequence[str], changed: Break | None, longest_s: float) -> int:
    """Start a process that runs the tests with a changed file; returns its id."""
    child = os.fork()
    if child:
        return child
    code = 70
    try:
        quiet = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(quiet, stream)
        signal.alarm(round(longest_s))
        for name in list(sys.modules):  # the command's own imports, of files as they are
            if name.partition(".")[0] in _OWN:
                del sys.modules[name]
        code = run_tests(tests, changed)
    finally:
        os._exit(code)


def name_end(status: int) -> str:
    """Return what the end of a process says of its change."""
    if os.WIFSIGNALED(status):
        return f"{NOTICED} by a timeout" if os.WTERMSIG(status) == signal.SIGALRM else f"{NOTICED} by a crash"
    return SURVIVED if os.WEXITSTATUS(status) == 0 else NOTICED


def try_all(
    tests: Sequence[str], breaks: Sequence[Break | None], children: int, longest_s: float = _LONGEST_S
) -> list[str]:
    """Return what the tests said of each change: that it ``survived``, or how they noticed.

    Args:
        tests: paths, in their order.
        breaks: None stands for no change.
        children: how many processes run at a time; this one has a single thread, so that it may be forked.
        longest_s: tests that take longer have noticed.
    """
    outcomes, running = [""] * len(breaks), dict[int, int]()
    remaining = list(enumerate(breaks))
    while remaining or running:
        while remaining and len(running) < children:
            place, changed = remaining.pop(0)
            running[start_child(tests, changed, longest_s)] = place
        child, status = os.wait()
        outcomes[running.pop(child)] = name_end(status)
    return outcomes


def check_types(changed: Break, work: Path) -> str:
    """Return what mypy says of a change that the tests do not notice: ``make check`` asks both.

    Args:
        changed: the change.
        work: a folder for the changed file and for a cache of its own.
    """
    work.mkdir(parents=True, exist_ok=True)
    shadow = work / "changed.py"
    shadow.write_text(changed.source, encoding="utf-8")
    command = [sys.executable, "-m", "mypy", "--cache-dir", str(work / "mypy"), "--shadow-file", changed.file]
    done = subprocess.run([*command, str(shadow), changed.file], cwd=PROJECT, capture_output=True, check=False)
    return BY_TYPES if done.returncode == 1 else SURVIVED


def summarise(name: str, tried: Sequence[tuple[Break, str]], seconds: float) -> list[str]:
    """Return how many changes were noticed, and below it those that were not."""
    survivors = [one for one, reported in tried if reported == SURVIVED]
    noticed = len(tried) - len(survivors)
    share = f" ({noticed / len(tried):.1%})" if tried else ""
    lines = [f"{name}: {noticed} of {len(tried)} changed rules noticed{share} in {seconds:.0f} s"]
    return lines + [f"    survived: {one.name}" for one in survivors]


def run(options: argparse.Namespace, known: Sequence[RuleFiles]) -> int:
    """Try the changes that were asked for; returns the exit code: 1 where fewer are noticed than is asked for."""
    for name in _PRELOADED:
        importlib.import_module(name)
    result, shares = [], []
    for one in known:
        files = [file for file in one.files(PROJECT) if not options.file or file in options.file]
        breaks = read_breaks(PROJECT, files)[:: options.every]
        if not breaks:
            continue
        tests = [str(PROJECT / test) for test in one.tests]
        if try_all(tests, [None], 1, 10 * _LONGEST_S) != [SURVIVED]:
            print(f"mutate-rules: {one.name}: the tests fail without any change", file=sys.stderr)
            return 2
        began_s = time.monotonic()
        work = PROJECT / "out" / "mutation" / "types"
        outcomes = try_all(tests, breaks, options.children)
        tried = [
            (change, check_types(change, work) if reported == SURVIVED else reported)
            for change, reported in zip(breaks, outcomes, strict=True)
        ]
        print("\n".join(summarise(one.name, tried, time.monotonic() - began_s)), flush=True)
        shares.append(sum(reported != SURVIVED for _, reported in tried) / len(tried))
        result += [{"rule": change.name, "outcome": reported} for change, reported in tried]
    out = PROJECT / "out" / "mutation"
    out.mkdir(parents=True, exist_ok=True)
    (out / "rules.json").write_text(json.dumps(result, indent=1) + "\n")
    return 1 if any(share < options.least for share in shares) else 0


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command."""
    known = read_rule_files()
    every_file = sorted({file for one in known for file in one.files(PROJECT)})
    parser = CommandParser(prog="mutate-rules", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--file", nargs="+", choices=every_file, metavar="FILE", help="only these; default: all")
    parser.add_argument("--every", type=whole_number(1, 1000), default=1, help="only every n-th change (default: 1)")
    parser.add_argument("--least", type=number(0, 1), default=0.0, help="exit 1 where a smaller share is noticed")
    parser.add_argument("--children", type=whole_number(1, 256), default=os.cpu_count() or 1, help="changes at a time")
    return run(parser.parse_args(argv), known)


if __name__ == "__main__":
    sys.exit(main())
