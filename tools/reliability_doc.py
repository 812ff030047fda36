"""``make docs``: promises with their tests (docs/reliability.md), cases of reviews (docs/reliability/cases.md).

A test names its cases by the marker ``covers``; this reads the markers from the sources.
"""

from __future__ import annotations

import ast
import sys
import tomllib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from cli.arguments import CommandParser
from include.atomic_write import write_text
from include.settings import PROJECT
from tools.marked_page import put_between_marks
from tools.promises import HandRun, Promise, read_promises, read_runs, targets_of

PAGE, CASES = PROJECT / "docs" / "reliability.md", PROJECT / "docs" / "reliability_cases.toml"
CASES_PAGE = PROJECT / "docs" / "reliability" / "cases.md"
TESTS = PROJECT / "tests"
CASE_MARKS = "<!-- cases: written by `make docs` -->", "<!-- end of cases -->"
PROMISE_MARKS = "<!-- promises: written by `make docs` -->", "<!-- end of promises -->"
TITLES = {
    "apply_review": "Applying, training and collecting",
    "ingest_review": "Input",
    "flink_waits": "What Flink does and waits for",
    "harm": "Harm to jobs and data",
}


def read_cases() -> dict[str, str]:
    """Return the cases, ``review number`` -> what could go wrong."""
    result = tomllib.loads(CASES.read_text())
    return {f"{review} {number}": text for review, cases in result.items() for number, text in cases.items()}


def find_tests(folder: Path = TESTS) -> dict[str, list[str]]:
    """Return the tests that cover each case, as ``file::function``."""
    result: dict[str, list[str]] = defaultdict(list)
    for path in sorted(folder.rglob("test_*.py")):
        code = path.read_text()
        if ".covers(" not in code:  # most have none, and reading them takes ten times as long
            continue
        module = ast.parse(code)
        for line in module.body:
            if isinstance(line, ast.Assign) and getattr(line.targets[0], "id", "") == "pytestmark":
                marks = line.value.elts if isinstance(line.value, ast.List) else [line.value]
                for case in _list_cases(marks):
                    result[case].append(str(path.relative_to(folder.parent)))
        for node in ast.walk(module):
            if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef):
                for case in _list_cases(node.decorator_list):
                    result[case].append(f"{path.relative_to(folder.parent)}::{node.name}")
    return {case: sorted(set(tests)) for case, tests in result.items()}


def _list_cases(decorators: Sequence[ast.expr]) -> Iterator[str]:
    for call in decorators:
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "covers":
            for argument in call.args:
                if isinstance(argument, ast.Constant):
                    yield " ".join(str(argument.value).split()[:2])


def format_cases(cases: dict[str, str], tests: dict[str, list[str]]) -> str:
    """Return the lists in Markdown, one for each review: what could go wrong, and below it the tests."""
    lines: list[str] = []
    for review, title in TITLES.items():
        lines += [f"## {title}", ""]
        for case, text in cases.items():
            name, number = case.split()
            if name == review:
                guarding = [*tests.get(case, []), *tests.get(f"{name} {number.partition('.')[0]}", [])]
                lines.append("<br>".join([f"- {text}", *(f"`{test}`" for test in dict.fromkeys(guarding))]))
        lines.append("")
    return "\n".join(lines)


def format_promises(promises: Sequence[Promise], runs: Mapping[str, HandRun]) -> str:
    """Return the table of promises in Markdown: each with its tests, what runs them, and when that was last."""
    lines = ["| promise | tests | run by | not checked |", "|---|---|---|---|"]
    for promise in promises:
        targets = dict.fromkeys([*(target for test in promise.tests for target in targets_of(test)), *promise.commands])
        cells = (
            promise.text,
            "<br>".join(f"`{test}`" for test in promise.tests),
            "<br>".join(f"`make {target}`{_format_run(target, runs)}" for target in targets),
            promise.not_checked,
        )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _format_run(target: str, runs: Mapping[str, HandRun]) -> str:
    run = runs.get(target)
    return f" ({run.on}, {run.commit})" if run else ""


def update_pages() -> dict[Path, str]:
    """Return both pages with their tables replaced."""
    promises = f"\n{format_promises(read_promises(), read_runs())}\n"
    cases = f"\n{format_cases(read_cases(), find_tests())}"
    return {
        PAGE: put_between_marks(PAGE.read_text(), PROMISE_MARKS, promises),
        CASES_PAGE: put_between_marks(CASES_PAGE.read_text(), CASE_MARKS, cases),
    }


def write_pages() -> None:
    """Write both pages and say so."""
    for path, page in update_pages().items():
        write_text(path, page)
        print(f"written: {path.relative_to(PROJECT)}")


def main(argv: Sequence[str]) -> int:
    """Write the pages; returns the exit code."""
    CommandParser(prog="reliability_doc", description=__doc__).parse_args(argv)
    write_pages()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
