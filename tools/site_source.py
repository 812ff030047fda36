"""The pages of the site, gathered from the repository into one folder with links that hold there.

Most pages are those of ``docs/``.  Pages that lie elsewhere because other tools look for them there (the changelog, the
papers' results) get a place of their own; a link to what is no page or file of the site becomes its path.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator, Mapping
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath

from include.settings import PROJECT

RESULTS = "benchmarks/papers/results"
MOVED = {
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "lab/settings.md": "policy_parameters.md",
    f"{RESULTS}/papers.md": "papers/index.md",
}
"""Path in the repository -> path in the site."""
RECORDS = (
    *("adr/*", "models/*", "nexmark/*", "papers/*", "reliability/*", "replay/*"),
    *("changelog.md", "chaos.md", "live.md", "nexmark.md", "performance.md", "policy_parameters.md", "replay.md"),
)
"""Pages of the site whose tables and histories would stand above the guides that a search is for."""
NO_SEARCH = "---\nnosearch: true\n---\n\n"
_CODE = re.compile(r"^(```|~~~).*?^\1\s*$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)")


def list_sources(root: Path = PROJECT) -> dict[str, str]:
    """Return the path in the site of every file that goes there, by its path in the repository."""
    docs = [path for path in (root / "docs").rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    result = {path.relative_to(root).as_posix(): path.relative_to(root / "docs").as_posix() for path in docs}
    for path in sorted((root / RESULTS).rglob("*")):
        if path.suffix in {".md", ".png"}:
            result[path.relative_to(root).as_posix()] = f"papers/{path.relative_to(root / RESULTS).as_posix()}"
    return result | MOVED


def rewrite_links(text: str, source: str, places: Mapping[str, str]) -> str:
    """Return a page with links that hold in the site.

    Args:
        text: the page.
        source: its path in the repository.
        places: path in the site by path in the repository.
    """

    def rewrite(match: re.Match[str]) -> str:
        image, label, target = match.groups()
        path, _, anchor = target.partition("#")
        if "://" in target or not path or target.startswith("mailto:"):
            return match.group(0)
        wanted = os.path.normpath(PurePosixPath(source).parent / path)
        if wanted == "docs/adr":
            wanted = "docs/adr/index.md"
        if wanted not in places:
            return label if label.strip("`") == wanted else f"{label} (`{wanted}` in the repository)"
        place = os.path.relpath(places[wanted], PurePosixPath(places[source]).parent)
        return f"{image}[{label}]({place}{'#' + anchor if anchor else ''})"

    return "".join(part if is_code else _LINK.sub(rewrite, part) for part, is_code in _split_code(text))


def _split_code(text: str) -> Iterator[tuple[str, bool]]:
    """Yield the parts of a page in order, each with whether it is a block of code."""
    at = 0
    for block in _CODE.finditer(text):
        yield text[at : block.start()], False
        yield block.group(0), True
        at = block.end()
    yield text[at:], False


def is_record(place: str) -> bool:
    """Return whether a page of the site is left out of its search."""
    return any(fnmatch(place, pattern) for pattern in RECORDS)


def write_sources(target: Path, root: Path = PROJECT) -> int:
    """Write the site's sources into an empty folder; returns the number of pages."""
    places = list_sources(root)
    for source, place in places.items():
        written = target / place
        written.parent.mkdir(parents=True, exist_ok=True)
        if not source.endswith(".md"):
            shutil.copyfile(root / source, written)
            continue
        page = rewrite_links((root / source).read_text(encoding="utf-8"), source, places)
        if place == "papers/index.md":
            page += "\n```{toctree}\n:glob:\n:hidden:\n\n*\n```\n"
        written.write_text(NO_SEARCH + page if is_record(place) else page, encoding="utf-8")
    return sum(place.endswith(".md") for place in places.values())
