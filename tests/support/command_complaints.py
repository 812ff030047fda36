"""What commands say of arguments that they cannot use."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest


def read_complaint(
    main: Callable[[Sequence[str]], int], arguments: Sequence[str], capsys: pytest.CaptureFixture[str]
) -> str:
    """Return what a command says of its arguments: one line, with exit code 2 and nothing on its output."""
    try:
        code: object = main(arguments)
    except SystemExit as stopped:
        code = stopped.code
    printed = capsys.readouterr()
    assert code == 2, printed
    assert printed.out == ""
    lines = printed.err.splitlines()
    assert len(lines) == 1, lines
    return lines[0]
