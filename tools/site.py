"""``make site``: the documentation as a site below ``out/site``; a warning of Sphinx is an error.

Built without a network.  ``--external`` also asks for every address outside of the site.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from cli.arguments import CommandParser
from cli.setup_steps import never_silent
from include.extras import lacks_extra
from include.settings import PROJECT
from tools.site_source import write_sources

MISSING = "the packages of the site are not installed: make setup EXTRA=docs"


class SiteError(RuntimeError):
    """The site could not be built; the message has what Sphinx says."""


def build_site(target: Path, *, external: bool = False) -> int:
    """Build the site into a folder, in the place of what is there; returns the number of pages.

    Raises:
        SiteError: a link leads nowhere, a page is in no table of contents, or Sphinx is not installed.
    """
    if lacks_extra("docs"):
        raise SiteError(MISSING)
    with tempfile.TemporaryDirectory(prefix="tidewise-site-") as folder:
        sources, made = Path(folder) / "sources", Path(folder) / "html"
        sources.mkdir()
        pages = write_sources(sources)
        print(f"site: Sphinx writes {pages} pages ...", flush=True)
        with never_silent("site: Sphinx is at work"):
            _run_sphinx("html", sources, made)
            if external:
                _run_sphinx("linkcheck", sources, Path(folder) / "links")
        shutil.rmtree(made / ".doctrees", ignore_errors=True)
        shutil.rmtree(target, ignore_errors=True)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copytree(made, target)
    return pages


def _run_sphinx(builder: str, sources: Path, made: Path) -> None:
    options = ["--fail-on-warning", "--keep-going", "--nitpicky", "--quiet", "--fresh-env"]
    command = [sys.executable, "-m", "sphinx", "--builder", builder, *options, str(sources), str(made)]
    environment = os.environ | {"PYTHONPATH": str(PROJECT), "SOURCE_DATE_EPOCH": "0"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SiteError((done.stderr or done.stdout).replace(f"{sources}/", "").strip())


def _parse(argv: Sequence[str]) -> argparse.Namespace:
    parser = CommandParser(prog="site", description=__doc__)
    parser.add_argument("--out", type=Path, default=PROJECT / "out" / "site", help="folder of the site")
    parser.add_argument("--external", action="store_true", help="ask for addresses outside of it, too")
    return parser.parse_args(argv)


def main(argv: Sequence[str]) -> int:
    """Build the site; returns the exit code."""
    options = _parse(argv)
    try:
        pages = build_site(options.out, external=options.external)
    except SiteError as error:
        print(f"site: {error}", file=sys.stderr)
        return 1
    print(f"site: {pages} pages: open {options.out / 'index.html'}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
