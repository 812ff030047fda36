"""No module of the product reaches itself again over imports, those inside functions included."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

from import_graph import imports_of

ROOT = Path(__file__).parents[2]
PRODUCT = ("include", "models", "fleet", "page", "spark_jobs", "controller", "dags", "cli")


def product_modules() -> dict[str, Path]:
    """Return module name -> its file."""
    paths = [path for folder in PRODUCT for path in sorted((ROOT / folder).rglob("*.py"))]
    return {_name(path): path for path in paths}


def _name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def find_circle(graph: Mapping[str, set[str]]) -> list[str]:
    """Return the modules of one circle, the first again at the end; empty without any."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def test_no_module_of_the_product_imports_itself_over_others() -> None:
    modules = product_modules()
    graph = {name: set(imports_of(ast.parse(path.read_text()), modules)) - {name} for name, path in modules.items()}
    assert len(graph) > 400
    assert find_circle(graph) == []


def test_a_circle_is_found() -> None:
    assert find_circle({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}})
