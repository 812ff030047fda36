"""``make docs``: docs/commands.md, from the Makefile's targets and the parsers of the commands behind them."""

from __future__ import annotations

import argparse
import importlib
import inspect
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any, NoReturn
from unittest import mock

from cli.arguments import CommandParser
from cli.console import VERBS, Verb
from include.atomic_write import write_text
from include.settings import PROJECT
from tools.markdown import format_table
from tools.marked_page import put_between_marks

PAGE = PROJECT / "docs" / "commands.md"
MAKEFILE = PROJECT / "Makefile"
MARKS = ("<!-- commands: written by `make docs` from the Makefile and the commands -->", "<!-- end of commands -->")
FOR_DEVELOPERS = ("Measure and compare", "Work on it")
_TARGET = re.compile(r"^([a-z-]+):[^#\n]*## *(.+)\n((?:\t.*\n|\\\n)*)", re.MULTILINE)
_MODULE = re.compile(r"\$\(PY\) -m ([a-z_.]+)((?: [a-z]+)*) \$\(ARGS\)")


@dataclass(frozen=True, slots=True)
class Target:
    """A target of the Makefile.

    Attributes:
        module: that it starts with ``$(ARGS)``; empty without one.
        words: arguments before ``$(ARGS)``.
    """

    name: str
    meaning: str
    module: str
    words: tuple[str, ...]


class _ParsedError(Exception):
    """Carries the parser of a command instead of what it would have parsed."""

    def __init__(self, parser: argparse.ArgumentParser) -> None:
        super().__init__(parser.prog)
        self.parser = parser


def read_groups(makefile: str) -> Iterator[tuple[str, list[Target]]]:
    """Yield each group of the Makefile with its targets, in order."""
    for part in makefile.split("\n##@ ")[1:]:
        title, _, body = part.partition("\n")
        targets = []
        for name, meaning, recipe in _TARGET.findall(body):
            module, words = (_MODULE.findall(recipe) or [("", "")])[0]
            targets.append(Target(name, meaning.strip(), module, tuple(words.split())))
        yield title.strip(), targets


def find_verb(target: Target) -> Verb:
    """Return the module whose ``main`` a target calls, with the words before its arguments."""
    if target.module == "cli.console":
        return VERBS[target.words[0]]
    return VERBS["control"] if target.module == "controller" else Verb(target.module, "", target.words)


def find_parser(module: ModuleType, words: Sequence[str] = ()) -> argparse.ArgumentParser | None:
    """Return the parser that a command makes for its arguments; None where it hands all of them on."""
    if "Parser" not in inspect.getsource(module):
        return None

    def stop(parser: argparse.ArgumentParser, *_: Any, **__: Any) -> NoReturn:
        raise _ParsedError(parser)

    with mock.patch.object(argparse.ArgumentParser, "parse_args", stop):
        try:
            module.main([*words])
        except _ParsedError as error:
            return error.parser
    raise LookupError(f"{module.__name__} has parsed no arguments")


def describe_options(parser: argparse.ArgumentParser, words: Sequence[str]) -> str:
    """Return the table of a command's arguments; of one with commands of its own, those of the first word."""
    formatter, rows = parser._get_formatter(), list[tuple[str, str]]()
    for action in parser._actions:  # argparse shows none of this publicly
        if isinstance(action, argparse._HelpAction):
            continue
        if isinstance(action, argparse._SubParsersAction):
            if words:
                return describe_options(action.choices[words[0]], words[1:])
            rows += [(f"`{one.dest}`", one.help or "") for one in action._choices_actions]
            continue
        if not action.option_strings and words and action.choices:
            continue  # the Makefile has chosen
        meaning = formatter._expand_help(action) if action.help else ""
        rows.append((f"`{_usage(action)}`", meaning.replace(f"{PROJECT}/", "")))
    return format_table(("argument", "meaning"), rows) if rows else "It takes no arguments."


def _usage(action: argparse.Action) -> str:
    name = action.option_strings[-1] if action.option_strings else ""
    if action.nargs == 0:
        return name
    named = "|".join(map(str, action.choices)) if action.choices else action.metavar or action.dest
    value = named if isinstance(named, str) else " ".join(named)
    return f"{name} {value.upper() if name and not action.choices else value}".strip()


def list_targets(targets: Sequence[Target]) -> str:
    """Return the table of a group."""
    return format_table(("command", "what it does"), ((f"`make {one.name}`", one.meaning) for one in targets))


def describe_commands(makefile: str) -> str:
    """Return the sections of all groups; commands for developers without their arguments."""
    parts = []
    for title, targets in read_groups(makefile):
        parts += [f"## {title}", list_targets(targets)]
        for one in targets:
            if not one.module or title in FOR_DEVELOPERS:
                continue
            verb = find_verb(one)
            parser = find_parser(importlib.import_module(verb.module), verb.words)
            if parser is not None:
                parts += [f"### make {one.name}", describe_options(parser, verb.words)]
    return "\n\n".join(parts)


def update_page(page: str) -> str:
    """Return the page with its tables replaced."""
    return put_between_marks(page, MARKS, f"\n{describe_commands(MAKEFILE.read_text())}\n")


def main(argv: Sequence[str]) -> int:
    """Write the page; returns the exit code."""
    CommandParser(prog="commands_doc", description=__doc__).parse_args(argv)
    write_text(PAGE, update_page(PAGE.read_text()))
    print(f"written: {PAGE.relative_to(PROJECT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
