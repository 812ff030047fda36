"""``python -m benchmarks.replay.evidence``: every published table of the replay, made by one command.

It says how many CPU hours are left, replays what has not run with today's decisions, each policy on each load by itself
(stop it at any time, it goes on where it was; what is published counts as run), and writes ``published/costs.csv`` and
the tables and the figure of README.md and docs/replay.md from it.  ``--publish`` writes them from what has run; a
policy that has not run on every load of a study is left out of its tables.  The traces that are not shipped come from
``python -m benchmarks.replay.unseen``.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from benchmarks.replay.cost_rows import read_costs
from benchmarks.replay.cpu_estimate import estimate_cpu_s
from benchmarks.replay.evidence.fingerprints import read_fingerprints, refresh_fingerprints, write_fingerprints
from benchmarks.replay.evidence.frontier_forms import split_point
from benchmarks.replay.evidence.publish import publish
from benchmarks.replay.evidence.published_costs import COSTS
from benchmarks.replay.evidence.studies import Study, Unit, read_studies
from benchmarks.replay.evidence.unit_rows import compute_fingerprints, join_units, read_rows, restore_units, run_units
from benchmarks.replay.split import UNSEEN
from cli.arguments import CommandParser, whole_number
from cli.process_group import exit_on_sigterm

OUT = Path("out/evidence")


def main(argv: Sequence[str] | None = None) -> int:
    """Run what is missing and publish, or publish."""
    studies = read_studies()
    parser = CommandParser(prog="replay.evidence", description=__doc__)
    parser.add_argument("--study", nargs="+", choices=sorted(studies), metavar="NAME", help=f"of {', '.join(studies)}")
    parser.add_argument("--policy", nargs="+", metavar="NAME", help="only these; the order of their runs")
    parser.add_argument("--publish", action="store_true", help="run nothing, write the tables")
    parser.add_argument("--estimate", action="store_true", help="say what is left, and end")
    parser.add_argument("--unseen", type=Path, default=UNSEEN, metavar="DIR", help=f"default: {UNSEEN}")
    parser.add_argument("--out", type=Path, default=OUT, metavar="DIR", help=f"rows of the units; default: {OUT}")
    parser.add_argument("-j", "--jobs", type=whole_number(1), default=os.cpu_count() or 1, metavar="N")
    options = parser.parse_args(argv)
    console, chosen = Console(), [studies[name] for name in options.study or studies]
    exit_on_sigterm()
    every_unit = join_units([unit for study in studies.values() for unit in study.list_units()])
    restored = restore_units(every_unit, read_costs([COSTS]), options.out, read_fingerprints())
    console.print(f"{restored} runs taken from {COSTS.name}", highlight=False)
    if not options.publish:
        units = list_units(chosen, options.policy)
        policies = list(dict.fromkeys(unit.policy for unit in units))
        console.print(f"fingerprints of {len(policies)} policies", highlight=False)
        cache = options.out / "fingerprints.json"
        cache.parent.mkdir(parents=True, exist_ok=True)
        known = refresh_fingerprints(policies, cache, lambda names: compute_fingerprints(names, options.jobs))
        missing = [unit for unit in units if read_rows(unit, options.out, known[unit.policy]) is None]
        estimates_s = [estimate_unit_s(unit) for unit in missing]
        console.print(
            f"{len(missing)} of {len(units)} runs are left, about {sum(estimates_s) / 3600:.1f} CPU hours",
            highlight=False,
        )
        if options.estimate:
            return 0
        done_s = 0.0

        def say(unit: Unit) -> None:
            nonlocal done_s
            done_s += estimate_unit_s(unit)
            console.print(f"{done_s / sum(estimates_s):4.0%} {unit.policy} on {unit.load}", highlight=False)

        write_fingerprints({**read_fingerprints(), **known})
        run_units(missing, options.out, known, options.unseen, processes=options.jobs, progress=say)
    for path in publish(studies, options.out, read_fingerprints(), options.unseen):
        console.print(f"written: {path}", highlight=False)
    return 0


def list_units(studies: Sequence[Study], policies: Sequence[str] | None) -> list[Unit]:
    """Return what studies run, of some policies or of all."""
    units = join_units([unit for study in studies for unit in study.list_units()])
    if policies is None:
        return units
    return [unit for name in policies for unit in units if unit.policy == name]


def estimate_unit_s(unit: Unit) -> float:
    """Return the CPU seconds of a unit, roughly."""
    return estimate_cpu_s(split_point(unit.policy)[0]) * unit.days * len(unit.seeds)


if __name__ == "__main__":
    sys.exit(main())
