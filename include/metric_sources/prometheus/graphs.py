"""Graphs of jobs, which metrics do not hold: from REST once for each job id, or from saved replies."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from include.flink import endpoints
from include.flink.client import FlinkClient
from include.flink.faults import FlinkError

log = logging.getLogger(__name__)
_REPLACED = re.compile(r"[^a-zA-Z0-9:_]")
_RETAINED_OF_NODE = ("id", "description", "inputs")


class SavedGraphError(ValueError):
    """A saved reply holds no graph; the message names the file."""


@dataclass(frozen=True, slots=True)
class Graph:
    """A job's graph.

    Attributes:
        job_id: Flink's id of the job that showed it.
        name: the job's name.
        vertices: vertex id -> name and maximum parallelism (None when it is not told).
        nodes: of its plan, without what may change: parallelism.
    """

    job_id: str
    name: str
    vertices: Mapping[str, tuple[str, int | None]]
    nodes: tuple[Mapping[str, Any], ...]

    @classmethod
    def of(cls, reply: Mapping[str, Any]) -> Graph:
        """Read a reply of ``/jobs/:jobid``.

        Raises:
            ValueError: it lacks a name, vertices with names, or the plan.
        """
        try:
            vertices = {
                str(one["id"]): (str(one["name"]), _positive(one.get("maxParallelism"))) for one in reply["vertices"]
            }
            nodes = tuple(
                {key: node[key] for key in _RETAINED_OF_NODE if key in node} for node in reply["plan"]["nodes"]
            )
            return cls(str(reply["jid"]), str(reply["name"]), vertices, nodes)
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"no reply of /jobs/:jobid with vertices and plan ({error!r})") from error


def _positive(value: object) -> int | None:
    return value if type(value) is int and value > 0 else None


def as_label(name: str) -> str:
    """Return a name as Flink's reporter writes it into a label."""
    return _REPLACED.sub("_", name)


class GraphRegistry:
    """The graphs that are known of a cluster's jobs, from its REST API and from saved replies of ``/jobs/:jobid``.

    Raises:
        SavedGraphError: a saved reply cannot be used.
    """

    def __init__(self, client: FlinkClient | None = None, folder: Path | None = None) -> None:
        self._client = client
        self._graphs: dict[str, Graph] = {}
        self._asked: set[str] = set()
        for path in sorted(folder.glob("*.json")) if folder is not None else ():
            try:
                graph = Graph.of(json.loads(path.read_text(encoding="utf-8")))
            except ValueError as error:
                raise SavedGraphError(f"{path}: {error}") from error
            self._graphs[graph.job_id] = graph
        self._saved = frozenset(self._graphs)

    def find(self, job_id: str, label: str, vertex_ids: Iterable[str]) -> Graph | None:
        """Return the graph of a job: its own, else that of a job with the same vertices, by id; None when unknown.

        A job that was submitted again has a new id and, as long as nothing changed, the same vertices.
        """
        if job_id not in self._graphs and job_id not in self._asked:
            self._asked.add(job_id)
            self._ask()
        own = self._graphs.get(job_id)
        if own is not None:
            return own
        wanted = set(vertex_ids)
        alike = [graph for graph in self._graphs.values() if wanted and wanted <= graph.vertices.keys()]
        named = [graph for graph in alike if as_label(graph.name) == label]
        same = named or [graph for graph in alike if wanted == graph.vertices.keys()]
        if not same:
            log.info("job %s (%s): no graph known; its plan needs one from REST or a saved reply", label, job_id)
        return same[-1] if same else None

    def forget(self, job_ids: Set[str]) -> None:
        """Forget all jobs but these and those of the folder."""
        self._asked &= job_ids
        known = self._saved | job_ids
        self._graphs = {job_id: graph for job_id, graph in self._graphs.items() if job_id in known}

    def _ask(self) -> None:
        if self._client is None:
            return
        try:
            listed = self._client.transport.get_json("/jobs/overview").get("jobs", [])
            for one in listed:
                result = str(one["jid"])
                if result not in self._graphs:
                    self._graphs[result] = Graph.of(self._client.transport.get_json(endpoints.job_path(result)))
                    self._asked.add(result)
        except (FlinkError, ValueError, KeyError, TypeError, AttributeError) as error:
            log.warning("no graphs from REST: %s", error)
