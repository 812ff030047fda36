"""The result of each run: a JSON file of its own, by which a later call knows what is done."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.live.measures import Measures
from include.atomic_write import write_json

CPU_MAX = 0.70


@dataclass(frozen=True, slots=True)
class RunResult:
    """What a run showed.

    Attributes:
        policy, job, seed, minutes, pace, trace: of the run.
        begun: when the measured window began, ISO 8601, UTC.
        cpu_share: of all processors that was busy during it.
        trouble: why the run is none; empty.
        slots_max: slots of the cluster.
        lost_at_s: second of the window in which a TaskManager was lost.
        measures: figures of the window.
        records_in, records_due: emitted by the source, and due by the trace; None: the job did not work them off.
        rows_out, rows_expected: that came to the sink, and that the query gives for these records; None likewise.
        lines: of every ten seconds: second of the window, load/s, slots, age of the oldest record in s, backlog.
        actions: (second since the submission, upper bound of the costly vertex) of every change.
        load: (second since the submission, events/s), linear in between.
        span_s: begin and end of the window, seconds since the submission.
        transits: of every ten seconds: second of the window, age at the sink minus age at the source, seconds.
        checkpoint_s: median time from a checkpoint's trigger to its end, over the whole run; None: Flink showed none.
        savepoint: that ended a part of a longer run; empty: none. Its counts are those of all parts so far.
    """

    policy: str
    job: str
    seed: int
    minutes: float
    pace: str
    trace: str
    begun: str
    cpu_share: float
    trouble: str
    slots_max: int
    lost_at_s: float | None
    measures: Measures
    records_in: int | None
    records_due: int | None
    rows_out: int | None
    rows_expected: int | None
    lines: list[tuple[float, float, int, float, float]]
    actions: list[tuple[float, int]]
    load: list[tuple[int, float]]
    span_s: tuple[float, float]
    transits: list[tuple[float, float]] = field(default_factory=list)
    checkpoint_s: float | None = None
    savepoint: str = ""

    @property
    def records_lost(self) -> int | None:
        """Rows that are missing at the sink, negative where some came twice; None: not known."""
        if self.rows_out is None or self.rows_expected is None:
            return None
        return self.rows_expected - self.rows_out

    @property
    def is_valid(self) -> bool:
        """Whether it is a measurement: nothing went wrong, and the processors were not contended for."""
        return not self.trouble and self.cpu_share <= CPU_MAX


def result_file(folder: Path, policy: str, job: str, seed: int) -> Path:
    """Return the file of a run."""
    return folder / "runs" / f"{job}-{policy}-{seed}.json"


def write_result(folder: Path, result: RunResult) -> Path:
    """Write a result; returns its file."""
    path = result_file(folder, result.policy, result.job, result.seed)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_json(path, form_values(result))
    return path


def form_values(result: RunResult) -> dict[str, Any]:
    """Return a result as its file has it."""
    return {**asdict(result), "is_valid": result.is_valid, "records_lost": result.records_lost}


def read_result(path: Path) -> RunResult:
    """Read a result."""
    return parse_result(json.loads(path.read_text(encoding="utf-8")))


def parse_result(values: dict[str, Any]) -> RunResult:
    """Return the result of :func:`form_values`, which is used up."""
    for name in ("is_valid", "records_lost"):
        values.pop(name)
    measures = Measures(**values.pop("measures"))
    for name in ("lines", "actions", "load", "transits"):
        values[name] = [tuple(one) for one in values.get(name, ())]
    return RunResult(measures=measures, span_s=tuple(values.pop("span_s")), **values)


def read_results(folder: Path) -> list[RunResult]:
    """Read all results below a folder, in the order of their names."""
    return [read_result(path) for path in sorted((folder / "runs").glob("*.json"))]


def is_done(folder: Path, run: tuple[str, str, int], minutes: float, *, accepts_invalid: bool) -> bool:
    """Whether a run (policy, job, seed) of this length needs not be made again.

    A run that was discarded is made again, unless runs that are no measurement are accepted.
    """
    path = result_file(folder, *run)
    if not path.is_file():
        return False
    known = read_result(path)
    return known.minutes == minutes and (known.is_valid or (accepts_invalid and not known.trouble))
