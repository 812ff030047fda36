"""Keep out of a short command what it does not use."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType


class _PandasLeftOut(MetaPathFinder):
    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None = None,  # noqa: ARG002 - the signature is Python's
        target: ModuleType | None = None,  # noqa: ARG002
    ) -> ModuleSpec | None:
        if fullname == "pandas":
            raise ModuleNotFoundError("pandas is left out of this command", name="pandas")
        return None


def leave_pandas_out() -> None:
    """Have no pandas in this process.

    pyarrow imports it at the first value that it makes, to ask whether the value is one of pandas': a fifth of the
    processor time of a command that never has one.
    """
    if "pandas" not in sys.modules and not any(isinstance(one, _PandasLeftOut) for one in sys.meta_path):
        sys.meta_path.insert(0, _PandasLeftOut())
