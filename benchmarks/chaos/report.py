"""The table of faults and outcomes: on the console, as Markdown and as JSON."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.chaos.run import Injected, Result
from benchmarks.chaos.scene import Fault

_COLUMNS = ("#", "befalls", "fault", "job", "expected", "outcome", "s", "note")


def show(result: Result, console: Console) -> None:
    """Print the table and what has to hold."""
    table = Table(*_COLUMNS, title=f"faults and outcomes, seed {result.seed}")
    for one in result.injected:
        table.add_row(*_cells(one))
    console.print(table)
    for line in summarise(result):
        console.print(line, highlight=False)


def summarise(result: Result) -> list[str]:
    """Return what the run found, a sentence each."""
    verdicts = Counter(one.outcome.verdict for one in result.injected)
    counted = ", ".join(f"{count} {verdict}" for verdict, count in verdicts.most_common())
    matched = [
        f"{len(result.injected)} of {result.asked} faults in {result.seconds / 60:.1f} min: {counted}",
        f"{sum(one.is_expected for one in result.injected)} ended as was expected before the run",
        f"{result.puts} requests came to the proxy; the reactive part wanted {result.reactive} of them",
    ]
    matched += [f"VIOLATED: {one.invariant}: {one.detail}" for one in result.violations]
    matched += [f"LOST: {one}" for one in result.losses]
    if not result.violations:
        matched.append("no invariant was violated")
    if not result.losses:
        matched.append(
            "every restart restored the newest checkpoint; records due, emitted and counted add up, and of each job in "
            "one checkpoint what was emitted is what the sink has got and the state holds"
        )
    return matched


def write_expected(faults: Sequence[Fault], folder: Path) -> Path:
    """Write down how each fault may end, before the run."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = ["| # | befalls | fault | may end |", "|---|---|---|---|"]
    for number, fault in enumerate(faults, 1):
        lines.append(f"| {number} | {fault.group} | {fault.name} | {' or '.join(fault.expected)} |")
    path = folder / "expected.md"
    path.write_text("# How each fault may end\n\n" + "\n".join(lines) + "\n")
    return path


def write(result: Result, folder: Path) -> list[Path]:
    """Write the result; returns the files."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = [f"| {' | '.join(_COLUMNS)} |", f"|{'---|' * len(_COLUMNS)}"]
    lines += [f"| {' | '.join(cell.replace('|', '/') for cell in _cells(one))} |" for one in result.injected]
    listed = "\n".join(f"- {line}" for line in summarise(result))
    markdown, data = folder / "faults.md", folder / "faults.json"
    markdown.write_text(f"# Faults and outcomes, seed {result.seed}\n\n" + "\n".join(lines) + f"\n\n{listed}\n")
    data.write_text(json.dumps(_plain(result), indent=1) + "\n")
    return [markdown, data]


def _cells(one: Injected) -> list[str]:
    note = "; ".join(filter(None, [one.note, f"attempt {one.attempts}" if one.attempts > 1 else ""]))
    expected, outcome = " or ".join(one.fault.expected), str(one.outcome) if one.is_expected else f"{one.outcome} (!)"
    return [str(one.number), one.fault.group, one.fault.name, one.job, expected, outcome, f"{one.seconds:.0f}", note]


def _plain(result: Result) -> dict[str, object]:
    return {
        "seed": result.seed,
        "is_good": result.is_good,
        "seconds": round(result.seconds, 1),
        "puts": result.puts,
        "reactive": result.reactive,
        "faults": [
            {
                "number": one.number,
                "group": one.fault.group,
                "name": one.fault.name,
                "job": one.job,
                "expected": list(one.fault.expected),
                "is_expected": one.is_expected,
                "verdict": one.outcome.verdict,
                "reason": one.outcome.reason,
                "seconds": round(one.seconds, 1),
                "attempts": one.attempts,
                "began_s": round(one.began_s, 3),
                "note": one.note,
            }
            for one in result.injected
        ],
        "violations": [
            {"invariant": one.invariant, "at_s": one.at_s, "detail": one.detail} for one in result.violations
        ],
        "losses": list(result.losses),
    }
