"""Puts a changed rule in the place of the one that was imported: the code of the function that holds it."""

from __future__ import annotations

import ast
import gc
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from types import CodeType, FunctionType

from tools.rule_breaks import Break

Definition = ast.FunctionDef | ast.AsyncFunctionDef


class ImportedFunctions:
    """The functions of some files that this process has imported."""

    def __init__(self, root: Path, files: Iterable[str]) -> None:
        self._root = root
        self._files: dict[str, dict[tuple[str, int], list[FunctionType]]] = {
            str(root / file): defaultdict(list) for file in files
        }
        self._before: list[tuple[FunctionType, CodeType]] = []
        for one in gc.get_objects():
            if isinstance(one, FunctionType) and one.__code__.co_filename in self._files:
                self._files[one.__code__.co_filename][_place(one.__code__)].append(one)

    def swap_code(self, changed: Break) -> bool:
        """Give the functions a changed rule; returns whether it is in place.

        It is not where the rule stands outside every function, in a default or a decorator, or where a function made
        from the one that holds it is in use already: such a file has to be imported anew.
        """
        file = self._root / changed.file
        functions = self._files[str(file)]
        function = find_function(file, changed.lines)
        new = None if function is None else _find_code(changed.source, file, function)
        if new is None or any(name.startswith(f"{new.co_qualname}.<locals>.") for name, _ in functions):
            return False
        holding = functions.get(_place(new), [])
        self._before = [(one, one.__code__) for one in holding]
        try:
            for one in holding:
                one.__code__ = new
        except ValueError:  # the change takes the last use of a name of an outer scope away
            return False
        return bool(holding)

    def swap_back(self) -> None:
        """Exchange the changed rule and what was there before."""
        before, self._before = self._before, [(one, one.__code__) for one, _ in self._before]
        for one, code in before:
            one.__code__ = code


def find_function(file: Path, lines: range) -> Definition | None:
    """Return the outermost function of a file whose body holds the lines."""
    for node in _outermost(_parse(file)):
        if node.body[0].lineno <= lines[0] and lines[-1] <= (node.end_lineno or 0):
            return node
    return None


@cache
def _parse(file: Path) -> ast.Module:
    return ast.parse(file.read_text(encoding="utf-8"))


def _outermost(node: ast.AST) -> Iterator[Definition]:
    for inner in ast.iter_child_nodes(node):
        if isinstance(inner, Definition):
            yield inner
        else:
            yield from _outermost(inner)


def _find_code(source: str, file: Path, function: Definition) -> CodeType | None:
    line = min([function.lineno, *(one.lineno for one in function.decorator_list)])
    waiting = [compile(source, str(file), "exec")]
    while waiting:
        code = waiting.pop()
        if code.co_name == function.name and code.co_firstlineno == line:
            return code
        waiting += [one for one in code.co_consts if isinstance(one, CodeType)]
    return None


def _place(code: CodeType) -> tuple[str, int]:
    return code.co_qualname, code.co_firstlineno
