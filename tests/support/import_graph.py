"""The imports of a module as Python parses them."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping


def imports_of(tree: ast.Module, known: Mapping[str, object]) -> Iterator[str]:
    """Yield the known modules that a module imports by name."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in known)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            for alias in node.names:
                module = f"{node.module}.{alias.name}"
                result = module if module in known else node.module
                if result in known:
                    yield result
