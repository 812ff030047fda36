"""Commands that pages of ``docs/`` name, and how a test runs them as a person would."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from cli.console import VERBS, find_main
from tools.commands_doc import find_module

DOCS = Path(__file__).resolve().parents[2] / "docs"
_COMMAND = re.compile(r"\btidewise ([a-z]+)\b([^#\n]*)|\bmake ([a-z]+) ARGS=\"([^\"]*)\"")


@dataclass(frozen=True, slots=True)
class PageCommand:
    """A command as a page has it: ``tidewise <verb> <arguments>``, or ``make <verb> ARGS="<arguments>"``."""

    verb: str
    arguments: tuple[str, ...]

    @property
    def module(self) -> ModuleType:
        return find_module(self.verb)

    def run(self, names: Mapping[str, str], *further: str) -> int:
        """Run it in this process with the page's placeholders replaced; returns the exit code."""
        argv = [names.get(word, word) for word in self.arguments]
        try:
            return find_main(self.verb)([*argv, *further])
        except SystemExit as stopped:
            return int(stopped.code or 0)


def find_commands(text: str) -> Iterator[PageCommand]:
    """Yield the commands within the code of a page, in order."""
    for code in re.findall(r"```sh\n(.*?)```|`([^`\n]+)`", text, re.DOTALL):
        for verb, words, target, arguments in _COMMAND.findall("".join(code)):
            if verb in VERBS or target in VERBS:
                yield PageCommand(verb or target, tuple(shlex.split(words or arguments)))


def read_page(name: str) -> str:
    return (DOCS / f"{name}.md").read_text()
