"""``python -m tools.size_choices``: comparisons of a count or of bytes that choose between two functions of the stages.

A stage has one way for any size, so that what a small fleet tests is what a large one runs. A size may say how many
parts there are, or when a loop hands a piece on. Exit code 1 where a size chooses.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import spark_jobs

_SIZES = re.compile(r"BYTES|FEW|MANY|MOST|_PER_TASK|_AT_ONCE")
"""In the names of constants that limit a size."""
_LEAST = 1000
"""A whole number from here on limits the length that it is compared with."""
_NAMED = re.compile(r"^_?(is|are|has)_(small|few|many|large)")
_ORDERED = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)


def find_choices(source: str) -> list[int]:
    """Return the lines of a module on which a size chooses what is called."""
    tree = ast.parse(source)
    parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    placed = [node for node in ast.walk(tree) if isinstance(node, ast.expr | ast.stmt | ast.arg | ast.keyword)]
    chosen = {node.lineno for node in placed if isinstance(node, ast.Compare) and _chooses(node, parents)}
    return sorted(chosen | {node.lineno for node in placed if _is_named(node)})


def _is_named(node: ast.AST) -> bool:
    """Whether something bears the name of such a choice: a function, an argument or a value."""
    names = (getattr(node, name, None) for name in ("id", "attr", "arg", "name"))
    return any(isinstance(name, str) and _NAMED.match(name) for name in names)


def _chooses(comparison: ast.Compare, parents: dict[ast.AST, ast.AST]) -> bool:
    if not isinstance(comparison.ops[0], _ORDERED) or not _has_limit(comparison):
        return False
    node: ast.AST = comparison
    while node in parents and not isinstance(node, ast.stmt):
        parent = parents[node]
        if isinstance(parent, ast.IfExp) and parent.test is node:
            return True
        if isinstance(parent, ast.comprehension | ast.Subscript):  # rows are selected by their values
            return False
        node = parent
    if isinstance(node, ast.If):
        return bool(node.orelse) or any(isinstance(one, ast.Return) for line in node.body for one in ast.walk(line))
    return isinstance(node, ast.Return | ast.Assign | ast.AnnAssign)


def _has_limit(comparison: ast.Compare) -> bool:
    """Whether something is compared with a limit of sizes: a constant by its name, or a length with a large number."""
    sides = [comparison.left, *comparison.comparators]
    names = [str(getattr(side, "attr", getattr(side, "id", ""))) for side in sides]
    if any(name.isupper() and _SIZES.search(name) for name in names):
        return True
    lengths = [side for side in sides if isinstance(side, ast.Call) and getattr(side.func, "id", "") == "len"]
    values = [side.value for side in sides if isinstance(side, ast.Constant) and type(side.value) is int]
    return bool(lengths) and any(value >= _LEAST for value in values)


def list_choices(root: Path) -> Iterator[str]:
    """Yield place and text of each such line below a folder."""
    for path in sorted(root.rglob("*.py")):
        source = path.read_text(encoding="utf-8")
        lines = source.splitlines()
        for number in find_choices(source):
            yield f"{path.relative_to(root.parent)}:{number}: {lines[number - 1].strip()}"


def main() -> int:
    """Print them; returns the exit code."""
    listed = list(list_choices(Path(spark_jobs.__file__).parent))
    print("\n".join(listed))
    return int(bool(listed))


if __name__ == "__main__":
    sys.exit(main())
