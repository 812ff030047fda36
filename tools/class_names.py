"""``python -m tools.class_names``: names of classes that several files share, and some drawn at random to be judged."""

from __future__ import annotations

import ast
import random
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence

from cli.arguments import CommandParser, whole_number
from include.settings import PROJECT
from tools.entry_points import PRODUCT, read_sources
from tools.markdown import format_table


def list_classes(sources: Mapping[str, bytes]) -> dict[str, list[tuple[str, str]]]:
    """Return name -> path and first line of the docstring of each class at a module's top level that has it."""
    result: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for path, content in sources.items():
        for node in ast.parse(content).body:
            if isinstance(node, ast.ClassDef):
                result[node.name].append((path, (ast.get_docstring(node) or "").partition("\n")[0]))
    return dict(sorted(result.items()))


def format_shared(classes: Mapping[str, Sequence[tuple[str, str]]]) -> str:
    """Return a table of the public names that stand in more than one file."""
    shared = {name: places for name, places in classes.items() if len(places) > 1 and not name.startswith("_")}
    rows = ((name, ", ".join(path for path, _ in places)) for name, places in shared.items())
    return format_table((f"{len(shared)} shared of {len(classes)} names", "files"), rows)


def format_drawn(classes: Mapping[str, Sequence[tuple[str, str]]], count: int, seed: int) -> str:
    """Return a table of names drawn at random, without replacement: the same for the same names and seed."""
    names = random.Random(seed).sample(list(classes), min(count, len(classes)))
    return format_table((f"seed {seed}", "file", "what"), ((name, *classes[name][0]) for name in names))


def main(argv: Sequence[str]) -> int:
    """Print what is asked for of the product's classes."""
    parser = CommandParser(prog="class_names", description=__doc__)
    parser.add_argument("--draw", type=whole_number(0), default=0, metavar="N", help="how many names to draw")
    parser.add_argument("--seed", type=whole_number(0), default=1)
    arguments = parser.parse_args(argv)
    classes = list_classes(read_sources(PROJECT, PRODUCT))
    print(format_drawn(classes, arguments.draw, arguments.seed) if arguments.draw else format_shared(classes))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
