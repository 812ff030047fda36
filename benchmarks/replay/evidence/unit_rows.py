"""Rows of the units of a study: each unit is a file, so that a run that was stopped goes on where it was."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path

from benchmarks.replay.evidence.fingerprints import compute_fingerprint
from benchmarks.replay.evidence.studies import Unit, list_forms
from benchmarks.replay.evidence.unit_case import build_case
from benchmarks.replay.replay_cases import Row, replay_case
from include.atomic_write import write_text
from lab.commands.workers import end_with_parent, stop_workers


def place_file(unit: Unit, out: Path) -> Path:
    """Return where the rows of a unit are, whatever its seeds."""
    return out / unit.job / f"{unit.load}-{unit.days:g}d" / f"{unit.policy}.json"


def read_rows(unit: Unit, out: Path, fingerprint: str) -> list[Row] | None:
    """Return the rows of a unit; None where it has not run with today's decisions."""
    path = place_file(unit, out)
    if not path.is_file():
        return None
    rows = [row for row in json.loads(path.read_text(encoding="utf-8")) if row["seed"] in unit.seeds]
    return rows if is_whole(unit, rows, fingerprint) else None


def restore_units(units: Sequence[Unit], published: Sequence[Row], out: Path, fingerprints: Mapping[str, str]) -> int:
    """Write the rows of units that are published with today's decisions and are not in the folder; return how many.

    So a run goes on elsewhere than where the last one was.

    Args:
        units: of the studies.
        published: rows of the file of costs.
        out: folder of the rows of the units.
        fingerprints: of today, by policy.
    """
    by_unit: dict[tuple[object, ...], list[Row]] = {}
    for row in published:
        by_unit.setdefault((row["trace"], row["job"], row["policy"]), []).append(row)
    restored = 0
    for unit in units:
        known, rows = fingerprints.get(unit.policy, ""), by_unit.get((unit.load, unit.job, unit.policy), [])
        if not is_whole(unit, rows, known) or read_rows(unit, out, known) is not None:
            continue
        _write_rows(unit, rows, out)
        restored += 1
    return restored


def is_whole(unit: Unit, rows: Sequence[Row], fingerprint: str) -> bool:
    """Return whether rows are of all seeds of a unit, and of a policy with this fingerprint."""
    return {row["seed"] for row in rows} >= set(unit.seeds) and all(row["fingerprint"] == fingerprint for row in rows)


def run_unit(unit: Unit, out: Path, fingerprint: str, unseen: Path) -> int:
    """Run a unit and write its rows, whole or not at all; return how many.

    Raises:
        TraceError: the trace is in no folder.
        CandidateError: the policy failed.
    """
    rows: list[Row] = [
        {**row, "fingerprint": fingerprint} for row in replay_case(build_case(unit, list_forms(), unseen)).rows
    ]
    _write_rows(unit, rows, out)
    return len(rows)


def _write_rows(unit: Unit, rows: Sequence[Row], out: Path) -> None:
    path = place_file(unit, out)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, json.dumps(rows, indent=1, allow_nan=False))


def run_units(
    units: Sequence[Unit],
    out: Path,
    fingerprints: Mapping[str, str],
    unseen: Path,
    *,
    processes: int,
    progress: Callable[[Unit], None],
) -> None:
    """Run units, several at a time.

    Args:
        units: to run; with several seeds for one load and policy, the seeds are run together.
        out: folder of their files.
        fingerprints: of their policies.
        unseen: folder of the traces that are not shipped.
        processes: at most so many.
        progress: called after each.
    """
    with ProcessPoolExecutor(processes, get_context("spawn"), end_with_parent) as pool, stop_workers():
        waiting = {pool.submit(run_unit, one, out, fingerprints[one.policy], unseen): one for one in units}
        for done in as_completed(waiting):
            done.result()
            progress(waiting[done])


def compute_fingerprints(policies: Sequence[str], processes: int) -> dict[str, str]:
    """Return policy -> fingerprint, several at a time."""
    with ProcessPoolExecutor(processes, get_context("spawn"), end_with_parent) as pool, stop_workers():
        return dict(zip(policies, pool.map(compute_fingerprint, policies), strict=True))


def join_units(units: Sequence[Unit]) -> list[Unit]:
    """Return units without repetition, those of one load and policy with the seeds of all."""
    seeds: dict[Unit, dict[int, None]] = {}
    for unit in units:
        seeds.setdefault(replace(unit, seeds=()), {}).update(dict.fromkeys(unit.seeds))
    return [replace(unit, seeds=tuple(each)) for unit, each in seeds.items()]
