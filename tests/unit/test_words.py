"""Names in the code use the words of the glossary's last part, and none of those that it replaces."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
PACKAGES = (
    "benchmarks",
    "cli",
    "controller",
    "dags",
    "fleet",
    "include",
    "lab",
    "models",
    "page",
    "spark_jobs",
    "tools",
)


def replaced_words() -> set[str]:
    """Return the words of the last column."""
    part = (REPOSITORY / "docs" / "glossary.md").read_text().split("## Words of the code")[1]
    rows = [line.split("|") for line in part.splitlines() if line.startswith("| ") and not line.startswith("| word")]
    return {word.strip() for row in rows for word in row[3].split(",") if " " not in word.strip()} - {""}


def local_names(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield what functions assign to, with its line: names of columns, settings and constants stay what they are."""
    functions = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))
    for node in (inner for function in functions for inner in ast.walk(function)):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.id


def test_no_variable_has_a_replaced_word_for_its_name() -> None:
    words = replaced_words()
    assert {"found", "told", "seen", "kept", "standing"} <= words
    named = []
    for path in (path for package in PACKAGES for path in (REPOSITORY / package).rglob("*.py")):
        for line, name in local_names(ast.parse(path.read_text())):
            if name != "left" and words & set(re.findall(r"[a-z]+", name.lower())):
                named.append(f"{path.relative_to(REPOSITORY)}:{line} {name}")
    assert named == []
