"""A candidate of the replay that asks Apache Flink's own autoscaler, with the replay's metrics and clock."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from types import TracebackType
from typing import Any, Self

import numpy as np

from benchmarks.replay.autoscaler_java.build import build_command
from include.domain.graph import JobGraph
from lab.replay.tick_snapshot import TickSnapshot

NAME = "flink_autoscaler_jar"


def list_options(slots_max: int) -> dict[str, str]:
    """Return the autoscaler's options: its own defaults, and no vertex larger than the job's slots."""
    return {"job.autoscaler.enabled": "true", "job.autoscaler.vertex.max-parallelism": str(slots_max)}


class AutoscalerProcessError(RuntimeError):
    """The autoscaler's process ended, or reported an error."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What the autoscaler says.

    Attributes:
        parallelism: vertex id -> parallelism that it has asked for so far; empty before the first scaling.
        scaled: whether it asked for a scaling in this cycle.
    """

    parallelism: Mapping[str, int]
    scaled: bool


class AutoscalerProcess:
    """The Java program.

    Args:
        options: keys of the autoscaler's configuration.
    """

    def __init__(self, options: Mapping[str, str]) -> None:
        self._process = subprocess.Popen(
            build_command(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        self._send(options)

    def __enter__(self) -> Self:
        """Return the process."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End it."""
        self.close()

    def close(self) -> None:
        """End the input, at which the program ends."""
        if self._process.stdin:
            self._process.stdin.close()
        self._process.wait(timeout=30)
        if self._process.stdout:
            self._process.stdout.close()

    def decide(self, cycle: Mapping[str, Any]) -> Answer:
        """Return what the autoscaler says to a cycle.

        Raises:
            AutoscalerProcessError: the program ended, or the autoscaler failed.
        """
        self._send(cycle)
        line = self._process.stdout.readline() if self._process.stdout else ""
        if not line:
            raise AutoscalerProcessError("the autoscaler's program has ended")
        answer = json.loads(line)
        if "error" in answer:
            raise AutoscalerProcessError(answer["error"])
        asked = {name: int(parallelism) for name, parallelism in answer["parallelism"].items()}
        return Answer(asked, bool(answer["scaled"]))

    def _send(self, message: Mapping[str, Any]) -> None:
        if self._process.stdin is None:
            raise AutoscalerProcessError("the autoscaler's program has no input")
        self._process.stdin.write(json.dumps(message) + "\n")
        self._process.stdin.flush()


@dataclass(frozen=True, slots=True)
class JarMemory:
    """A job's counters since it came up, as Flink would show them.

    Attributes:
        job: under which the autoscaler keeps its state.
        seen_until_s: end of the last window that was added; None before the first.
        running_since_s: when the job last came up; its counters began at 0 then.
        records_in, records_out, busy_ms: operator -> counter.
    """

    job: str
    seen_until_s: int | None = None
    running_since_s: float = 0.0
    records_in: Mapping[str, float] = field(default_factory=dict)
    records_out: Mapping[str, float] = field(default_factory=dict)
    busy_ms: Mapping[str, float] = field(default_factory=dict)


class JarDriver:
    """Asks the autoscaler at every tick at which the job runs; what it asked for is wanted until it asks for else.

    Args:
        process: the program; one for all rows, which it tells apart by their jobs.
    """

    def __init__(self, process: AutoscalerProcess) -> None:
        self._process, self._jobs = process, count()

    def first_memory(self) -> JarMemory:
        """Return the memory of a job of its own."""
        return JarMemory(f"job-{next(self._jobs)}")

    def tick(self, snapshot: TickSnapshot, memory: JarMemory) -> tuple[Mapping[str, int] | None, JarMemory]:
        """Return what the autoscaler has asked for."""
        cycle, known = build_cycle(snapshot, memory)
        if cycle is None:
            return None, known
        answer = self._process.decide(cycle)
        return (name_vertices(answer, snapshot.graph) or None), known


def id_of(place: int) -> str:
    """Return the vertex id of an operator by its place in the graph."""
    return f"{place + 1:032x}"


def name_vertices(answer: Answer, graph: JobGraph) -> dict[str, int]:
    """Return operator -> parallelism."""
    names = {id_of(place): name for place, name in enumerate(graph.names)}
    return {names[one]: parallelism for one, parallelism in answer.parallelism.items()}


def build_cycle(snapshot: TickSnapshot, memory: JarMemory) -> tuple[dict[str, Any] | None, JarMemory]:
    """Return the autoscaler's input at a tick, None before the first window, and the memory with its counters."""
    graph, observations = snapshot.graph, snapshot.observations(1.0)
    fresh = observations if memory.seen_until_s is None else observations.since(memory.seen_until_s)
    if not len(fresh):
        return None, memory
    since_s = snapshot.running_since_s
    retained = memory if since_s == memory.running_since_s else JarMemory(memory.job, memory.seen_until_s, since_s)
    known = JarMemory(
        memory.job,
        int(fresh.window_start_s[-1]) + fresh.window_s,
        since_s,
        _add(retained.records_in, graph.names, fresh.processing_rate_per_s * fresh.window_s),
        _add(retained.records_out, graph.names, fresh.output_rate_per_s * fresh.window_s),
        _add(retained.busy_ms, graph.names, 1000.0 * fresh.busy_share * fresh.parallelism * fresh.window_s),
    )
    vertices = [
        {
            "id": id_of(place),
            "inputs": [id_of(graph.position(one)) for one in graph.operators[place].upstream],
            "parallelism": snapshot.running[name],
            "max_parallelism": graph.operators[place].max_parallelism,
            "records_in": known.records_in[name],
            "records_out": known.records_out[name],
            "busy_ms": known.busy_ms[name],
            "busy_ms_per_s": 1000.0 * _value(fresh.busy_share[-1, place]),
            "records_in_per_s": _value(fresh.processing_rate_per_s[-1, place]),
            "backpressured_ms_per_s": 1000.0 * _value(fresh.backpressured_share[-1, place]),
            "pending_records": _value(fresh.pending_records[-1, place]),
        }
        for place, name in enumerate(graph.names)
    ]
    cycle = {
        "job": memory.job,
        "now_ms": 1000 * snapshot.now_s,
        "running": snapshot.is_up,
        "running_since_ms": round(1000 * since_s),
        "vertices": vertices,
    }
    return cycle, known


def _value(value: float) -> float:
    return float(value) if np.isfinite(value) else 0.0


def _add(counters: Mapping[str, float], names: Sequence[str], grown: Any) -> dict[str, float]:
    added = np.nansum(grown, axis=0)
    return {name: counters.get(name, 0.0) + float(more) for name, more in zip(names, added, strict=True)}
