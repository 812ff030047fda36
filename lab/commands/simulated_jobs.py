"""The simulated jobs: TOML files (see ``data/simulated_jobs/README.md``)."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lab.simulation.catalogue import CatalogueJob, OperatorDraft, build_job
from lab.simulation.control import CpuRuleOptions, Timetable, TimetableEntry
from lab.simulation.source_load import SourceLoad, TracePart
from lab.simulation.spec import Ship, SourceCounters, SpecError

SIMULATED_JOBS = Path(__file__).resolve().parents[2] / "data" / "simulated_jobs"


def load_simulated_jobs(folder: Path = SIMULATED_JOBS) -> list[CatalogueJob]:
    """Read the jobs of all TOML files of a folder, in the order of the files' names.

    Raises:
        SpecError: the folder holds no file, or one that describes no job; the message names file and job.
    """
    paths = sorted(folder.glob("*.toml"))
    if not paths:
        raise SpecError(f"no simulated jobs in {folder}; restore data/simulated_jobs from the repository")
    return [job for path in paths for job in _read_jobs(path)]


def _read_jobs(path: Path) -> list[CatalogueJob]:
    try:
        entries = tomllib.loads(path.read_text(encoding="utf-8"))["jobs"]
    except (tomllib.TOMLDecodeError, KeyError) as error:
        raise SpecError(f"{path}: {error!r}; a list of [[jobs]] is expected") from error
    jobs = []
    for entry in entries:
        try:
            jobs.append(_parse_job(entry))
        except (TypeError, KeyError, ValueError) as error:
            raise SpecError(f"{path}, job {entry.get('name')!r}: {error}; see README.md beside it") from error
    return jobs


def _parse_job(entry: Mapping[str, Any]) -> CatalogueJob:
    options = dict(entry)
    name, operators, loads = options.pop("name"), options.pop("operators"), options.pop("loads")
    rule, slots = options.pop("cpu_rule", None), options.pop("timetable", None)
    return build_job(
        name,
        [_parse_operator(operator) for operator in operators],
        [_parse_load(load) for load in loads],
        rule=None if rule is None else CpuRuleOptions(**rule),
        timetable=None if slots is None else Timetable(tuple(TimetableEntry(**slot) for slot in slots)),
        **options,
    )


def _parse_operator(entry: Mapping[str, Any]) -> OperatorDraft:
    upstream, ship = tuple(entry.get("upstream", ())), Ship(entry.get("ship", Ship.REBALANCE))
    counts = SourceCounters(entry.get("counts", SourceCounters.OPERATOR))
    return OperatorDraft(**{**entry, "upstream": upstream, "ship": ship, "counts": counts})


def _parse_load(entry: Mapping[str, Any]) -> SourceLoad:
    return SourceLoad(**{**entry, "parts": tuple(TracePart(**part) for part in entry["parts"])})
