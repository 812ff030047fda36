"""``python -m benchmarks.replay.times_table --rows JSON ...``: the default policy where slots take their time to come.

Rows of ``python -m benchmarks.replay --scenario slots_180s taskmanagers_4 --json JSON``: tables of docs/replay.md, of
tuning traces and of test traces, with a line per trace and scenario, and in it what each candidate costs after day one.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from statistics import geometric_mean

from benchmarks.arguments import readable_file
from benchmarks.replay.best_form_table import read_rows
from benchmarks.replay.replay_candidates import BOUND
from benchmarks.replay.replay_cases import Row
from benchmarks.replay.replay_tables import compute_mean
from benchmarks.replay.split import read_split
from benchmarks.replay.tables import format_table
from cli.arguments import CommandParser
from include.atomic_write import write_text
from include.settings import PROJECT
from tools.marked_page import put_between_marks

PAGE = PROJECT / "docs" / "replay.md"
MARKS = "<!-- waits: written by benchmarks.replay.times_table -->\n", "<!-- end of waits -->"
_SEGMENT = "after_first_day"
_FIRST = "programme"
_OTHERS = ("programme_not_told", "programme_no_forecast", "programme_true_load", "controller_alone")
_SCENARIOS = {"slots": "slots after {} s", "taskmanagers": "TaskManagers of {}"}


def build_table(rows: Sequence[Row]) -> list[list[str]]:
    """Return headings and a line per trace and scenario: cost, and in brackets late minutes a day; rises of the first.

    Args:
        rows: of replays; a trace is named ``TRACE+SCENARIO``.
    """
    counted = [row for row in rows if row["segment"] == _SEGMENT]
    policies = sorted({str(row["policy"]) for row in counted}, key=lambda name: (name != _FIRST, name))
    cells = [["trace", "scenario", "seeds", *policies, "rises ahead"]]
    for name in sorted({str(row["trace"]) for row in counted}, key=_read_scenario):
        trace, kind, value = _read_scenario(name)
        own = {
            policy: [one for one in counted if (one["trace"], one["policy"]) == (name, policy)] for policy in policies
        }
        costs = [_format_cost(policy, mine) if mine else "-" for policy, mine in own.items()]
        share, minutes = (compute_mean(own[_FIRST], f"rises_ahead_{one}") for one in ("share", "minutes"))
        seeds = len({row["seed"] for row in own[_FIRST]})
        cells.append(
            [
                *(trace, _SCENARIOS[kind].format(value), str(seeds), *costs),
                f"{share:.0%}, by {minutes:.0f} min" if share > 0 else "none",
            ]
        )
    return cells


def build_summary(rows: Sequence[Row]) -> list[list[str]]:
    """Return headings and a line per scenario: what the first costs over each of the others, mean and range of traces.

    Args:
        rows: of replays; a trace is named ``TRACE+SCENARIO``.
    """
    costs: dict[tuple[str, int], dict[str, dict[tuple[object, object], float]]] = {}
    for row in rows:
        if row["segment"] == _SEGMENT:
            trace, kind, value = _read_scenario(str(row["trace"]))
            of_policy = costs.setdefault((kind, value), {}).setdefault(str(row["policy"]), {})
            of_policy[trace, row["seed"]] = float(str(row["cost"]))
    cells = [["scenario", *_OTHERS]]
    for (kind, value), known in sorted(costs.items()):
        ratios = [
            [known[_FIRST][one] / cost for one, cost in known.get(other, {}).items() if one in known[_FIRST]]
            for other in _OTHERS
        ]
        shown = [
            f"{geometric_mean(each):.2f} ({min(each):.2f} to {max(each):.2f}; {len(each)})" if each else "-"
            for each in ratios
        ]
        cells.append([_SCENARIOS[kind].format(value), *shown])
    return cells


def _format_cost(policy: str, rows: Sequence[Row]) -> str:
    """Return what a candidate costs and for how long a day it is late; of the bound what it is, not its schedule's."""
    if policy == BOUND:
        return f"{compute_mean(rows, 'bound'):.0f}"
    return f"{compute_mean(rows, 'cost'):.0f} ({compute_mean(rows, 'late_minutes_per_day'):.0f})"


def _read_scenario(name: str) -> tuple[str, str, int]:
    """Return the trace, what is varied, and its value."""
    trace, _, scenario = name.partition("+")
    kind, _, value = scenario.partition("_")
    return trace, kind, int(value.removesuffix("s"))


def main(argv: Sequence[str] | None = None) -> int:
    """Publish rows."""
    parser = CommandParser(prog="replay.times_table", description=__doc__)
    parser.add_argument("--rows", type=readable_file, nargs="+", required=True, metavar="JSON", help="of replays")
    parser.add_argument("--page", type=Path, default=PAGE, metavar="PAGE", help="default: docs/replay.md")
    options = parser.parse_args(argv)
    rows, tested = read_rows(options.rows), read_split("test").traces
    parts = [
        f"`{_FIRST}` over others, geometric mean, range and number of runs:\n\n{format_table(build_summary(rows))}"
    ]
    for kind, (side, is_test) in product(_SCENARIOS, (("Tuning", False), ("Test", True))):
        named = [(*_read_scenario(str(row["trace"])), row) for row in rows]
        mine = [row for trace, own, _, row in named if own == kind and (trace in tested) == is_test]
        parts += [f"{side} traces:\n\n{format_table(build_table(mine))}"] if mine else []
    page = options.page.read_text(encoding="utf-8")
    write_text(options.page, put_between_marks(page, MARKS, "\n{}\n".format("\n\n".join(parts))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
