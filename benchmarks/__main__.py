"""``make bench``: the figures of benchmarks/pipeline/, taken in one run and written to ``out/bench.json``."""

from __future__ import annotations

import importlib
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from benchmarks.measurement import Measurement, show, write
from cli.arguments import CommandParser, UsageError, require_writable_file

BENCHMARKS = (
    "training",
    "training_month",
    "forecasting",
    "ingest",
    "ingest_profile",
    "spark_jobs",
    "hourly",
    "source_forecasts",
    "long_history",
    "planning",
    "live_windows",
    "controller_ticks",
    "collection",
    "page",
    "models",
    "commands",
)
BESIDE_A_COMMIT = ("models",)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the chosen benchmarks one after the other; each works in a directory that is removed at its end."""
    parser = CommandParser(prog="bench", description=__doc__)
    parser.add_argument("names", nargs="*", help=f"some of: {', '.join(BENCHMARKS)} (default: all)")
    parser.add_argument("--json", type=Path, default=Path("out/bench.json"), help="where the figures go")
    parser.add_argument("--commit", help=f"measure this commit too, beside the change: {', '.join(BESIDE_A_COMMIT)}")
    chosen = parser.parse_args(argv)
    unknown = set(chosen.names) - set(BENCHMARKS)
    if unknown:
        parser.error(f"no such benchmark: {', '.join(sorted(unknown))}; choose from {', '.join(BENCHMARKS)}")
    try:
        require_writable_file(chosen.json, "--json")
    except UsageError as error:
        parser.error(str(error))
    console = Console()
    result: list[Measurement] = []
    for name in chosen.names or BENCHMARKS:
        with console.status(f"measuring {name}"), tempfile.TemporaryDirectory(prefix=f"tidewise-{name}-") as work:
            options = {"commit": chosen.commit} if name in BESIDE_A_COMMIT else {}
            result += importlib.import_module(f"benchmarks.pipeline.{name}").run(Path(work), **options)
        console.print(f"{name} done")
        write(result, chosen.json)
    show(result, console)
    console.print(f"written: {chosen.json}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
