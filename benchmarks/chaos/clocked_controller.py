"""``python -m benchmarks.chaos.clocked_controller FILE ...``: a controller whose clock another process sets.

The file holds by how many seconds its clock is ahead (negative: behind); it is read at each look at the clock.
Everything else is ``python -m controller``.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path


def shift_clock(file: Path) -> None:
    """Make ``time.time`` differ by what the file says."""
    real = time.time

    def read_shifted() -> float:
        return real() + float(file.read_text())

    time.time = read_shifted


if __name__ == "__main__":
    shift_clock(Path(sys.argv[1]))
    from controller.command import main

    sys.exit(main(sys.argv[2:]))
