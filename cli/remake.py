"""Make a recorded plan again from the versions in its rows: `python -m cli.remake --as-of 2026-11-20T18:00:00Z`.

Nothing is written. Exit 0 when every row comes out the same, 1 when one differs.
"""

from __future__ import annotations

import argparse
import sys

from cli.arguments import CommandParser, UsageError, moment
from cli.command import command
from include.settings import load_settings
from include.spark.submission import anchor_paths
from spark_jobs.lake import Lake
from spark_jobs.plan.remake_plan import NotRecordedError, make_again
from spark_jobs.session import start_session


def run(options: argparse.Namespace, _: float) -> int:
    """Make it again; returns the exit code.

    Raises:
        UsageError: no plan of that time says what it was made from.
    """
    settings = anchor_paths(load_settings())
    spark = start_session(settings, "remake")
    try:
        result = make_again(Lake(spark, settings.paths.lake), settings, options.as_of)
    except NotRecordedError as error:
        raise UsageError(str(error)) from error
    finally:
        spark.stop()
    print(f"remake: {result.same} of {result.rows} steps are the same")
    if result.code_version != result.code_version_now:
        print(f"remake: the plan was made by code {result.code_version}, this is {result.code_version_now}")
    return 0 if result.same == result.rows else 1


def _add_arguments(parser: CommandParser) -> None:
    parser.add_argument("--as-of", required=True, type=moment, help="of the plan, ISO 8601, UTC")


main = command("remake", __doc__, _add_arguments, run)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
