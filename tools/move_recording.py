"""Move a recording in time: ``python -m tools.move_recording FOLDER --minutes -8010``.

``make run`` plans from the end of one hour, so recordings of several days are moved into the same hour. Nothing but
times changes: those of the polls, and in the replies every time in epoch milliseconds near them.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
import shutil
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path

from cli.arguments import CommandParser, whole_number
from include.flink.raw_format import hour_directory, write_lines
from include.utc import DAY_S

MINUTE_MS = 60_000
_EPOCH_MS = re.compile(r"(?<!\d)\d{13}(?!\d)")
_NEAR_MS = DAY_S * 1000
_CLUSTER = "cluster="


def move_line(line: str, by_ms: int) -> str:
    """Return a raw line with its times moved.

    Args:
        line: of a raw file.
        by_ms: how far, milliseconds.
    """
    record = json.loads(line)
    at_ms = int(record["observed_at_ms"])

    def move(result: re.Match[str]) -> str:
        known = int(result[0])
        return str(known + by_ms) if abs(known - at_ms) < _NEAR_MS else result[0]

    record["observed_at_ms"] = at_ms + by_ms
    record["body"] = _EPOCH_MS.sub(move, record["body"])
    return json.dumps(record, separators=(",", ":"), ensure_ascii=False)


def move_recording(folder: Path, by_ms: int) -> int:
    """Move all files of a recording into the directories of their new hours; returns how many lines there are."""
    lines = 0
    with tempfile.TemporaryDirectory(dir=folder) as work:
        for path in sorted(folder.glob(f"{_CLUSTER}*/date=*/hour=*/*.jsonl.gz")):
            with gzip.open(path, "rt", encoding="utf-8") as received:
                moved = [move_line(line, by_ms) for line in received]
            now = datetime.fromtimestamp(json.loads(moved[-1])["observed_at_ms"] / 1000, UTC)
            cluster = path.parents[2].name.removeprefix(_CLUSTER)
            target = hour_directory(Path(work), cluster, now) / f"recorded-{now:%Y%m%dT%H%M%S}.jsonl.gz"
            lines += write_lines(target, moved)
        for cluster_dir in Path(work).iterdir():
            shutil.rmtree(folder / cluster_dir.name)
            cluster_dir.rename(folder / cluster_dir.name)
    return lines


def main(argv: list[str] | None = None) -> int:
    """Entry point."""
    parser = CommandParser(prog="move_recording", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--minutes", type=whole_number(-5_000_000, 5_000_000), required=True, help="how far")
    args: argparse.Namespace = parser.parse_args(argv)
    print(f"moved {move_recording(args.folder, args.minutes * MINUTE_MS)} lines; say so in {args.folder / 'README.md'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
