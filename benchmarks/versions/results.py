"""What was seen on each cluster, kept as JSON from one run to the next."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from include.atomic_write import write_text

CHECKS = ("collect", "plan", "applied step", "refused", "refused by Flink", "lost TaskManager", "rescale history")


@dataclass(frozen=True, slots=True)
class Seen:
    """One cell: what was seen, and whether it is what has to be."""

    text: str
    is_right: bool = True


@dataclass(slots=True)
class Results:
    """Rows of two tables.

    Attributes:
        versions: version of Flink -> check -> what was seen.
        situations: what else was tried -> version of Flink, and what was seen.
    """

    versions: dict[str, dict[str, Seen]] = field(default_factory=dict)
    situations: dict[str, tuple[str, Seen]] = field(default_factory=dict)

    def note(self, version: str, check: str, text: str, *, is_right: bool = True) -> None:
        """Keep a cell."""
        self.versions.setdefault(version, {})[check] = Seen(text, is_right)

    def wrong(self) -> list[str]:
        """Return the cells that are not what they have to be."""
        of_versions = (
            f"{version}, {check}: {observed.text}"
            for version, row in self.versions.items()
            for check, observed in row.items()
            if not observed.is_right
        )
        others = (
            f"{name}: {observed.text}" for name, (_, observed) in self.situations.items() if not observed.is_right
        )
        return [*of_versions, *others]


def load_results(path: Path) -> Results:
    """Return what earlier runs have left; nothing where there is none."""
    if not path.is_file():
        return Results()
    result = json.loads(path.read_text())
    versions = {
        name: {check: Seen(**observed) for check, observed in row.items()} for name, row in result["versions"].items()
    }
    situations = {name: (version, Seen(**observed)) for name, (version, observed) in result["situations"].items()}
    return Results(versions, situations)


def save_results(results: Results, path: Path) -> None:
    """Write the results, whole or not at all."""
    write_text(path, json.dumps(asdict(results), indent=1))


def print_tables(results: Results) -> str:
    """Return ``docs/versions.md``."""
    ordered = sorted(results.versions, key=lambda text: [int(part) for part in text.split(".")])
    columns = [check for check in CHECKS if any(check in row for row in results.versions.values())]
    lines = [
        "# Versions and kinds of clusters",
        "",
        "Written by `python -m benchmarks.versions`, every cell from a run on a real cluster of two Java processes",
        "with the load job of `flink_job/`: the controller polls it, decides from its metrics and sends requests;",
        "then a person's pin asks for more than there is; then the TaskManager is killed and started again. Names of",
        "keys per version are in `include/flink/versions.py`. A cell in **bold** is not as it has to be.",
        "",
        f"| Flink | {' | '.join(columns)} |",
        f"|---|{'---|' * len(columns)}",
    ]
    lines += [
        f"| {version} | {' | '.join(_cell(results.versions[version], c) for c in columns)} |" for version in ordered
    ]
    if results.situations:
        lines += ["", "## Other clusters", "", "| what | Flink | seen |", "|---|---|---|"]
        lines += [
            f"| {name} | {version} | {_show(observed)} |" for name, (version, observed) in results.situations.items()
        ]
    return "\n".join(lines) + "\n"


def _cell(row: Mapping[str, Seen], check: str) -> str:
    return _show(row[check]) if check in row else ""


def _show(seen: Seen) -> str:
    text = " ".join(seen.text.split()).replace("|", "/")
    return text if seen.is_right else f"**{text}**"
