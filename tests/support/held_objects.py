"""How much an object holds: what grows from round to round in a process of months is a leak."""

from __future__ import annotations

import gc
from types import BuiltinFunctionType, FunctionType, ModuleType


def count_held(root: object) -> int:
    """Return how many objects can be reached from one, without classes, functions and modules."""
    known, waiting = set[int](), [root]
    while waiting:
        one = waiting.pop()
        if id(one) not in known and not isinstance(one, type | ModuleType | FunctionType | BuiltinFunctionType):
            known.add(id(one))
            waiting += gc.get_referents(one)
    return len(known)
