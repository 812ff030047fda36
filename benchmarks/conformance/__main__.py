"""Run cases of a published system's rules: ``python -m benchmarks.conformance --kind ds2 --cases FILE [--json OUT]``.

Prints each disagreement and ends with ``N of M agree``.  Exit code 0 when all agree, 1 when not, 2 when the file cannot
be read as cases or the result cannot be written.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.conformance.cases import CaseFileError, Outcome
from benchmarks.conformance.kinds import KINDS, run
from cli.arguments import CommandParser
from include.atomic_write import write_text


def report(kind: str, cases: Path, outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Return the result as JSON types; numbers that JSON lacks as texts."""
    return {
        "kind": kind,
        "cases": cases.name,
        "agree": sum(outcome.agrees for outcome in outcomes),
        "total": len(outcomes),
        "disagreements": [
            {
                "case": outcome.name,
                "differing": list(outcome.differing),
                "expected": plain(outcome.expected),
                "got": plain(outcome.got),
            }
            for outcome in outcomes
            if not outcome.agrees
        ],
    }


def plain(value: Any) -> Any:
    """Return a value with infinite and unknown numbers written as texts."""
    if isinstance(value, dict):
        return {str(key): plain(inside) for key, inside in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(inside) for inside in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def show(outcome: Outcome) -> str:
    """Return a disagreement in words."""
    where = ", ".join(outcome.differing)
    expected, got = (json.dumps(plain(value), ensure_ascii=False) for value in (outcome.expected, outcome.got))
    return f"{outcome.name} ({where})\n  expected {expected}\n  got      {got}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    parser = CommandParser(prog="conformance", description=__doc__.partition("\n")[0])
    parser.add_argument("--kind", required=True, choices=sorted(KINDS), help="the format of the cases")
    parser.add_argument("--cases", required=True, type=Path, metavar="FILE", help="cases to run")
    parser.add_argument("--json", type=Path, metavar="OUT", help="also write the result to this file")
    given = parser.parse_args(arguments)
    try:
        outcomes = run(given.kind, given.cases)
    except CaseFileError as error:
        print(f"conformance: {error}", file=sys.stderr)
        return 2
    for outcome in outcomes:
        if not outcome.agrees:
            print(show(outcome))
    result = report(given.kind, given.cases, outcomes)
    if given.json is not None:
        try:
            write_text(given.json, json.dumps(result, indent=1) + "\n")
        except OSError as error:
            print(f"conformance: cannot write {given.json}: {error}", file=sys.stderr)
            return 2
    print(f"{result['agree']} of {result['total']} agree")
    return 0 if result["agree"] == result["total"] else 1


if __name__ == "__main__":
    sys.exit(main())
