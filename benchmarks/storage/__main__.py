"""``python -m benchmarks.storage OUT``: what 100, 1,000 and 10,000 jobs store in a month, from a `make run` in OUT.

Measured: rows, bytes and files there. Extrapolated: all of a month, in proportion to jobs and to polls, plans and
evaluations as often as the settings' defaults have them.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from benchmarks.storage.measured_lake import HOUR, POLL, measure_folder
from benchmarks.storage.month import default_pace, files_in_month, requests_in_month, table_of_months
from cli.arguments import CommandParser, folder, number
from tools.markdown import format_table

SIZES = (100, 1_000, 10_000)


def _parse(argv: Sequence[str]) -> argparse.Namespace:
    parser = CommandParser(prog="python -m benchmarks.storage", description=__doc__)
    parser.add_argument("out", type=folder, help="the directory of a `make run`")
    parser.add_argument(
        "--decisions-per-day", type=number(0, 1e6), default=24.0, help="rows of ops.control_log of a job; assumed"
    )
    parser.add_argument(
        "--requests", type=number(0, 1e6), nargs=2, metavar=("TICK", "EVALUATION"), help="of one cluster to a bucket"
    )
    return parser.parse_args(argv)


def main(argv: Sequence[str]) -> int:
    """Print the tables."""
    options = _parse(argv)
    measured, pace = measure_folder(options.out), default_pace(options.decisions_per_day)
    hours = next(one.units for one in measured if one.unit == HOUR)
    polls = next(one.units for one in measured if one.unit == POLL)
    print(f"Measured in {options.out.name}: {hours:,} hours of single jobs, {polls:,} polls of single jobs.\n")
    headings = ["table", "unit", "bytes a row", "bytes a unit and job", *(f"{size:,} jobs, GB" for size in SIZES)]
    print(format_table(headings, table_of_months(measured, SIZES, pace)))
    files = [
        [f"`{one.name}`", f"{one.files:,}", f"{one.partitions:,}", f"{files_in_month(one):,.0f}"] for one in measured
    ]
    print()
    print(format_table(["table", "files measured", "in partitions", "files a month after upkeep"], files))
    if options.requests:
        tick, evaluation = options.requests
        print(f"\nThe controller's requests: {requests_in_month(tick, evaluation, pace):,.0f} a month and cluster")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
