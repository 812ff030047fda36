"""What each candidate costs per trace, job and seed, over the bound and the best rival: a CSV file to compute with.

Every table over traces is computed from such files, so that a reader can leave a trace or a seed out.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path

from benchmarks.replay.replay_candidates import BOUND
from benchmarks.replay.replay_cases import Row, compare_rows, find_place
from benchmarks.replay.rivals.rival_catalogue import BEST_CONSTANT
from include.policy_catalogue import REFERENCES

COLUMNS = (
    "trace",
    "job",
    "policy",
    "seed",
    "segment",
    "days",
    "cost",
    "slot_hours",
    "late_minutes_per_day",
    "rescales_per_day",
    "bound",
    "cost_vs_bound",
    "best_rival",
    "cost_vs_best_rival",
    "cost_vs_clairvoyant",
    "rises_ahead_share",
    "rises_ahead_minutes",
    "fingerprint",
)
_TEXTS = ("trace", "job", "policy", "segment", "best_rival", "fingerprint")
BETWEEN = "@"
"""Between the name of a policy and its point of a frontier."""
_OWN = ("planner", "controller_alone", "programme")


def is_rival(policy: str) -> bool:
    """Return whether a candidate is none of ours, no point of a frontier, and knows nothing in hindsight."""
    return not policy.startswith(_OWN) and BETWEEN not in policy and policy not in {*REFERENCES, BOUND, BEST_CONSTANT}


def compare_costs(rows: Sequence[Row]) -> list[Row]:
    """Return the rows of replays over the references, and over the best rival of each trace, job, seed and segment.

    Args:
        rows: as the replay writes them; what a row lacks is not known.
    """
    best: dict[tuple[object, ...], tuple[float, str]] = {}
    for row in rows:
        where, policy = find_place(row), str(row["policy"])
        if is_rival(policy):
            best[where] = min(best.get(where, (float("inf"), "")), (float(str(row["cost"])), policy))
    result: list[Row] = []
    for row in compare_rows(rows):
        least, rival = best.get(find_place(row), (None, None))
        ratio = float(str(row["cost"])) / least if least else None
        known: Row = {**row, "best_rival": rival, "cost_vs_best_rival": ratio}
        result.append({column: known.get(column) for column in COLUMNS})
    return result


def write_costs(rows: Sequence[Row], path: Path) -> None:
    """Write the compared rows of a replay; what is not known is an empty cell."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(compare_costs(rows))


def read_costs(paths: Sequence[Path]) -> list[Row]:
    """Return the rows of such files.

    Raises:
        ValueError: a file without these columns; the message names it.
    """
    result: list[Row] = []
    for path in paths:
        with path.open(newline="", encoding="utf-8") as file:
            reader = csv.DictReader(file)
            if tuple(reader.fieldnames or ()) != COLUMNS:
                raise ValueError(f"{path} is no CSV file of costs that the replay has written")
            result += [{column: _read_cell(column, cell) for column, cell in row.items()} for row in reader]
    return result


def _read_cell(column: str, cell: str) -> str | int | float | None:
    if column in _TEXTS:
        return cell or None
    if column == "seed":
        return int(cell)
    return float(cell) if cell else None
