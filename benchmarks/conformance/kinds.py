"""Formats of cases, how a file of each is read, and how its cases are run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from benchmarks.conformance import ds2, flink_autoscaler, phoebe
from benchmarks.conformance.cases import FAULTS, Json, Outcome, describe, read_lines, read_list


@dataclass(frozen=True, slots=True)
class Kind:
    """A format of cases: how its files are read, how one case is run."""

    read: Callable[[Path], list[Json]]
    check: Callable[[Json], Outcome]


KINDS = {
    "ds2": Kind(read_list, ds2.check),
    "flink_autoscaler": Kind(read_list, flink_autoscaler.check),
    "phoebe": Kind(read_lines, phoebe.check),
}


def run(kind: str, cases: Path) -> list[Outcome]:
    """Run all cases of a file.

    Raises:
        CaseFileError: it holds no cases of the format.
    """
    chosen = KINDS[kind]
    return [check_case(chosen, case) for case in chosen.read(cases)]


def check_case(kind: Kind, case: Json) -> Outcome:
    """Run one case; one whose expectation cannot be read disagrees."""
    try:
        return kind.check(case)
    except FAULTS as error:
        name = next((str(case[key]) for key in ("id", "name", "ts") if key in case), "(no name)")
        return Outcome(name, case.get("expected"), {"error": describe(error)}, ("case",))
