"""The examples in docstrings give the figures that stand there."""

from __future__ import annotations

import doctest
import importlib
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
FILES = [path for folder in ("include", "models") for path in sorted((REPOSITORY / folder).rglob("*.py"))]
WITH_EXAMPLES = [
    ".".join(path.relative_to(REPOSITORY).with_suffix("").parts) for path in FILES if ">>> " in path.read_text()
]


@pytest.mark.parametrize("name", WITH_EXAMPLES)
def test_examples_give_what_they_say(name: str) -> None:
    result = doctest.testmod(importlib.import_module(name))
    assert result.attempted > 0
    assert result.failed == 0


def test_functions_that_a_reader_calls_first_have_examples() -> None:
    finder = doctest.DocTestFinder(exclude_empty=True)
    shown = [one.name for name in WITH_EXAMPLES for one in finder.find(importlib.import_module(name)) if one.examples]
    assert len([name for name in shown if name.startswith("models.")]) >= 20
