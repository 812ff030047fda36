"""``python -m tools.mutate_rules``: rules and arithmetic of which the unit tests do not notice a change.

A change that no test notices is shown to the type checker, which ``make check`` asks as well: many a guard is there for
it alone. ``[tool.mutation.rules]`` in pyproject.toml names the files, by groups, and the tests; of a group with
``arithmetic`` operators and numbers are changed as well as rules removed and inverted. Without any change the
tests are run once, to learn which of them execute which rule and for how long; each change is then tried in a process
of its own with those that execute it. Nothing of the project is written; outcomes are in ``out/mutation``, from where
an interrupted run goes on.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cli.arguments import CommandParser, number, whole_number
from include.settings import PROJECT
from tools.rule_breaks import Break, read_breaks
from tools.rule_trials.outcomes import SURVIVED_QUICK, list_wrong_equivalents, read_equivalents, summarise
from tools.rule_trials.trying import Trials

# Imported before the processes are forked, which then need not: what the tests need and the project does not change.
_PRELOADED = ("pytest", "hypothesis", "numpy", "pandas", "pyarrow", "deltalake", "pydantic", "croniter", "structlog")


@dataclass(frozen=True, slots=True)
class RuleFiles:
    """What is changed and counted as one, the tests that have to notice, and whether arithmetic is changed."""

    name: str
    sources: tuple[str, ...]
    tests: tuple[str, ...]
    is_arithmetic: bool = False

    def files(self, root: Path) -> list[str]:
        """Return the source files below a root, relative to it."""
        return sorted({str(path.relative_to(root)) for pattern in self.sources for path in root.glob(pattern)})


def read_rule_files(pyproject: Path = PROJECT / "pyproject.toml") -> list[RuleFiles]:
    """Return what pyproject.toml names."""
    table = tomllib.loads(pyproject.read_text())["tool"]["mutation"]["rules"]
    return [
        RuleFiles(name, tuple(entry["sources"]), tuple(entry["tests"]), entry.get("arithmetic", False))
        for name, entry in table.items()
    ]


def run(options: argparse.Namespace, known: Sequence[RuleFiles]) -> int:
    """Try the changes that were asked for; returns the exit code: 1 where fewer are noticed than is asked for."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # a process with several threads may not be forked
    for name in _PRELOADED:
        importlib.import_module(name)
    breaks: dict[str, list[Break]] = {}
    known = [one for one in known if not options.group or one.name in options.group]
    for one in known:
        files = [file for file in one.files(PROJECT) if not options.file or file in options.file]
        breaks[one.name] = read_breaks(PROJECT, files, is_arithmetic=one.is_arithmetic)[:: options.every]
    tests = options.tests or list(dict.fromkeys(test for one in known for test in one.tests))
    every_file = [file for one in known for file in one.files(PROJECT)]
    wanted = [change for changes in breaks.values() for change in changes]
    tried = Trials(PROJECT, every_file, tests, options.children).run(wanted, options.anew, options.quick)
    if tried is None:
        return 2
    outcomes = {one.key: tried[one.key].outcome if one.key in tried else SURVIVED_QUICK for one in wanted}
    equivalents, shares = read_equivalents(), []
    for name, changes in [*breaks.items(), ("all", wanted)]:
        pairs = [(change, outcomes[change.key]) for change in changes]
        lines = summarise(name, pairs, equivalents)
        print("\n".join(line for line in lines if name != "all" or "survived" not in line), flush=True)
        if pairs:
            shares.append(share_noticed(pairs, equivalents))
    is_whole = options.every == 1 and not (options.file or options.tests or options.quick)
    wrong = list_wrong_equivalents([(one, outcomes[one.key]) for one in wanted], equivalents, every_file)
    if is_whole and wrong:
        print("\n".join(f"mutate-rules: listed as equivalent, and is not: {place}" for place in wrong), file=sys.stderr)
    return 1 if (is_whole and wrong) or any(share < options.least for share in shares) else 0


def share_noticed(tried: Sequence[tuple[Break, str]], equivalents: dict[str, str]) -> float:
    """Return the share that was noticed of the changes that make a difference."""
    lines = summarise("", tried, equivalents)
    remaining = sum("    survived: " in line for line in lines)
    counted = sum(outcome != "survived" or one.place not in equivalents for one, outcome in tried)
    return 1 - remaining / counted if counted else 1.0


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command."""
    known = read_rule_files()
    every_file = sorted({file for one in known for file in one.files(PROJECT)})
    every_test = sorted({test for one in known for test in one.tests})
    parser = CommandParser(prog="mutate-rules", description=(__doc__ or "").partition("\n")[0])
    groups = [one.name for one in known]
    parser.add_argument(
        "--group", nargs="+", choices=groups, metavar="GROUP", help=f"of {', '.join(groups)}; default: all"
    )
    parser.add_argument("--file", nargs="+", choices=every_file, metavar="FILE", help="only these; default: all")
    parser.add_argument("--tests", nargs="+", choices=every_test, metavar="FILE", help="only these; default: all")
    parser.add_argument("--quick", action="store_true", help="no change is shown to tests of more than seconds")
    parser.add_argument("--every", type=whole_number(1, 1000), default=1, help="only every n-th change (default: 1)")
    parser.add_argument("--least", type=number(0, 1), default=0.0, help="exit 1 where a smaller share is noticed")
    parser.add_argument("--children", type=whole_number(1, 256), default=os.cpu_count() or 1, help="changes at a time")
    parser.add_argument("--anew", action="store_true", help="forget the outcomes of earlier runs")
    return run(parser.parse_args(argv), known)


if __name__ == "__main__":
    sys.exit(main())
