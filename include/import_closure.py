"""Which files of the project can run where a part of it is started: its modules and all that they import."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping

_IMPORT = re.compile(
    rb"^[ \t]*(?:from[ \t]+([\w.]+)[ \t]+import[ \t]+(\([^)]*\)|[^\n#]+)|import[ \t]+([^\n#]+))", re.MULTILINE
)
_COMMENT = re.compile(rb"#[^\n]*")
_NAME = re.compile(rb"[\w.]+")


def close_over_imports(files: Mapping[str, bytes], roots: Iterable[str]) -> list[str]:
    """Return the files that some modules and packages are made of and can import, in order.

    Imports inside functions count.  What is imported by a name in a string has to be among the roots.  Files that are
    no Python code belong to every module of their folder. Roots are modules, or packages with all that is in them; one
    that is not in the files is passed over.
    """
    modules = {_module_of(path): path for path in files if path.endswith(".py")}
    open_names = [name for root in roots for name in modules if name == root or name.startswith(f"{root}.")]
    reached: set[str] = set()
    while open_names:
        name = open_names.pop()
        if name in reached:
            continue
        reached.add(name)
        open_names += [parent for parent in _parents(name) if parent in modules]
        open_names += _imported(files[modules[name]], modules)
    result = {modules[name] for name in reached}
    folders = {path.rpartition("/")[0] for path in result}
    data = {path for path in files if not path.endswith(".py") and path.rpartition("/")[0] in folders}
    return sorted(result | data)


def _module_of(path: str) -> str:
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def _parents(name: str) -> Iterator[str]:
    while "." in name:
        name = name.rpartition(".")[0]
        yield name


def _imported(source: bytes, modules: Collection[str]) -> Iterator[str]:
    """Yield the project's modules that a source imports."""
    for base, names, plain in _IMPORT.findall(source):
        if plain:
            candidates = [part.split()[0].decode() for part in plain.split(b",") if part.split()]
        else:
            imported = _NAME.findall(_COMMENT.sub(b"", names))
            candidates = [base.decode(), *(f"{base.decode()}.{name.decode()}" for name in imported)]
        yield from (name for name in candidates if name in modules)
