"""The published costs of all studies: a row per load, policy, seed and segment, with the policy's fingerprint."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from benchmarks.replay.cost_rows import read_costs
from benchmarks.replay.evidence.studies import Study
from benchmarks.replay.replay_cases import Row
from benchmarks.replay.tables import PUBLISHED

COSTS: Final = PUBLISHED / "costs.csv"


class StaleRowsError(ValueError):
    """Rows of policies that decide otherwise today, or whose fingerprint is not known; the message names them."""


def read_published(fingerprints: Mapping[str, str], path: Path = COSTS) -> list[Row]:
    """Return the published rows.

    Args:
        fingerprints: of today, by policy.
        path: of the file.

    Raises:
        StaleRowsError: a row bears another fingerprint.
    """
    rows = read_costs([path])
    stale = sorted({str(row["policy"]) for row in rows if row["fingerprint"] != fingerprints.get(str(row["policy"]))})
    if stale:
        raise StaleRowsError(
            f"{path.name} has rows of {', '.join(stale)} from before their decisions changed: "
            "python -m benchmarks.replay.evidence runs them again"
        )
    return rows


def select_study(rows: Sequence[Row], study: Study) -> list[Row]:
    """Return the rows of a study's policies, those left out that have not run on each of its loads and seeds."""
    loads = {(unit.load, unit.job, seed) for unit in study.list_units() for seed in unit.seeds}
    run: dict[str, set[tuple[object, ...]]] = {}
    chosen = [
        row
        for row in rows
        if (row["trace"], row["job"], row["seed"]) in loads and float(str(row["days"])) <= study.days + 0.01
    ]
    for row in chosen:
        run.setdefault(str(row["policy"]), set()).add((row["trace"], row["job"], row["seed"]))
    whole = {policy for policy in study.policies if run.get(policy) == loads}
    return [row for row in chosen if row["policy"] in whole]
