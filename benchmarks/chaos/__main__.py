"""``make chaos``: faults on a real Flink cluster under the controller, and how each of them ended.

Two TaskManagers, three jobs under changing load that share their slots, mode auto. About half a minute for each fault.
"""

from __future__ import annotations

import random
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from benchmarks.chaos import report
from benchmarks.chaos.catalogue import CATALOGUE, draw_faults, find_faults, share_slots
from benchmarks.chaos.run import run
from benchmarks.chaos.run_settings import Conditions
from cli.arguments import EXIT_USAGE, CommandParser, UsageError, number, require_writable, whole_number
from cli.progress import ProgressLog
from include.flink.faults import FlinkError


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; returns 0 when every fault ended as it may and no invariant was violated, else 1."""
    parser = CommandParser(prog="chaos", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--faults", type=whole_number(1, 1000), default=60, help="how many (default: 60)")
    parser.add_argument("--seed", type=whole_number(0), default=1, help="of the faults and their moments (default: 1)")
    parser.add_argument(
        "--checkpoint-every-s", type=number(1, 3600), default=10.0, help="interval of checkpoints, s (default: 10)"
    )
    parser.add_argument("--only", action="append", metavar="NAME", help="this fault; may be given several times")
    parser.add_argument("--list", action="store_true", help="list the faults by name, and end")
    parser.add_argument("--out", type=Path, default=Path("out/chaos"), help="for the table (default: out/chaos)")
    parser.add_argument("--keep", action="store_true", help="keep logs, tables and checkpoints of the run, too")
    options = parser.parse_args(argv)
    console = Console()
    if options.list:
        for fault in CATALOGUE:
            expected = " or ".join(fault.expected)
            console.print(f"{fault.group:10}  {fault.name:52}  {expected}", highlight=False, soft_wrap=True)
        return 0
    try:
        faults = find_faults(options.only) if options.only else draw_faults(options.faults, random.Random(options.seed))
        faults = share_slots(faults)  # three jobs, and not enough slots for what all of them may want
    except KeyError as error:
        parser.error(f"no fault is called {error}; --list names them")
    try:
        require_writable(options.out)
    except UsageError as error:
        print(f"chaos: {error}", file=sys.stderr)
        return EXIT_USAGE
    work = Path(tempfile.mkdtemp(prefix="run-", dir=options.out))
    progress = ProgressLog(console, {})
    console.print(f"written before the run: {report.write_expected(faults, options.out)}", highlight=False)
    try:
        result = run(work, faults, options.seed, progress.say, Conditions(options.checkpoint_every_s))
    except FlinkError as error:
        print(f"chaos: {error}", file=sys.stderr)
        return 1
    finally:
        if not options.keep:
            shutil.rmtree(work, ignore_errors=True)
    report.show(result, console)
    for path in report.write(result, options.out):
        console.print(f"written: {path}", highlight=False)
    return 0 if result.is_good else 1


if __name__ == "__main__":
    sys.exit(main())
