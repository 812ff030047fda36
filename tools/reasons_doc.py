"""``make docs``: the tables of docs/reasons.md and docs/policies.md, from the enumerations of reasons."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from cli.arguments import CommandParser
from include.atomic_write import write_text
from include.domain.named_reason import NamedReason
from include.domain.quarantine_rules import Rule
from include.settings import PROJECT
from lab.stages.inputs.skipped_jobs import BacktestSkip, LearnSkip, ProfilingSkip
from models.control.reasons import Reason
from spark_jobs.plan.refusals import PlanRefusal
from tools.markdown import format_list, format_table
from tools.marked_page import put_between_marks

Tables = Mapping[str, tuple[type[NamedReason], tuple[str, ...]]]
PAGES: Mapping[Path, Tables] = {
    PROJECT / "docs" / "policies.md": {
        "jobs that backtest leaves out": (BacktestSkip, ("reason", "meaning")),
        "jobs that learn leaves out": (LearnSkip, ("reason", "meaning")),
        "jobs that profiling leaves out": (ProfilingSkip, ("reason", "meaning")),
    },
    PROJECT / "docs" / "reasons.md": {
        "refusals of a plan": (PlanRefusal, ("refusal of a plan", "why", "do")),
        "reasons of decisions": (Reason, ("reason of a decision", "why", "do")),
        "rules of the quarantine": (Rule, ("reason", "rule")),
    },
}
"""Page -> name between its marks -> where the rows come from, and the heads of its columns."""
_NOTHING = "nothing"


def format_reasons(reasons: type[NamedReason], heads: Sequence[str]) -> str:
    """Return the reasons in Markdown: a list, with a third head a table with their remedies.

    Reasons that ask for nothing stand in a list below the table.
    """
    if len(heads) == 2:
        return format_list((f"`{one}`", one.meaning) for one in reasons)
    table = format_table(heads, ((f"`{one}`", one.meaning, one.remedy) for one in reasons if one.remedy != _NOTHING))
    idle = format_list((f"`{one}`", one.meaning) for one in reasons if one.remedy == _NOTHING)
    return f"{table}\n\nThese ask nothing of you:\n\n{idle}" if idle else table


def update_page(page: str, tables: Tables) -> str:
    """Return the page with its tables replaced.

    Raises:
        UsageError: the page lacks the marks of a table.
    """
    for name, (reasons, heads) in tables.items():
        marks = (f"<!-- {name}: written by `make docs` -->", f"<!-- end of {name} -->")
        page = put_between_marks(page, marks, f"\n{format_reasons(reasons, heads)}\n")
    return page


def main(argv: Sequence[str]) -> int:
    """Write the pages; returns the exit code."""
    CommandParser(prog="reasons_doc", description=__doc__).parse_args(argv)
    for path, tables in PAGES.items():
        write_text(path, update_page(path.read_text(), tables))
        print(f"written: {path.relative_to(PROJECT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
