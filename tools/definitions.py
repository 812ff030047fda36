"""Which definitions of the project an entry point reaches, over the names that their code mentions.

A function, class or constant of a module is reached when reached code mentions it: in a body, a decorator, an
annotation, or a path in a text (``module:attribute``, ``package.module.attribute``).  A method is reached when its
class is, and reached code mentions its name behind a dot.  Code of a module outside its definitions runs when it is
imported.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

_PATH = re.compile(r"([A-Za-z_][\w.]*)(?:[:.]([A-Za-z_]\w*))?")
_OWN_USE = frozenset(
    {
        *("property", "cached_property", "setter", "staticmethod", "classmethod", "abstractmethod", "override"),
        *("cache", "lru_cache", "contextmanager", "dataclass"),
    }
)
"""Decorators that call nothing by themselves: with others, as validators have, what they decorate is used by them."""
_PLAIN_BASES = frozenset(
    {"Protocol", "Generic", "NamedTuple", "StrEnum", "Enum", "IntEnum", "ABC", "BaseModel", "TypedDict", "str", "int"}
)
"""Classes that call no method of their subclasses by a name of its own."""
Definition = tuple[str, str]
"""Module, and the name within: ``name``, or ``class.method``."""


@dataclass(slots=True)
class ModuleNames:
    """What a module defines and imports.

    Attributes:
        definitions: name -> the statements that make it.
        methods: class -> method -> its statement.
        imported: local name -> module and name there; no name where it is the module itself.
        statements: what runs at the import besides.
    """

    definitions: dict[str, list[ast.stmt]] = field(default_factory=lambda: defaultdict(list))
    methods: dict[str, dict[str, ast.stmt]] = field(default_factory=lambda: defaultdict(dict))
    imported: dict[str, tuple[str, str]] = field(default_factory=dict)
    statements: list[ast.stmt] = field(default_factory=list)


class Definitions:
    """The definitions of some modules, and which of them are reached.

    Args:
        sources: module -> its code.
        texts: further texts whose words count as mentioned, such as templates.
    """

    def __init__(self, sources: Mapping[str, str], texts: Iterable[str] = ()) -> None:
        self._modules = {name: _read_names(name, ast.parse(code), sources) for name, code in sources.items()}
        self._mentioned = {word for text in texts for word in re.findall(r"\w+", text)}
        self._reached: set[Definition] = set()
        self._loaded: set[str] = set()
        self._open: list[Definition] = []

    def public(self) -> set[Definition]:
        """Return all whose names do not begin with an underscore."""
        names = {
            (module, name) for module, names in self._modules.items() for name in (*names.definitions, *_paths(names))
        }
        return {(module, name) for module, name in names if not any(part[0] == "_" for part in name.split("."))}

    def reach(self, roots: Iterable[Definition]) -> set[Definition]:
        """Return what is reached from some definitions; a root without a name is a module that is started."""
        for module, name in roots:
            self._load(module)
            if name:
                self._find(module, name)
        while self._open:
            self._scan(*self._open.pop())
        return set(self._reached)

    def _load(self, module: str) -> None:
        """Reach what runs when a module is imported, and what it imports."""
        if module in self._loaded or module not in self._modules:
            return
        self._loaded.add(module)
        names = self._modules[module]
        for target, name in names.imported.values():
            self._load(f"{target}.{name}" if f"{target}.{name}" in self._modules else target)
        for statement in names.statements:
            self._mention(module, statement)

    def _find(self, module: str, name: str) -> None:
        """Reach a name of a module: a definition, or what it imports under that name."""
        names = self._modules.get(module)
        if names is None or (module, name) in self._reached:
            return
        self._load(module)
        if name in names.definitions:
            self._reached.add((module, name))
            self._open.append((module, name))
        elif name in names.imported:
            target, original = names.imported[name]
            if original:
                self._find(target, original)

    def _scan(self, module: str, name: str) -> None:
        """Reach what a reached definition mentions."""
        names = self._modules[module]
        owner, _, method = name.partition(".")
        if method:
            self._mention(module, names.methods[owner][method])
            return
        for statement in names.definitions[name]:
            if isinstance(statement, ast.ClassDef):
                called = self._is_called_elsewhere(module, statement)
                for part in (*statement.decorator_list, *statement.bases, *statement.keywords, *statement.body):
                    if not isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef):
                        self._mention(module, part)
                    elif called or part.name[0] == "_" or part.name in self._mentioned or _is_hooked(part):
                        self._reach_method(module, f"{name}.{part.name}")
            else:
                self._mention(module, statement)

    def _reach_method(self, module: str, path: str) -> None:
        if (module, path) not in self._reached:
            self._reached.add((module, path))
            self._open.append((module, path))

    def _is_called_elsewhere(self, module: str, statement: ast.ClassDef) -> bool:
        """Whether a class has a base of another project, which may call its methods."""
        bases = {base.value if isinstance(base, ast.Subscript) else base for base in statement.bases}
        names = {base.id if isinstance(base, ast.Name) else ast.unparse(base).rpartition(".")[2] for base in bases}
        here = self._modules[module]
        ours = {
            name for name in names if name in here.definitions or here.imported.get(name, ("",))[0] in self._modules
        }
        return any(not name.endswith(("Error", "Exception")) for name in names - ours - _PLAIN_BASES)

    def _mention(self, module: str, tree: ast.AST) -> None:
        """Reach what a piece of code mentions."""
        names = self._modules[module]
        for node in ast.walk(tree):
            if isinstance(node, ast.Name):
                self._find(module, node.id)
            elif isinstance(node, ast.Call) and _is_cast(node.func) and _is_text(node.args[0]):
                self._mention(module, ast.parse(ast.literal_eval(node.args[0])))
            elif isinstance(node, ast.Attribute):
                self._mention_attribute(names, node)
            elif isinstance(node, ast.Import | ast.ImportFrom):
                for target, name in _imports(node, module, self._modules).values():
                    self._load(target)
                    self._find(target, name)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                self._mention_path(node.value)

    def _mention_attribute(self, names: ModuleNames, node: ast.Attribute) -> None:
        parts = _dotted_names(node)
        target, original = names.imported.get(parts[0], ("", ""))
        if target:
            module = f"{target}.{original}" if original else target
            while len(parts) > 2 and f"{module}.{parts[1]}" in self._modules:
                module, parts = f"{module}.{parts[1]}", parts[1:]
            self._find(module, parts[1])
        self._mention_name(node.attr)

    def _mention_name(self, name: str) -> None:
        """Reach the methods of this name of all classes that are reached."""
        if name in self._mentioned:
            return
        self._mentioned.add(name)
        for module, owner in list(self._reached):
            if name in self._modules[module].methods.get(owner, {}):
                self._reach_method(module, f"{owner}.{name}")

    def _mention_path(self, text: str) -> None:
        """Reach what a text names: a module, ``module:attribute`` or ``package.module.attribute``.

        A text that is the end of a longer one begins with a dot: it names the modules that end so.
        """
        path = _PATH.fullmatch(text.lstrip("."))
        if path is None:
            return
        base, name = path[1], path[2] or ""
        dotted, _, last = base.rpartition(".")
        for module, attribute in ((base, name), (dotted, last)):
            for target in self._modules_of(module, is_end=text.startswith(".")):
                self._load(target)
                self._load(f"{target}.__main__")
                self._find(target, attribute)

    def _modules_of(self, path: str, *, is_end: bool) -> list[str]:
        """Return the modules of this name, or those whose name ends with it."""
        if is_end:
            return [module for module in self._modules if module.endswith(f".{path}")]
        return [path] if path in self._modules else []


def _dotted_names(node: ast.Attribute) -> list[str]:
    """Return the names of a path such as ``module.Class.method``; the first is empty where it begins with no name."""
    names, base = [node.attr], node.value
    while isinstance(base, ast.Attribute):
        names.append(base.attr)
        base = base.value
    names.append(base.id if isinstance(base, ast.Name) else "")
    return names[::-1]


def _is_cast(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id == "cast"


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _paths(names: ModuleNames) -> Iterator[str]:
    return (f"{owner}.{method}" for owner, methods in names.methods.items() for method in methods)


def _is_hooked(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether a decorator hands the function to someone who calls it."""
    calls = (node.func if isinstance(node, ast.Call) else node for node in function.decorator_list)
    return any(ast.unparse(node).rpartition(".")[2] not in _OWN_USE for node in calls)


