"""``python -m tools.check_deps``: licences, bill of materials (CycloneDX), known advisories of what is installed.

Written below ``out/deps``: ``sbom.json``, ``licences.md`` and ``advisories.json``.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cli.arguments import EXIT_USAGE, CommandParser, UsageError, require_writable
from include.atomic_write import write_text
from include.settings import PROJECT

UNKNOWN = "not declared"
PATIENCE_S = 900
ADVISORY_S = 300
INSTALL = "python3 -m cli.setup --packages docs"
Component = Mapping[str, Any]


class DepsError(RuntimeError):
    """A tool is missing, or has failed; the message has what to do, or the end of what it said."""


@dataclass(frozen=True, slots=True)
class Advisory:
    """A known weakness of an installed package."""

    package: str
    version: str
    name: str
    fixed_in: str


def write_sbom(target: Path, python: Path) -> list[Component]:
    """Write the bill of materials of an environment; returns its components.

    Raises:
        DepsError: CycloneDX is missing or could not make it.
    """
    command = [_tool("cyclonedx-py"), "environment", "--output-reproducible", "--output-format", "JSON"]
    pyproject = ["--pyproject", str(PROJECT / "pyproject.toml")]
    done = _run([*command, *pyproject, "--output-file", str(target), str(python)], PATIENCE_S)
    if done.returncode or not target.is_file():
        raise DepsError(f"cyclonedx-py: {_last_line(done)}")
    result: list[Component] = json.loads(target.read_text())["components"]
    return result


def licence_of(component: Component) -> str:
    """Return a component's licences as it declares them: SPDX ids, expressions or names."""
    result = []
    for entry in component.get("licenses", ()):
        licence = entry.get("license", {})
        result.append(entry.get("expression") or licence.get("id") or licence.get("name") or "")
    names = sorted({" ".join(name.split())[:80] for name in result if name})
    return ", ".join(names) or UNKNOWN


def licence_list(components: Sequence[Component]) -> str:
    """Return the licences as a page in Markdown: how often each, then every package."""
    rows = sorted((one["name"].lower(), one.get("version", ""), licence_of(one)) for one in components)
    counts = Counter(licence for _, _, licence in rows)
    lines = ["# Licences of what is installed", "", "| licence | packages |", "|---|---|"]
    lines += [
        f"| {licence} | {count} |" for licence, count in sorted(counts.items(), key=lambda one: (-one[1], one[0]))
    ]
    lines += ["", "| package | version | licence |", "|---|---|---|"]
    return "\n".join([*lines, *(f"| {name} | {version} | {licence} |" for name, version, licence in rows), ""])


def find_advisories(requirements: Path, target: Path) -> list[Advisory] | str:
    """Return the known advisories of what is pinned, or why no service could be asked.

    Raises:
        DepsError: pip-audit is missing.
    """
    target.unlink(missing_ok=True)
    options = ["--require-hashes", "--disable-pip", "--progress-spinner", "off", "--format", "json"]
    try:
        done = _run([_tool("pip-audit"), "-r", str(requirements), *options, "--output", str(target)], ADVISORY_S)
    except subprocess.TimeoutExpired:
        return f"no reply within {ADVISORY_S} s"
    if not target.is_file():
        return _last_line(done)
    return read_advisories(json.loads(target.read_text()))


def read_advisories(result: Mapping[str, Any]) -> list[Advisory]:
    """Read pip-audit's JSON."""
    return [
        Advisory(one["name"], one.get("version", ""), each["id"], ", ".join(each.get("fix_versions", ())) or "none yet")
        for one in result["dependencies"]
        for each in one.get("vulns", ())
    ]


def _tool(name: str) -> str:
    path = Path(sys.executable).with_name(name)
    if not path.is_file():
        raise DepsError(f"{name} is not installed beside {sys.executable}: run `{INSTALL}`")
    return str(path)


def _run(command: Sequence[str], timeout_s: float) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=timeout_s)


def _last_line(done: subprocess.CompletedProcess[str]) -> str:
    lines = [line for line in (done.stdout + done.stderr).splitlines() if line.strip()]
    return lines[-1][:400] if lines else f"it ended with {done.returncode} and said nothing"


def _parse(argv: Sequence[str]) -> argparse.Namespace:
    parser = CommandParser(prog="check-deps", description=__doc__)
    parser.add_argument("--out", type=Path, default=PROJECT / "out", help="write below deps/ in this directory")
    return parser.parse_args(argv)


def main(argv: Sequence[str]) -> int:
    """Write the files; returns 1 when a package has a known weakness."""
    try:
        folder = _parse(argv).out.resolve() / "deps"
        require_writable(folder)
        components = write_sbom(folder / "sbom.json", Path(sys.executable))
        write_text(folder / "licences.md", licence_list(components))
        advisories = find_advisories(PROJECT / "requirements.txt", folder / "advisories.json")
    except UsageError as error:
        print(f"check-deps: {error}", file=sys.stderr)
        return EXIT_USAGE
    except (DepsError, OSError, subprocess.TimeoutExpired) as error:
        print(f"check-deps: {error}", file=sys.stderr)
        return 1
    undeclared = sorted(one["name"] for one in components if licence_of(one) == UNKNOWN)
    reported = f"; without a declared licence: {', '.join(undeclared)}" if undeclared else ""
    print(f"check-deps: {len(components)} packages in {folder / 'sbom.json'} and licences.md{reported}")
    if isinstance(advisories, str):
        print(f"check-deps: advisories were not checked, no service was reached: {advisories}")
        return 0
    for one in advisories:
        print(f"check-deps: {one.package} {one.version}: {one.name}, fixed in {one.fixed_in}")
    print(f"check-deps: {len(advisories)} known advisories")
    return 1 if advisories else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
