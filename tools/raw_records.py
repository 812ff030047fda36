"""Raw files as records."""

from __future__ import annotations

import json
from pathlib import Path

from include.flink.raw_format import RawRecord
from include.raw_lines import read_text_lines


def read_records(path: Path) -> list[RawRecord]:
    """Return the records of a file that :func:`write_lines` has written; no line of it may be anything else.

    Raises:
        DamagedFileError: it cannot be read to its end.
    """
    return [RawRecord(**json.loads(line)) for line in read_text_lines(path)]
