"""``make docs``: the table of docs/reliability.md, which tests guard against which case that a review found.

A test names its cases by the marker ``covers``; this reads the markers from the sources.
"""

from __future__ import annotations

import ast
import sys
import tomllib
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

from cli.arguments import CommandParser
from include.atomic_write import write_text
from include.settings import PROJECT
from tools.marked_page import put_between_marks

PAGE, CASES = PROJECT / "docs" / "reliability.md", PROJECT / "docs" / "reliability_cases.toml"
TESTS = PROJECT / "tests"
BEGIN, END = "<!-- cases: written by `make docs` -->", "<!-- end of cases -->"
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
        module = ast.parse(path.read_text())
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


def format_table(cases: dict[str, str], tests: dict[str, list[str]]) -> str:
    """Return the tables in Markdown, one for each review."""
    lines: list[str] = []
    for review, title in TITLES.items():
        lines += [f"### {title}", "", "| case | what could go wrong | tests |", "|---|---|---|"]
        for case, text in cases.items():
            name, number = case.split()
            if name == review:
                guarding = [*tests.get(case, []), *tests.get(f"{name} {number.partition('.')[0]}", [])]
                listed = "<br>".join(f"`{test}`" for test in dict.fromkeys(guarding)) or "none"
                lines.append(f"| {number} | {text} | {listed} |")
        lines.append("")
    return "\n".join(lines)


def update_page(page: str, table: str) -> str:
    """Return the page with its tables replaced."""
    return put_between_marks(page, (BEGIN, END), f"\n{table}")


def main(argv: Sequence[str]) -> int:
    """Write the page; returns the exit code."""
    CommandParser(prog="reliability_doc", description=__doc__).parse_args(argv)
    write_text(PAGE, update_page(PAGE.read_text(), format_table(read_cases(), find_tests())))
    print(f"written: {PAGE.relative_to(PROJECT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
