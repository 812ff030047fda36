"""The last hours of windows as the controller polls them, an Arrow file per cluster: what no ingestion has read yet."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from include.arrow_rows import arrow_columns
from include.control.small_objects import ObjectFolder, object_name
from include.tables import OBSERVATIONS

FOLDER = "_windows"
HELD_S, HELD_WINDOWS = 3 * 3600, 360
"""So many seconds, and windows, of each cluster are held."""
_MOST_BYTES = 256 << 20
_NAMES = (
    *("cluster", "job", "operator", "window_start", "window_s", "parallelism", "is_source"),
    *("observed_processing_rate_per_s", "true_processing_rate_per_s", "target_data_rate_per_s"),
    *("busy_share", "pending_records", "age_s"),
)
SCHEMA = arrow_columns({name: OBSERVATIONS.columns[name] for name in _NAMES})
"""Columns of ``silver.observations``, with the same meaning."""
_ABOUT = b"about"


class LiveJob(NamedTuple):
    """A job by its last poll: Flink's state, and when that was, epoch seconds."""

    state: str
    polled_at_s: float


class LiveCluster(NamedTuple):
    """Windows of a cluster's operators, by :data:`SCHEMA`, its jobs, and when they were written, epoch seconds."""

    windows: pa.Table
    jobs: Mapping[str, LiveJob]
    at_s: float


class LiveWindows:
    """The files below a lake; every method raises ``StoreUnreadableError``."""

    def __init__(self, lake: str) -> None:
        self._folder = ObjectFolder(lake.rstrip("/"), FOLDER, _MOST_BYTES)
        self._decoded: dict[str, tuple[bytes, tuple[str, LiveCluster] | None]] = {}

    def read(self) -> dict[str, LiveCluster]:
        """Return the clusters by name; what has not changed is not read again, what is no such file is passed over."""
        before = self._decoded
        self._decoded = {
            name: before[name] if name in before and before[name][0] is content else (content, _decode(content))
            for name, content in self._folder.read_all().items()
        }
        return dict(one for _, one in self._decoded.values() if one is not None)

    def add(self, cluster: str, windows: pa.Table, jobs: Mapping[str, LiveJob], at_s: float) -> None:
        """Put windows in the place of the same and later ones of their jobs; what is too old is dropped."""
        before, table = self.read().get(cluster), windows
        if before is not None:
            firsts = windows.group_by("job").aggregate([("window_start", "min")])
            first = firsts["window_start_min"].take(pc.index_in(before.windows["job"], firsts["job"].combine_chunks()))
            is_earlier = pc.fill_null(pc.less(before.windows["window_start"], first), True)
            table = pa.concat_tables([before.windows.filter(is_earlier), windows])
        if len(table):
            held_s = min(HELD_S, HELD_WINDOWS * pc.max(table["window_s"]).as_py())
            oldest = pc.subtract(pc.max(table["window_start"]), pa.scalar(held_s * 10**6, pa.duration("us")))
            table = table.filter(pc.greater(table["window_start"], oldest))
        about = {_ABOUT: json.dumps({"cluster": cluster, "jobs": jobs, "at_s": at_s})}
        sink = pa.BufferOutputStream()
        options = pa.ipc.IpcWriteOptions(compression="zstd")
        with pa.ipc.new_file(sink, SCHEMA.with_metadata(about), options=options) as writer:
            writer.write_table(table.combine_chunks().replace_schema_metadata(about))
        self._folder.write(object_name(cluster, "arrow"), sink.getvalue().to_pybytes())


def _decode(content: bytes) -> tuple[str, LiveCluster] | None:
    try:
        table = pa.ipc.open_file(content).read_all()
        about = json.loads(table.schema.metadata[_ABOUT])
        jobs = {name: LiveJob(*one) for name, one in about["jobs"].items()}
        return about["cluster"], LiveCluster(table.replace_schema_metadata().cast(SCHEMA), jobs, about["at_s"])
    except (pa.ArrowException, ValueError, TypeError, KeyError, AttributeError):
        return None
