"""Keep out of a short command what it does not use."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType


class _ExcludedPackage(MetaPathFinder):
    def __init__(self, package: str) -> None:
        self.package = package

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None = None,  # noqa: ARG002 - the signature is Python's
        target: ModuleType | None = None,  # noqa: ARG002
    ) -> ModuleSpec | None:
        if fullname == self.package:
            raise ModuleNotFoundError(f"{fullname} is left out of this command", name=fullname)
        return None


def leave_out(package: str) -> None:
    """Have no such package in this process; nothing happens when it is there already."""
    is_known = any(isinstance(one, _ExcludedPackage) and one.package == package for one in sys.meta_path)
    if package not in sys.modules and not is_known:
        sys.meta_path.insert(0, _ExcludedPackage(package))


def leave_pandas_out() -> None:
    """Have no pandas in this process.

    pyarrow imports it at the first value that it makes, to ask whether the value is one of pandas': a fifth of the
    processor time of a command that never has one.
    """
    leave_out("pandas")
