"""What is replayed for the published tables, as ``studies.toml`` says, divided into units that are run one by one."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.replay.best_forms import read_forms
from benchmarks.replay.evidence.frontier_forms import list_frontier
from benchmarks.replay.replay_candidates import Forms, list_names
from benchmarks.replay.rivals.rival_catalogue import FORMED
from benchmarks.replay.split import read_split

STUDIES = Path(__file__).parent / "studies.toml"
JOB = "wordcount"


@dataclass(frozen=True, slots=True)
class Unit:
    """One policy on one load.

    Attributes:
        trace, scenario, job: of the load; the scenario is empty without one.
        days: of the trace, from its beginning.
        seeds: of the runs.
        policy: name.
    """

    trace: str
    scenario: str
    job: str
    days: float
    seeds: tuple[int, ...]
    policy: str

    @property
    def load(self) -> str:
        """Name of the trace as rows have it."""
        return f"{self.trace}+{self.scenario}" if self.scenario else self.trace


@dataclass(frozen=True, slots=True)
class Study:
    """Policies on loads.

    Attributes:
        name, about: of it.
        traces, scenarios, jobs, days, seeds: as in :class:`Unit`.
        policies: names.
    """

    name: str
    about: str
    traces: tuple[str, ...]
    scenarios: tuple[str, ...]
    jobs: tuple[str, ...]
    days: float
    seeds: tuple[int, ...]
    policies: tuple[str, ...]

    def list_units(self) -> Iterator[Unit]:
        """Yield the units, each policy on all loads before the next one."""
        for policy in self.policies:
            for job in self.jobs:
                for trace in self.traces:
                    for scenario in self.scenarios:
                        yield Unit(trace, scenario, job, self.days, self.seeds, policy)


def read_studies(path: Path = STUDIES) -> dict[str, Study]:
    """Return the studies by name."""
    return {name: _parse(name, entry) for name, entry in tomllib.loads(path.read_text(encoding="utf-8")).items()}


def list_forms() -> Forms:
    """Return the forms of all candidates that run in another than their own."""
    return {**read_forms(), **list_frontier()}


def _parse(name: str, entry: Mapping[str, object]) -> Study:
    traces = entry["traces"]
    return Study(
        name,
        str(entry["about"]),
        _list_texts(traces) if isinstance(traces, list) else _list_traces(str(traces)),
        _list_texts(entry.get("scenarios", [""])),
        _list_texts(entry.get("jobs", [JOB])),
        float(str(entry["days"])),
        tuple(int(seed) for seed in _list_texts(entry["seeds"])),
        _list_policies(_list_texts(entry["policies"])),
    )


def _list_texts(value: object) -> tuple[str, ...]:
    return tuple(map(str, value)) if isinstance(value, Sequence) else ()


def _list_traces(side: str) -> tuple[str, ...]:
    return read_split("test" if side == "test" else "tuning").traces


def _list_policies(named: Sequence[str]) -> tuple[str, ...]:
    groups: Mapping[str, Sequence[str]] = {
        "own": list_names(),
        "best": [name for name in list_forms() if name.endswith(FORMED)],
        "frontier": list(list_frontier()),
    }
    return tuple(dict.fromkeys(policy for name in named for policy in groups.get(name, (name,))))
