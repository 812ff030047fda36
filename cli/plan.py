"""``make plan``: the steps that the newest plans send within the next hours, of all jobs or of some."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from cli.arguments import CommandParser, number
from cli.known_jobs import check_scope, read_known_jobs
from cli.light_start import leave_pandas_out
from cli.printing import print_lines
from cli.questions import (
    add_common,
    answer,
    cluster_and_job,
    open_reader,
)
from fleet.facts import FleetFacts, StepFact
from fleet.health import Fault, describe_age
from fleet.moments import find_newest, resolve_time
from fleet.plain import to_json
from fleet.plans import select_due
    stay = f"{stays} of {format_count(len(running), 'job')} {'stays as it is' if stays == 1 else 'stay as they are'}"
    return [*lost, *lines, f"{stay}; newest plan of {made}"]
