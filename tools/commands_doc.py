"""``make docs``: docs/commands.md, from the verbs with their parsers, the Makefile, and parts of its long tests."""

from __future__ import annotations

import argparse
import importlib
import inspect
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import ModuleType
from typing import Any, NoReturn
from unittest import mock

from cli.arguments import CommandParser
from cli.console import VERBS
from include.atomic_write import write_text
from include.settings import PROJECT
from tools.long_parts import read_parts
from tools.markdown import format_list, format_table
from tools.marked_page import put_between_marks

PAGE = PROJECT / "docs" / "commands.md"
MAKEFILE = PROJECT / "Makefile"
MARKS = ("<!-- commands: written by `make docs` from the verbs and the Makefile -->", "<!-- end of commands -->")
_TARGET = re.compile(r"^([a-z-]+):[^#\n]*## *(.+)$", re.MULTILINE)


class _ParsedError(Exception):
    """Carries the parser of a command instead of what it would have parsed."""

    def __init__(self, parser: argparse.ArgumentParser) -> None:
        super().__init__(parser.prog)
        self.parser = parser


def read_groups(makefile: str) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """Yield each group of the Makefile with its targets and what they do, in order."""
    for part in makefile.split("\n##@ ")[1:]:
        title, _, body = part.partition("\n")
        yield title.strip(), _TARGET.findall(body)


def find_module(verb: str) -> ModuleType:
    """Return the module whose ``main`` takes the arguments of a verb."""
    return importlib.import_module(VERBS[verb].module or f"lab.commands.{verb}")


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


def list_options(parser: argparse.ArgumentParser, words: Sequence[str]) -> list[tuple[str, str]]:
    """Return the arguments of a command with their meaning; of several commands in one, those of the first word."""
    formatter, rows = parser._get_formatter(), list[tuple[str, str]]()
    for action in parser._actions:  # argparse shows none of this publicly
        if isinstance(action, argparse._HelpAction):
            continue
        if isinstance(action, argparse._SubParsersAction):
            if words:
                return list_options(action.choices[words[0]], words[1:])
            rows += [(f"`{one.dest}`", one.help or "") for one in action._choices_actions]
            continue
        if not action.option_strings and words and action.choices:
            continue  # the verb has chosen
        meaning = formatter._expand_help(action) if action.help else ""
        rows.append((f"`{_usage(action)}`", meaning.replace(f"{PROJECT}/", "")))
    return rows


def _usage(action: argparse.Action) -> str:
    name = action.option_strings[-1] if action.option_strings else ""
    if action.nargs == 0:
        return name
    named = "|".join(map(str, action.choices)) if action.choices else action.metavar or action.dest
    value = named if isinstance(named, str) else " ".join(named)
    return f"{name} {value.upper() if name and not action.choices else value}".strip()


def describe_commands(makefile: str) -> str:
    """Return the sections: verbs with their arguments, targets of make, parts of its long tests."""
    options = {name: list_options(parser, VERBS[name].words) for name, parser in _find_parsers()}
    common = find_common(options)
    parts = [_list_commands((f"tidewise {name}", verb.meaning) for name, verb in VERBS.items())]
    parts += ["## Arguments of several verbs", format_table(("argument", "meaning", "of"), common.values())]
    for name, rows in options.items():
        if own := [row for row in rows if row not in common]:
            parts += [f"## tidewise {name}", format_list(own)]
    for title, targets in read_groups(makefile):
        parts += [f"## make: {title.lower()}", _list_commands((f"make {name}", meaning) for name, meaning in targets)]
    long = (
        (name.removeprefix("test-long "), f"{part.meaning} ({part.minutes})") for name, part in read_parts().items()
    )
    return "\n\n".join([*parts, "## make test-long: its parts, with the most minutes of each", _list_commands(long)])


def _find_parsers() -> Iterator[tuple[str, argparse.ArgumentParser]]:
    for name, verb in VERBS.items():
        if (parser := find_parser(find_module(name), verb.words)) is not None:
            yield name, parser


def find_common(
    options: Mapping[str, Sequence[tuple[str, str]]],
) -> dict[tuple[str, str], tuple[str, str, str]]:
    """Return the arguments that several verbs have with the same meaning, each with these verbs."""
    verbs: dict[tuple[str, str], list[str]] = {}
    for name, rows in options.items():
        for row in rows:
            verbs.setdefault(row, []).append(f"`{name}`")
    return {row: (*row, ", ".join(names)) for row, names in verbs.items() if len(names) > 1}


def _list_commands(commands: Iterable[tuple[str, str]]) -> str:
    return format_list((f"`{name}`", meaning) for name, meaning in commands)


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
