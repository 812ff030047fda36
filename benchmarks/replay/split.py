"""Which traces and seeds are for tuning and which for test, as ``split.toml`` says."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from benchmarks.replay.replay_traces import DAY_BINS, Trace, TraceError, read_trace
from benchmarks.replay.synthetic_loads import SYNTHETIC, draw_load
from include.settings import PROJECT

SPLIT = Path(__file__).parent / "split.toml"
TRACES = PROJECT / "data" / "traces"
UNSEEN = PROJECT / "out" / "unseen"
Side = Literal["tuning", "test"]


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a trace.

    Attributes:
        trace: name of its file without endings.
        from_day: whole days after the trace's beginning.
        days: its length; 0 for all that follows.
    """

    trace: str
    from_day: int
    days: int


@dataclass(frozen=True, slots=True)
class SplitSide:
    """What one side may see.

    Attributes:
        pieces: what is replayed.
        seeds: of each.
        further: traces that belong to the side as well.
    """

    pieces: tuple[Piece, ...]
    seeds: tuple[int, ...]
    further: tuple[str, ...] = ()

    @property
    def traces(self) -> tuple[str, ...]:
        """Names of all traces of the side."""
        return (*dict.fromkeys(piece.trace for piece in self.pieces), *self.further)


def read_split(side: Side, path: Path = SPLIT) -> SplitSide:
    """Return one side of the split."""
    read = tomllib.loads(path.read_text(encoding="utf-8"))[side]
    pieces = tuple(Piece(str(one["trace"]), int(one["from_day"]), int(read["days"])) for one in read["pieces"])
    return SplitSide(pieces, tuple(int(seed) for seed in read["seeds"]), tuple(read.get("further", ())))


def read_piece(piece: Piece, folders: Sequence[Path] = (TRACES, UNSEEN)) -> Trace:
    """Return the part of a trace, or of a synthetic load.

    Raises:
        TraceError: its file is in none of the folders, or too short.
    """
    if piece.trace in SYNTHETIC:
        return _cut(draw_load(piece.trace), piece, piece.trace)
    files = [file for folder in folders for file in sorted(folder.glob(f"{piece.trace}.csv*"))]
    if not files:
        raise TraceError(
            f"{piece.trace}.csv is in none of {', '.join(map(str, folders))}: write the traces that are not shipped "
            "with python -m benchmarks.replay.unseen"
        )
    return _cut(read_trace(files[0]), piece, str(files[0]))


def _cut(whole: Trace, piece: Piece, source: str) -> Trace:
    first = piece.from_day * DAY_BINS
    values = whole.values[first : first + piece.days * DAY_BINS] if piece.days else whole.values[first:]
    if len(values) < max(piece.days, 1) * DAY_BINS:
        raise TraceError(f"{source}: day {piece.from_day} to {piece.from_day + piece.days} is not all there")
    return Trace(whole.name, whole.start_s + first * 300, values, whole.notes)
