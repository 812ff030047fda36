"""The hour on one executor and on two, of one core each: ``python -m benchmarks.pipeline.executors --jobs 100``.

Real processes: Spark's own master and workers (``local-cluster``), each executor a Java process with workers of Python.
The speed-up is of what is not the driver: of the seconds in which a task was running.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.pipeline.hourly import END, HOUR, HOURLY, environment, prepare, submit
from benchmarks.pipeline.spark_events import logged_events, read_events
from cli.arguments import CommandParser, whole_number

MEMORY_MIB = 1024


def main(argv: Sequence[str] | None = None) -> int:
    """Print the figures, in Markdown."""
    parser = CommandParser(prog="executors", description=__doc__)
    parser.add_argument("--jobs", type=whole_number(1, 10_000), default=100)
    parser.add_argument("--executors", type=whole_number(1, 16), nargs="+", default=[1, 2])
    asked = parser.parse_args(argv)
    print(f"| {asked.jobs} jobs, executors | seconds | CPU s | GiB | tasks at work, s | speed-up of these |")
    print("|---|---|---|---|---|---|")
    first_s = None
    with tempfile.TemporaryDirectory(prefix="tidewise-executors-") as folder, environment(work := Path(folder)):
        prepare(work, asked.jobs, 8)
        (work / "lake").rename(work / "before")
        for count in asked.executors:
            shutil.copytree(work / "before", work / "lake")
            events = work / f"events-{count}"
            with logged_events(events):
                master = f"local-cluster[{count},1,{MEMORY_MIB}]"
                usage = submit(HOURLY[0], work, END, (END - HOUR, END), *HOURLY[1:], master=master)
            shutil.rmtree(work / "lake")
            busy_s = read_events(events).busy_s
            first_s = first_s or busy_s
            figures = (usage.seconds, usage.cpu_s, usage.peak_bytes / 2**30, busy_s, first_s / busy_s)
            print(f"| {count} | {' | '.join(f'{one:.2f}' for one in figures)} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
