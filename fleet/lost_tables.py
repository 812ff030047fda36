"""Tables that are lost: their files are there and their log is not, or what was written with them is there alone."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from include import tables
from include.control.controlled_lake import LEASES_FOLDER
from include.object_store import local_folder, open_store
from include.stage_names import Stage
from include.stage_states import StageState
from include.tables import Table

_BEGINS = re.compile(r"0{20}\.json|\d{20}\.checkpoint\..+")
_INGESTED = (
    *(tables.BRONZE_METRICS, tables.BRONZE_JOB_EVENTS, tables.OBSERVATIONS, tables.JOBS, tables.JOB_GRAPHS),
    *(tables.OPERATOR_KEYS, tables.RESCALES, tables.FILES, tables.QUALITY),
)
_BESIDE: Sequence[tuple[Table, Sequence[Table]]] = (
    *((table, _INGESTED) for table in (tables.FILES, tables.OBSERVATIONS, tables.JOBS)),
    (tables.FORECASTS, (tables.OBSERVATIONS,)),
    (tables.PLANS, (tables.FORECASTS,)),
    (tables.MODEL_VERSIONS, (tables.MODEL_JOBS,)),
    (tables.MODEL_JOBS, (tables.MODEL_VERSIONS,)),
)
"""Tables, each with those that were written before or with it: where it is, they were."""
_OF_STAGE: Mapping[str, Table] = {
    Stage.INGEST: tables.OBSERVATIONS,
    Stage.TRAIN: tables.MODEL_VERSIONS,
    Stage.FORECAST: tables.FORECASTS,
    Stage.PLAN: tables.PLANS,
}
"""Stage -> a table that is there when it has ended well."""


class UnreadableTable(NamedTuple):
    """A table that cannot be read, and how that is known."""

    name: str
    why: str

    def __str__(self) -> str:
        """Return a sentence."""
        return f"the table {self.name} is lost: {self.why}"


def find_lost_tables(lake: str, states: Sequence[StageState]) -> list[UnreadableTable]:
    """Return the lost tables of a lake, by name; a lake in which nothing was ever written has none."""
    known = {table.name: table for table in vars(tables).values() if isinstance(table, Table)}
    present = {name for name, table in known.items() if _has_log(lake, table.relative_path)}
    lost: dict[str, str] = {}
    for name, table in known.items():
        if name not in present and _has_files(lake, table.relative_path):
            lost[name] = "its files are there, its log (_delta_log) is not"
        elif _is_no_folder(lake, table.relative_path):
            lost[name] = "what has its name is no folder that can be read"
    for table, others in _BESIDE:
        if table.name in present:
            _note(lost, present, others, f"{table.name}, which is written after or with it, is there")
    for state in states:
        for stage in (one for one in _OF_STAGE if one in state.task.partition(".")[2].split("_")):
            if not state.error and stage not in state.empty:
                _note(lost, present, (_OF_STAGE[stage],), f"{state.task} has ended well and wrote it")
    if tables.CONTROL_LOG.name not in present and _has_files(lake, LEASES_FOLDER, "log-"):
        lost.setdefault(tables.CONTROL_LOG.name, "numbers of its rows are beside the leases")
    return [UnreadableTable(name, lost[name]) for name in sorted(lost)]


def _note(lost: dict[str, str], present: set[str], expected: Sequence[Table], why: str) -> None:
    for table in expected:
        if table.name not in present:
            lost.setdefault(table.name, why)


def _has_log(lake: str, path: str) -> bool:
    """Return whether a log begins: with its first commit, or with a checkpoint of all before it."""
    return any(size and _BEGINS.fullmatch(name) for name, size in _list_files(lake, f"{path}/_delta_log"))


def _has_files(lake: str, path: str, prefix: str = "") -> bool:
    """Return whether a folder holds a file whose name begins so."""
    return any(name.startswith(prefix) for name, _ in _list_files(lake, path))


def _list_files(lake: str, path: str) -> Iterator[tuple[str, int]]:
    """Return name and bytes of the files below a folder; nothing without one."""
    folder = local_folder(lake)
    if folder is not None:
        files = (one for one in (folder / path).rglob("*") if one.is_file()) if (folder / path).is_dir() else ()
        yield from ((one.name, one.stat().st_size) for one in files)
        return
    for listed in open_store(lake).list(f"{path}/", chunk_size=50):
        yield from ((one["path"].rsplit("/", 1)[-1], one["size"]) for one in listed)


def _is_no_folder(lake: str, path: str) -> bool:
    folder = local_folder(lake)
    return folder is not None and os.path.lexists(folder / path) and not (folder / path).is_dir()
