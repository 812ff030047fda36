"""``python -m tools.structure``: what each entry point loads, and sizes of the parts, today and before."""

from __future__ import annotations

import io
import re
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from cli.arguments import CommandParser
from include.import_closure import close_over_imports
from include.policy_catalogue import BUILT_IN as POLICIES
from include.settings import PROJECT
from include.stage_catalogue import BUILT_IN as STAGES
from tools.entry_points import (
    PRODUCT,
    close_each,
    import_each,
    list_entry_points,
    of_laboratory,
    read_sources,
)
from tools.markdown import format_table

_APART = ("lab", "benchmarks", "tools", "tests")
_DEFAULT = POLICIES["programme"]
HOURLY_AND_NIGHTLY = (
    *(entry.module for entry in STAGES.values()),
    *("spark_jobs.launch", "controller", "page", "dags"),
    *(path.partition(":")[0] for path in (_DEFAULT.factory, _DEFAULT.slot_problem, _DEFAULT.past_learner) if path),
    _DEFAULT.memory_codec,
)
"""What is loaded each hour and night: DAG files, their stages, controller, page and the default policy."""


def measure(root: Path) -> dict[str, int]:
    """Return part of a checkout -> its size: lines of Python, but for the last rows; 0 for what is not there."""
    sources = read_sources(root, (*PRODUCT, *_APART))
    lines = {path: content.count(b"\n") for path, content in sources.items()}
    of_folder = {
        folder: sum(count for path, count in lines.items() if path.startswith(f"{folder}/"))
        for folder in (*PRODUCT, *_APART)
    }
    loaded = close_over_imports(sources, HOURLY_AND_NIGHTLY)
    settings = (root / "docs" / "settings.md").read_text()
    tables = (root / "docs" / "tables.md").read_text()
    pages = [root / "README.md", *(root / "docs").rglob("*.md")]
    return {
        "product": sum(of_folder[folder] for folder in PRODUCT),
        **{f"- {folder}": of_folder[folder] for folder in PRODUCT},
        **{folder: of_folder[folder] for folder in _APART},
        "loaded each hour and night": sum(lines[path] for path in loaded),
        "files of the product": sum(path.partition("/")[0] in PRODUCT for path in sources),
        "rows of settings": _count_rows(settings),
        "policies": _count_rows(re.split(r"\n##+ ", settings.partition("\n## Policies\n")[2])[0]),
        "tables of the lake": len(re.findall(r"^### \w+\.\w+$", tables, re.MULTILINE)),
        "words of README and docs": sum(len(page.read_text().split()) for page in pages),
        "targets of make help": len(re.findall(r"^[a-z-]+:.*##", (root / "Makefile").read_text(), re.MULTILINE)),
    }


def _count_rows(page: str) -> int:
    """Return the number of rows and of lines of lists that begin with a name."""
    return len(re.findall(r"^(?:\||-) `", page, re.MULTILINE))


def measure_revision(revision: str) -> dict[str, int]:
    """Return the sizes as of a revision.

    Raises:
        CalledProcessError: git does not have it.
    """
    packed = subprocess.run(["git", "archive", revision], cwd=PROJECT, check=True, stdout=subprocess.PIPE).stdout
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
            archive.extractall(folder, filter="data")
        return measure(Path(folder))


def format_loaded() -> str:
    """Return a table of the entry points: modules imported at the start and at any time, those of lab among them."""
    points = list_entry_points()
    imported = import_each(points.values())
    closed = close_each(points.values(), read_sources(PROJECT, (*PRODUCT, "lab")))
    rows = []
    for name, module in points.items():
        laboratory = sorted({*of_laboratory(imported[module]), *of_laboratory(closed[module])})
        rows.append((name, str(len(imported[module])), str(len(closed[module])), ", ".join(laboratory) or "none"))
    return format_table(("entry point", "imports", "can import", "of lab"), rows)


def format_sizes(now: Mapping[str, int], before: Mapping[str, int] | None, revision: str) -> str:
    """Return a table of sizes, with those before and the difference where a revision is given."""
    if before is None:
        return format_table(("lines of", "now"), ((name, f"{size:,}") for name, size in now.items()))
    rows = ((name, f"{before[name]:,}", f"{size:,}", f"{size - before[name]:+,}") for name, size in now.items())
    return format_table(("lines of", revision, "now", "difference"), rows)


def main(argv: Sequence[str]) -> int:
    """Print both tables; returns the exit code: 1 when an entry point loads a module of the laboratory.

    DAG files of its stages read what `lab/stages/entries.py` says of them.
    """
    parser = CommandParser(prog="structure", description=__doc__)
    parser.add_argument("--base", metavar="REV", help="revision of git whose sizes stand beside today's")
    arguments = parser.parse_args(argv)
    before = measure_revision(arguments.base) if arguments.base else None
    print(format_sizes(measure(PROJECT), before, arguments.base))
    loaded = format_loaded()
    print(f"\n{loaded}")
    rows = (line for line in loaded.splitlines()[2:] if not line.startswith("| DAG"))
    return int(any(not row.endswith("| none |") for row in rows))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
