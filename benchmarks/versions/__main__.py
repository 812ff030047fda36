"""``python -m benchmarks.versions``: real clusters of several versions of Flink, one after the other; docs/versions.md.

Other versions than the project's own are installed below ``.cache/flink-versions`` (300 MB each) when they are asked
for. What was seen is kept in ``results.json`` of the folder, so that the table may come from several runs.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.versions.one_version import try_version
from benchmarks.versions.planning import plan_versions
from benchmarks.versions.results import Results, load_results, print_tables, save_results
from benchmarks.versions.run_settings import VersionSettings
from benchmarks.versions.situations import SITUATIONS, try_situation
from benchmarks.waiting import NotReachedError
from cli.arguments import CommandParser
from cli.setup import FLINK_REQUIREMENTS, read_pin
from cli.setup_steps import SetupError
from include.atomic_write import write_text
from include.flink.faults import FlinkError
from include.settings import PROJECT
from lab.commands.spark_application import ApplicationError
from lab.local_flink.build import FLINK_HOME
from lab.local_flink.releases import install_release

VERSIONS = ("1.18.1", "1.20.5", "2.0.2", "2.1.3", "2.2.1", "2.3.0")
DOCUMENT = PROJECT / "docs" / "versions.md"


def main(argv: Sequence[str] | None = None) -> int:
    """Run what was asked for; returns 1 when a cell is not as it has to be."""
    parser = CommandParser(prog="versions", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--version", nargs="*", default=list(VERSIONS), choices=VERSIONS, help="default: all")
    parser.add_argument("--situation", nargs="*", default=list(SITUATIONS), choices=SITUATIONS, help="default: all")
    parser.add_argument("--out", type=Path, default=Path("out/versions"))
    parser.add_argument("--document", type=Path, default=DOCUMENT, help="where the tables are written")
    options = parser.parse_args(argv)
    options.out.mkdir(parents=True, exist_ok=True)
    retained = options.out / "results.json"
    results = load_results(retained)
    failed = _try_versions(options.version, options.out, results, retained) if options.version else []
    for name in options.situation:
        try:
            try_situation(name, find_flink, options.out / "situations", results)
        except (FlinkError, SetupError, NotReachedError) as error:
            failed.append(f"{name}: {error}")
        save_results(results, retained)
    write_text(options.document, print_tables(results))
    wrong = [*failed, *results.wrong()]
    print("\n".join([f"written: {options.document}", *(f"wrong: {one}" for one in wrong)]))
    return 1 if wrong else 0


def find_flink(version: str) -> Path:
    """Return the folder of a version's jars; the project's own is there, another is installed if need be."""
    return FLINK_HOME if version == read_pin("apache-flink-libraries", FLINK_REQUIREMENTS) else install_release(version)


def _try_versions(versions: Sequence[str], out: Path, results: Results, kept: Path) -> list[str]:
    """Run the scene on each version and the pipeline on what was recorded; returns what went wrong."""
    began, failed, done = datetime.now(UTC), [], []
    work = Path(tempfile.mkdtemp(prefix="run-", dir=out))
    settings = VersionSettings(work.resolve())
    for version in versions:
        print(f"Flink {version} ...", flush=True)
        try:
            try_version(version, find_flink(version), settings, results)
            done.append(version)
        except (FlinkError, SetupError, NotReachedError) as error:
            failed.append(f"{version}: {error}")
            results.note(version, "collect", f"failed: {error}", is_right=False)
        save_results(results, kept)
    try:
        if done:
            plan_versions(settings, done, began, results)
    except ApplicationError as error:
        failed.append(str(error))
    save_results(results, kept)
    if not failed:
        shutil.rmtree(work)
    return failed


if __name__ == "__main__":
    sys.exit(main())
