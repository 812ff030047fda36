"""``python -m benchmarks.certificates``: what the simulated jobs of the shipped history cost beside the least.

Their last week under their teams' own rules, with the true capacities known to 5%: how well the certificate does on
learnt models is for the weekly backtest to say.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from benchmarks.certificates.simulated_week import DAYS, list_weeks
from cli.arguments import CommandParser, whole_number
from include.settings import Backtest, Settings
from lab.advice.certificate import certify


def main(argv: Sequence[str] | None = None) -> int:
    """Print a line per job as it is done, then the jobs with most regret first."""
    parser = CommandParser(prog="certificates", description=__doc__)
    parser.add_argument("--job", nargs="+", metavar="NAME", help="default: all simulated jobs")
    parser.add_argument("--days", type=whole_number(1), default=DAYS, metavar="N", help=f"default: {DAYS}")
    options = parser.parse_args(argv)
    settings = Settings(backtest=Backtest(days=options.days))
    lines: list[tuple[float, str]] = []
    with threadpool_limits(limits=1):
        for week in list_weeks(options.days):
            name = week.subject.job
            if options.job and name not in options.job:
                continue
            made = certify(week.subject, week.history, settings)
            interval = f"{made.ratio:.2f} ({made.ratio_low:.2f} to {made.ratio_high:.2f})"
            line = f"{name}: {interval}, regret {made.regret:.0f} a day of {made.ran.cost:.0f}; {made.reason or '-'}"
            print(line, flush=True)
            lines.append((made.regret, line))
    print("\nmost regret first:")
    for _, line in sorted(lines, reverse=True):
        print(line)
    return 0


if __name__ == "__main__":
    sys.exit(main())
