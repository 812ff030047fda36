"""What each candidate costs per trace, job and seed, over the bound and the best rival: a CSV file to compute with.

Every table over traces is computed from such files, so that a reader can leave a trace or a seed out.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path

from benchmarks.replay.replay_candidates import BOUND
from benchmarks.replay.replay_cases import FLOOR, Row
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
)
_TEXTS = ("trace", "job", "policy", "segment", "best_rival")
_OWN = ("planner", "controller_alone", "programme")
_WHERE = ("trace", "job", "seed", "segment")


def is_rival(policy: str) -> bool:
    """Return whether a candidate is none of ours, and knows nothing in hindsight."""
    return not policy.startswith(_OWN) and policy not in {*REFERENCES, BOUND, BEST_CONSTANT}


def compare_costs(rows: Sequence[Row]) -> list[Row]:
    """Return the rows of a replay with the best rival of each trace, job, seed and segment, and the cost over it.

    Args:
        rows: as the replay writes them; what a row lacks is not known.
    """
    best: dict[tuple[object, ...], tuple[float, str]] = {}
    for row in rows:
        where, policy = tuple(row[column] for column in _WHERE), str(row["policy"])
        if is_rival(policy):
            best[where] = min(best.get(where, (float("inf"), "")), (float(str(row["cost"])), policy))
    result: list[Row] = []
    for row in rows:
        least, rival = best.get(tuple(row[column] for column in _WHERE), (None, None))
        ratio = float(str(row["cost"])) / least if least else None
        known: Row = {**row, "best_rival": rival, "cost_vs_best_rival": ratio}
        result.append({column: known.get(column) for column in COLUMNS})
    return result


def merge_costs(before: Sequence[Row], added: Sequence[Row]) -> list[Row]:
    """Return rows of several replays as if they were of one: sorted, each over the bound and the clairvoyant's cost.

    Args:
        before: rows.
        added: further ones; they replace those of the same trace, job, policy, seed and segment, and all of the same
            trace and job whose run was not as long: costs over another length compare nothing.
    """
    days = {(row["trace"], row["job"]): row["days"] for row in added}
    as_long = [row for row in before if days.get((row["trace"], row["job"]), row["days"]) == row["days"]]
    rows = {(*(row[column] for column in _WHERE), row["policy"]): row for row in (*as_long, *added)}
    least = {key[:-1]: row["bound"] for key, row in rows.items() if key[-1] == BOUND}
    floor = {key[:-1]: row["cost"] for key, row in rows.items() if key[-1] == FLOOR}
    result: list[Row] = []
    for key in sorted(rows, key=str):
        row, bound, clairvoyant = rows[key], least.get(key[:-1]), floor.get(key[:-1])
        cost = float(str(row["cost"]))
        ratios = {"cost_vs_bound": bound, "cost_vs_clairvoyant": clairvoyant}
        known: Row = {name: cost / float(other) if other else None for name, other in ratios.items()}
        result.append({**row, "bound": bound, **known})
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
