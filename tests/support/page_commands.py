"""Commands that pages of ``docs/`` name, and how a test runs them as a person would."""

from __future__ import annotations

import importlib
import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from tools.commands_doc import MAKEFILE, find_verb, read_groups

DOCS = Path(__file__).resolve().parents[2] / "docs"
_COMMAND = re.compile(r"\bmake ([a-z][a-z-]*)(?: ARGS=(\"(?:[^\"\\]|\\.)*\"|[^\s`]+))?")
TARGETS = {one.name: one for _, targets in read_groups(MAKEFILE.read_text()) for one in targets}


@dataclass(frozen=True, slots=True)
class PageCommand:
    """A command as a page has it: ``make <target> ARGS="<arguments>"``."""

    target: str
    arguments: tuple[str, ...]

    @property
    def module(self) -> ModuleType:
        return importlib.import_module(find_verb(TARGETS[self.target]).module)

    def run(self, names: Mapping[str, str], *further: str) -> int:
        """Run it in this process with the page's placeholders replaced; returns the exit code."""
        argv = [names.get(word, word) for word in self.arguments]
        main: Callable[[Sequence[str]], int] = self.module.main
        try:
            return main([*find_verb(TARGETS[self.target]).words, *argv, *further])
        except SystemExit as stopped:
            return int(stopped.code or 0)


def find_commands(text: str) -> Iterator[PageCommand]:
    """Yield the commands within the code of a page, in order."""
    for code in re.findall(r"```sh\n(.*?)```|`([^`\n]+)`", text, re.DOTALL):
        for target, arguments in _COMMAND.findall("".join(code)):
            (words,) = shlex.split(arguments) if arguments else ("",)
            yield PageCommand(target, tuple(shlex.split(words)))


def read_page(name: str) -> str:
    return (DOCS / f"{name}.md").read_text()
