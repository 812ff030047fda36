"""``python -m benchmarks.replay.autoscaler_java.compare``: our rules beside Flink's autoscaler, decisions paired.

Both get the same metrics at the same times along the jobs that our rules run on the tuning pieces of ``split.toml``.  A
decision is what a cycle asks for, or that it asks for nothing.
"""

from __future__ import annotations

import csv
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.replay.autoscaler_java.jar_driver import (
    AutoscalerProcess,
    JarMemory,
    build_cycle,
    list_options,
    name_vertices,
)
from benchmarks.replay.replay_jobs import read_job
from benchmarks.replay.split import TRACES, UNSEEN, read_piece, read_split
from cli.arguments import CommandParser, whole_number
from lab.policies.flink_autoscaler.autoscaler_policy import FlinkAutoscaler
from lab.policies.flink_autoscaler.config import AutoscalerConfig, Release
from lab.replay.candidate_policies import CandidatePolicy
from lab.replay.conditions import Conditions
from lab.replay.hosted_driver import HostedDriver, PipelineMemory
from lab.replay.replay_run import ReplayRun
from lab.replay.tick_snapshot import TickSnapshot

Asked = Mapping[str, int] | None


@dataclass(frozen=True, slots=True)
class DecisionPair:
    """One cycle: what runs, and what both ask for, None for nothing."""

    trace: str
    at_s: int
    running: Mapping[str, int]
    ours: Asked
    theirs: Asked

    @property
    def kind(self) -> str:
        """How they differ; "same" when they do not."""
        if self.ours == self.theirs:
            return "same"
        if self.ours is None or self.theirs is None:
            asking, asked = ("only Flink's", self.theirs) if self.ours is None else ("only ours", self.ours)
            rises = any(count > self.running[name] for name, count in (asked or {}).items())
            return f"{asking} asks for {'more' if rises else 'less'}"
        return "both ask, for other numbers"


@dataclass(frozen=True, slots=True)
class PairMemory:
    """Memories of both."""

    ours: PipelineMemory
    theirs: JarMemory


class PairDriver:
    """Follows our rules and asks Flink's autoscaler beside them.

    Args:
        trace: name of the load.
        parameters: of our rules.
        release: whose rules ours are to be.
        process: the other's program.
        pairs: where decisions go.
    """

    def __init__(
        self,
        trace: str,
        parameters: Mapping[str, Any],
        release: Release,
        process: AutoscalerProcess,
        pairs: list[DecisionPair],
    ) -> None:
        self._trace, self._process, self._pairs = trace, process, pairs
        self._ours = HostedDriver.of(
            "flink_autoscaler", FlinkAutoscaler(AutoscalerConfig(**parameters, release=release))
        )
        self._count = 0

    def first_memory(self) -> PairMemory:
        """Return the first memories of both."""
        self._count += 1
        return PairMemory(self._ours.first_memory(), JarMemory(f"{self._trace}-{self._count}"))

    def tick(self, snapshot: TickSnapshot, memory: PairMemory) -> tuple[Asked, PairMemory]:
        """Return what our rules want."""
        wanted, ours = self._ours.tick(snapshot, memory.ours)
        cycle, theirs = build_cycle(snapshot, memory.theirs)
        if cycle is not None:
            answer = self._process.decide(cycle)
            if snapshot.is_up:
                asked = name_vertices(answer, snapshot.graph) if answer.scaled else None
                running = dict(snapshot.running)
                own = None if wanted is None or dict(wanted) == running else dict(wanted)
                self._pairs.append(DecisionPair(self._trace, snapshot.now_s, running, own, asked))
        return wanted, PairMemory(ours, theirs)


def compare_decisions(
    parameters: Mapping[str, Any],
    options: Mapping[str, str],
    release: Release,
    *,
    unseen: Path,
    seeds: Sequence[int],
    job: str,
) -> list[DecisionPair]:
    """Return all pairs of decisions on the tuning pieces.

    Args:
        parameters: of our rules.
        options: keys of the autoscaler's configuration, beside its defaults.
        release: whose rules ours are to be.
        unseen: folder of the traces that are not shipped.
        seeds: of the runs.
        job: of the replay.
    """
    pairs: list[DecisionPair] = []
    conditions = Conditions()
    made = read_job(job)
    with AutoscalerProcess({**list_options(made.spec.slots_max), **options}) as process:
        for piece in read_split("tuning").pieces:
            trace = read_piece(piece, (TRACES, unseen))
            workload = made.build_workload(trace, conditions.cadence.step_s)
            driver: Any = PairDriver(trace.name, parameters, release, process, pairs)
            ReplayRun(workload, [CandidatePolicy("pair", driver)], seeds, conditions).run()
    return pairs


# Settings under which both are compared: ours by field, the other's by key of its release 1.10.0.
SETTINGS: Mapping[str, tuple[Mapping[str, Any], Mapping[str, str]]] = {
    "defaults": ({}, {}),
    "tuned": (
        {"utilization_target": 0.8, "target_utilization_boundary": 0.1},
        {"job.autoscaler.target.utilization": "0.8", "job.autoscaler.target.utilization.boundary": "0.1"},
    ),
    "no waiting": (
        {"utilization_target": 0.8, "target_utilization_boundary": 0.1, "scale_down_interval_s": 0.0},
        {
            "job.autoscaler.target.utilization": "0.8",
            "job.autoscaler.target.utilization.boundary": "0.1",
            "job.autoscaler.scale-down.interval": "0 s",
        },
    ),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Print how often the decisions agree and each kind of difference; 1 below 99%."""
    parser = CommandParser(prog="autoscaler_java.compare", description=__doc__)
    parser.add_argument("--unseen", type=Path, default=UNSEEN, metavar="DIR", help="traces of replay.unseen")
    parser.add_argument("--seeds", type=whole_number(1), default=3, metavar="N", help="runs per piece (default: 3)")
    parser.add_argument("--job", default="wordcount", help="default: wordcount")
    parser.add_argument(
        "--release",
        type=Release,
        choices=list(Release),
        default=Release.V1_10,
        help="whose rules ours follow; the jar is 1.10.0 (default)",
    )
    parser.add_argument("--differences", type=Path, metavar="CSV", help="where each difference goes")
    options = parser.parse_args(argv)
    alike, total, differing = 0, 0, []
    for name, (ours, theirs) in SETTINGS.items():
        pairs = compare_decisions(
            ours, theirs, options.release, unseen=options.unseen, seeds=range(options.seeds), job=options.job
        )
        kinds = Counter(pair.kind for pair in pairs)
        asking = sum(pair.ours is not None or pair.theirs is not None for pair in pairs)
        alike, total = alike + kinds["same"], total + len(pairs)
        differing += [(name, pair) for pair in pairs if pair.kind != "same"]
        shown = "; ".join(f"{kind}: {number}" for kind, number in kinds.most_common() if kind != "same") or "none"
        print(
            f"{name}: {kinds['same']} of {len(pairs)} decisions alike, {kinds['same'] / len(pairs):.2%} "
            f"({asking} in which either asks for a change); differences: {shown}"
        )
    if options.differences:
        with options.differences.open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["settings", "trace", "at_s", "kind", "running", "ours", "theirs"])
            writer.writerows(
                [name, pair.trace, pair.at_s, pair.kind, pair.running, pair.ours, pair.theirs]
                for name, pair in differing
            )
    print(f"all: {alike} of {total}, {alike / total:.2%}")
    return 0 if alike >= 0.99 * total else 1


if __name__ == "__main__":
    sys.exit(main())
