"""``tidewise why cluster/job --at 03:00``: why a job was rescaled, or was not, and what became of it."""

from __future__ import annotations

import argparse
from datetime import UTC, datetime

from cli.arguments import CommandParser, UsageError
from cli.command import command
from cli.known_jobs import check_scope, read_known_jobs
from cli.printing import print_lines
from cli.questions import (
    add_common,
    cluster_and_job,
    open_reader,
)
from fleet.explanation import explain
from fleet.explanation_text import describe_explanation
from fleet.plain import to_json


def run(options: argparse.Namespace, now_s: float) -> int:
    """Print the explanation.

    Raises:
        UsageError: nothing was decided on the job until then.
        UnknownNameError: there is no such job.
    """
    settings, reader = open_reader(options)
    at = options.at or datetime.fromtimestamp(now_s, UTC)
    cluster, _, job = options.job.partition("/")
    result = explain(reader, cluster, job, at)
    if result is None:
        check_scope(options.job, settings, read_known_jobs(settings, at.timestamp()))
        raise UsageError(f"nothing was decided on {options.job} in the two weeks before {at:%Y-%m-%d %H:%M}Z")
    if options.json:
        print(to_json("why", {"at": at, "explanation": result}))
    else:
        print_lines(describe_explanation(result, now_s))
    return 0


def _add_arguments(parser: CommandParser) -> None:
    parser.add_argument("job", type=cluster_and_job, help="cluster/job")
    add_common(parser, "when; the rescale nearest to it within an hour, else the last decision before it; default: now")


main = command("why", __doc__, _add_arguments, run, reads=True)
