"""``make fuzz``: mutated raw lines through ingestion, twice; prints what became of them, exits 1 on a violation."""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

from rich.console import Console
from rich.table import Table

from cli.arguments import CommandParser, whole_number
from include.settings import SETTINGS_FILE_VARIABLE, Settings, Spark
from include.stage_names import Stage
from include.stage_request import StageRequest
from spark_jobs.ingest import stage as ingest
from spark_jobs.lake import Lake
from spark_jobs.session import start_session
from tests.fuzz.checks import find_violations, fingerprint, outcomes
from tests.fuzz.world import END, START, World, write_world
from tests.spark.lake_settings import REPOSITORY, settings_below

MOST_SHOWN = 50
_LINES_OF_PARTITION = 10_000


def main(argv: Sequence[str] | None = None) -> int:
    """Run it; returns the exit code."""
    parser = CommandParser(prog="fuzz", description=__doc__)
    parser.add_argument("--lines", type=whole_number(100, 10**7), default=2_000, help="mutated lines (default: 2000)")
    parser.add_argument("--seed", type=whole_number(0), default=1, help="of the mutations (default: 1)")
    chosen = parser.parse_args(argv)
    with tempfile.TemporaryDirectory(prefix="tidewise-fuzz-") as work:
        os.environ[SETTINGS_FILE_VARIABLE] = str(Path(work, "none.toml"))
        os.environ["PYTHONPATH"] = os.pathsep.join([str(REPOSITORY), os.environ.get("PYTHONPATH", "")])
        return _run(Path(work), chosen.lines, chosen.seed, Console(width=160))


def _run(work: Path, lines: int, seed: int, console: Console) -> int:
    settings = _with_room(settings_below(work), lines)
    world = write_world(Path(settings.paths.raw), lines, seed)
    written = sum(map(len, world.lines.values()))
    console.print(f"{written} lines written, {world.mutated} of them mutated, and {len(world.damaged)} damaged files")
    spark = start_session(settings, "fuzz")
    request = StageRequest(Stage.INGEST, END, START, END)
    lake = Lake(spark, settings.paths.lake)
    took_s = []
    prints = []
    for _ in range(2):
        began_s = time.monotonic()
        summary = ingest.run(spark, settings, request)
        took_s.append(time.monotonic() - began_s)
        prints.append(fingerprint(lake))
    console.print({name: value for name, value in summary.items() if name != "refusals"})
    violations = list(islice(find_violations(world, lake), MOST_SHOWN))
    violations += [f"{name}: another run made other rows" for name in prints[0] if prints[0][name] != prints[1][name]]
    _show(world, lake, console)
    console.print(f"ingested twice, {took_s[0]:.0f} and {took_s[1]:.0f} s; {len(violations)} violations")
    for violation in violations:
        console.print(f"violation: {violation}", markup=False, highlight=False)
    spark.stop()
    return 1 if violations else 0


def _with_room(settings: Settings, lines: int) -> Settings:
    """Return the settings with the memory that a user has by default, and partitions for so many lines."""
    partitions = max(settings.spark.shuffle_partitions, lines // _LINES_OF_PARTITION)
    own = {"driver_memory": Spark().driver_memory, "shuffle_partitions": partitions}
    return settings.model_copy(update={"spark": settings.spark.model_copy(update=own)})


def _show(world: World, lake: Lake, console: Console) -> None:
    table = Table("mutation", "lines", "kept", "refused", "most frequent rules")
    for mutation, counted in sorted(outcomes(world, lake).items()):
        retained = counted.pop("kept", 0)
        rules = ", ".join(f"{reason} {number}" for reason, number in counted.most_common(4))
        table.add_row(mutation, str(retained + counted.total()), str(retained), str(counted.total()), rules)
    console.print(table)


if __name__ == "__main__":
    sys.exit(main())
