"""Raw files as records."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

from include.flink.raw_format import RawRecord
from include.place import is_object


def read_records(path: Path) -> list[RawRecord]:
    """Return the records of a file that :func:`write_lines` has written; no line of it may be anything else."""
    with gzip.open(path.open("rb") if is_object(path) else path, "rt", encoding="utf-8") as lines:
        return [RawRecord(**json.loads(line)) for line in lines]
