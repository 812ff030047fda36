"""What a failure of a stage comes down to, in one line: the innermost cause, not the layers that passed it on."""

from __future__ import annotations

import re
from typing import Any

from py4j.protocol import Py4JJavaError

_RAISED = re.compile(r"[A-Za-z_][\w.]*(Error|Exception|Exit|Interrupt)\b(: .*)?")
_LONGEST = 500  # characters
_DEEPEST = 50  # causes: they may go in a circle


def describe_failure(error: BaseException) -> str:
    """Return type and message; of Java's exceptions the innermost cause, of a Python worker what was raised there."""
    if isinstance(error, Py4JJavaError):
        name, text = _innermost(error.java_exception)
    else:
        name, text = type(error).__name__, str(error)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    raised = [line for line in lines if _RAISED.fullmatch(line)]
    if raised and "Traceback" in text:
        return raised[-1][:_LONGEST]
    return (f"{name}: {lines[0]}" if lines else name)[:_LONGEST]


def _innermost(java: Any) -> tuple[str, str]:
    for _ in range(_DEEPEST):
        cause = java.getCause()
        if cause is None:
            break
        java = cause
    return str(java.getClass().getSimpleName()), str(java.getMessage() or "")