def _read_names(module: str, tree: ast.Module, modules: Mapping[str, object]) -> ModuleNames:
    """Return the names of a module; those within ``if`` and ``try`` of the module count as its own."""
    result = ModuleNames()
    for statement in tree.body:
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            result.definitions[statement.name].append(statement)
            if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef) and _is_hooked(statement):
                result.statements.append(ast.Expr(ast.Name(statement.name, ast.Load())))
            if isinstance(statement, ast.ClassDef):
                functions = (
                    part for part in statement.body if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef)
                )
                result.methods[statement.name] |= {part.name: part for part in functions}
        elif isinstance(statement, ast.Assign | ast.AnnAssign):
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            for name in (part.id for target in targets for part in ast.walk(target) if isinstance(part, ast.Name)):
                result.definitions[name].append(statement)
        elif not isinstance(statement, ast.Import | ast.ImportFrom):
            result.statements.append(statement)
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            result.imported |= _imports(node, module, modules)
    return result


def _imports(
    node: ast.Import | ast.ImportFrom, module: str, modules: Mapping[str, object]
) -> dict[str, tuple[str, str]]:
    """Return local name -> module and name there, as an import binds them."""
    if isinstance(node, ast.Import):
        names = [(alias.asname or alias.name.partition(".")[0], alias) for alias in node.names]
        return {local: (alias.name if alias.asname else local, "") for local, alias in names}
    base = node.module or ""
    if node.level:
        base = ".".join([*module.split(".")[: -node.level], *([base] if base else [])])
    bound = {}
    for alias in node.names:
        path = f"{base}.{alias.name}"
        bound[alias.asname or alias.name] = (path, "") if path in modules else (base, alias.name)
    return bound
