"""Make a recorded plan again from the versions in its rows: `python -m cli.remake --as-of 2026-11-20T18:00:00Z`.

Nothing is written. Exit 0 when every row comes out the same, 1 when one differs.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from cli.arguments import CommandParser, moment
from include.settings import SettingsError, load_settings
from include.spark.submission import anchor_paths
from spark_jobs.lake import Lake
from spark_jobs.plan.remake_plan import NotRecordedError, make_again
from spark_jobs.session import start_session


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit code."""
    parser = CommandParser(prog="remake", description="Make a recorded plan again and compare.")
    parser.add_argument("--as-of", required=True, type=moment, help="of the plan, ISO 8601, UTC")
    as_of = parser.parse_args(argv).as_of
    try:
        settings = anchor_paths(load_settings())
    except SettingsError as error:
        print(f"remake: {error}", file=sys.stderr)
        return 1
    spark = start_session(settings, "remake")
    try:
        result = make_again(Lake(spark, settings.paths.lake), settings, as_of)
    except NotRecordedError as error:
        print(f"remake: {error}", file=sys.stderr)
        return 2
    finally:
        spark.stop()
    print(f"remake: {result.same} of {result.rows} steps are the same")
    if result.code_version != result.code_version_now:
        print(f"remake: the plan was made by code {result.code_version}, this is {result.code_version_now}")
    return 0 if result.same == result.rows else 1


if __name__ == "__main__":
    sys.exit(main())
