"""An hour as one application, and as three: ``python -m benchmarks.pipeline.hour_applications``.

Both pass over copies of one lake, in turn, in the same minutes: what else runs on the machine meets both.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.pipeline.hourly import HOURLY, environment, prepare, run_pass
from cli.arguments import CommandParser, whole_number
from include.stage_names import Stage

ALONE = ((Stage.INGEST,), (Stage.FORECAST,), (Stage.PLAN, Stage.REPORT))
WAYS: dict[str, Sequence[Sequence[Stage]]] = {"three applications": ALONE, "one application": (HOURLY,)}
FIGURES = ("cpu_s", "pass_s", "peak_gib")


def main(argv: Sequence[str] | None = None) -> int:
    """Print the figures of every round, in Markdown."""
    parser = CommandParser(prog="hour_applications", description=__doc__)
    parser.add_argument("--jobs", type=whole_number(1, 10_000), default=20)
    parser.add_argument("--rounds", type=whole_number(1, 20), default=3)
    asked = parser.parse_args(argv)
    print(f"| {asked.jobs} jobs | CPU s | seconds | GiB |\n|---|---|---|---|")
    with tempfile.TemporaryDirectory(prefix="tidewise-hour-") as folder, environment(work := Path(folder)):
        prepare(work, asked.jobs, 8)
        (work / "lake").rename(work / "before")
        for _ in range(asked.rounds):
            for name, applications in WAYS.items():
                shutil.copytree(work / "before", work / "lake")
                figures = run_pass(work, *applications)
                shutil.rmtree(work / "lake")
                print(f"| {name} | {' | '.join(f'{figures[one]:.1f}' for one in FIGURES)} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
