"""The part of papers.md on rules against single cases: run when it is written; where expectations are from."""

from __future__ import annotations

import json
from pathlib import Path

from benchmarks.conformance.kinds import run
from include.settings import PROJECT

FOLDER = PROJECT / "data" / "cases"
FILES = {"ds2": "ds2.json", "flink_autoscaler": "flink_autoscaler.json", "phoebe": "phoebe.jsonl"}
_ORIGINS = {
    "flink_autoscaler": "transcribed from the unit tests of its repository",
    "phoebe": "decisions in the logs of its prototype",
}


def format_conformance(folder: Path = FOLDER) -> str:
    """Return the section: agreeing cases per file, and which expectations of DS2's were published."""
    lines = [
        "## Decision rules against single cases",
        "",
        "`python -m benchmarks.conformance --kind {ds2,flink_autoscaler,phoebe} --cases FILE` runs any file in the",
        "formats of `data/cases`, prints each disagreement and exits with 1 if there is one.",
        "",
        "| cases | agree | of | expectations |",
        "|---|---|---|---|",
    ]
    computed = _computed_cases(folder)
    for kind, file in FILES.items():
        outcomes = run(kind, folder / file)
        origin = _ORIGINS.get(kind)
        if origin is None:
            origin = (
                f"{len(outcomes) - len(computed)} published (in the paper or the tests of its code); {len(computed)} "
                "computed from the paper's Eq. 7 and 8 on published rates, which shows the arithmetic and no more: "
                + ", ".join(f"`{name}`" for name in computed)
            )
        agree = sum(outcome.agrees for outcome in outcomes)
        lines.append(f"| `{file}` | {agree} | {len(outcomes)} | {origin} |")
    return "\n".join([*lines, ""])


def _computed_cases(folder: Path) -> list[str]:
    """Return the names of DS2's cases whose expected values nobody published."""
    cases = json.loads((folder / FILES["ds2"]).read_text(encoding="utf-8"))
    return [case["name"] for case in cases if case.get("published") is None]
