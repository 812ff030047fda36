"""Each rule of a file removed and inverted, one at a time: its text with one condition changed, or one computation."""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_RULES = "_RULES"
"""A tuple of this name lists rules that are asked one after the other."""
_OPERATORS: dict[type[ast.operator], ast.operator] = {
    ast.Add: ast.Sub(),
    ast.Sub: ast.Add(),
    ast.Mult: ast.Div(),
    ast.Div: ast.Mult(),
}
_COMPARISONS: dict[type[ast.cmpop], ast.cmpop] = {
    ast.Lt: ast.LtE(),
    ast.LtE: ast.Lt(),
    ast.Gt: ast.GtE(),
    ast.GtE: ast.Gt(),
}


@dataclass(frozen=True, slots=True)
class Break:
    """One change to a file.

    Attributes:
        file: relative to the project.
        line: from 1.
        last_line: of the text that was changed.
        function: that holds the text; empty outside every function.
        kind: ``removed`` (a branch is never taken, a rule is not asked, a part of a condition is left out),
            ``inverted`` or ``changed`` (another operator or number).
        what: the text that was changed.
        source: the whole file after it.
    """

    file: str
    line: int
    last_line: int
    function: str
    kind: str
    what: str
    source: str

    @property
    def lines(self) -> range:
        """The lines of the text that was changed."""
        return range(self.line, self.last_line + 1)

    @property
    def key(self) -> str:
        """What stays the same until the file is changed."""
        return hashlib.sha256(f"{self.file}\n{self.source}".encode()).hexdigest()[:16]

    @property
    def place(self) -> str:
        """What stays the same while lines move."""
        return f"{self.file} {self.function} {self.kind}: {self.what}"

    @property
    def name(self) -> str:
        """One line that names it."""
        return f"{self.file}:{self.line} {self.kind}: {self.what}"


def list_breaks(file: str, source: str, *, is_arithmetic: bool = False) -> list[Break]:
    """Return every change to a file, in the order of its lines; of arithmetic the operators and numbers as well."""
    made: dict[str, Break] = {}
    tree = ast.parse(source)
    functions = dict(_name_functions(tree, ""))
    for node, kind, new in [*_changes(tree), *(_change_arithmetic(tree) if is_arithmetic else ())]:
        what = " ".join((ast.get_source_segment(source, node) or "").split())
        lines = node.lineno, node.end_lineno or node.lineno
        changed = _put(source, node, new)
        if changed != source:
            made.setdefault(changed, Break(file, *lines, functions[node], kind, what, changed))
    return sorted(made.values(), key=lambda one: (one.line, one.what, one.kind))


def read_breaks(root: Path, files: list[str], *, is_arithmetic: bool = False) -> list[Break]:
    """Return the changes to some files below a root."""
    sources = {file: (root / file).read_text(encoding="utf-8") for file in files}
    return [one for item in sources.items() for one in list_breaks(*item, is_arithmetic=is_arithmetic)]


def _changes(tree: ast.Module) -> Iterator[tuple[ast.expr, str, str]]:
    """Yield expression, kind, and what stands in its place."""
    for node in ast.walk(tree):
        if (isinstance(node, ast.If | ast.While) and not _is_of_the_file(node.test)) or isinstance(node, ast.IfExp):
            yield node.test, "removed", "False"
            yield node.test, "inverted", f"not ({ast.unparse(node.test)})"
        elif isinstance(node, ast.comprehension):
            for condition in node.ifs:
                yield condition, "removed", "True"
                yield condition, "inverted", f"(not ({ast.unparse(condition)}))"
        elif isinstance(node, ast.BoolOp):
            yield from _without_each(node)
        elif isinstance(node, ast.Return) and _is_condition(node.value):
            assert node.value is not None
            yield node.value, "inverted", f"not ({ast.unparse(node.value)})"
        elif isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(node.value, ast.Tuple):
            yield from _without_rules(node, node.value)


def _change_arithmetic(tree: ast.Module) -> Iterator[tuple[ast.expr, str, str]]:
    """Yield each sum, product and comparison with another operator, and each number with the next one in its place."""
    texts = (node for node in ast.walk(tree) if isinstance(node, ast.JoinedStr))
    shown = {id(inner) for text in texts for inner in ast.walk(text)}  # without places of their own before Python 3.12
    for node in ast.walk(tree):
        if id(node) in shown:
            continue
        if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
            yield node, "changed", f"({ast.unparse(ast.BinOp(node.left, _OPERATORS[type(node.op)], node.right))})"
        elif isinstance(node, ast.Compare) and type(node.ops[0]) in _COMPARISONS:
            operators = [_COMPARISONS[type(node.ops[0])], *node.ops[1:]]
            yield node, "changed", f"({ast.unparse(ast.Compare(node.left, operators, node.comparators))})"
        elif (
            isinstance(node, ast.Constant) and isinstance(node.value, int | float) and not isinstance(node.value, bool)
        ):
            yield node, "changed", f"({node.value} + 1)"


def _name_functions(node: ast.AST, name: str) -> Iterator[tuple[ast.AST, str]]:
    """Yield each node with the name of the function that holds it."""
    for inner in ast.iter_child_nodes(node):
        own = name
        if isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            own = f"{name}.{inner.name}".lstrip(".")
        yield inner, own
        yield from _name_functions(inner, own)


def _without_each(node: ast.BoolOp) -> Iterator[tuple[ast.expr, str, str]]:
    """Yield each operand replaced by what leaves the others as they are."""
    neutral = "True" if isinstance(node.op, ast.And) else "False"
    for operand in node.values:
        if not isinstance(operand, ast.Dict | ast.List | ast.Tuple | ast.Constant):  # a default, no condition
            yield operand, "removed", neutral


def _without_rules(node: ast.Assign | ast.AnnAssign, value: ast.Tuple) -> Iterator[tuple[ast.expr, str, str]]:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    if any(isinstance(target, ast.Name) and target.id == _RULES for target in targets):
        for rule in value.elts:
            yield rule, "removed", "(lambda case: None)"


def _is_condition(value: ast.expr | None) -> bool:
    is_negation = isinstance(value, ast.UnaryOp) and isinstance(value.op, ast.Not)
    return is_negation or isinstance(value, ast.Compare)


def _is_of_the_file(test: ast.expr) -> bool:
    """Whether a condition is about how the file is used: as a program, or by a type checker."""
    return any(isinstance(one, ast.Name) and one.id in {"__name__", "TYPE_CHECKING"} for one in ast.walk(test))


def _put(source: str, node: ast.expr, new: str) -> str:
    """Return the source with an expression replaced; offsets are in bytes of UTF-8."""
    lines = source.encode().splitlines(keepends=True)
    assert node.end_lineno is not None
    assert node.end_col_offset is not None
    before = b"".join(lines[: node.lineno - 1]) + lines[node.lineno - 1][: node.col_offset]
    after = lines[node.end_lineno - 1][node.end_col_offset :] + b"".join(lines[node.end_lineno :])
    return (before + new.encode() + after).decode()
