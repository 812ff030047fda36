"""``make fresh``: the README's commands on a new Debian, in a folder of this machine; needs root and debootstrap.

Debian's base system goes into a folder, the README's packages are installed there, this checkout's last commit is
cloned into it, and each command runs there as on a new machine. Nothing of the machine around it is used but its
network.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.fresh.debian import CHECKOUT, Debian, FreshError, is_root_mounted, readme_commands, readme_packages
from cli.arguments import CommandParser

PROJECT = Path(__file__).resolve().parents[2]


def require_tools() -> None:
    """Check for what a chroot needs.

    Raises:
        FreshError: this is not root, a program is missing, or this is a chroot itself.
    """
    if os.geteuid() != 0:
        raise FreshError("debootstrap and chroot need root: run `make fresh` as root")
    missing = [name for name in ("debootstrap", "unshare", "chroot", "git") if shutil.which(name) is None]
    if missing:
        raise FreshError(f"no {' and no '.join(missing)} here: apt-get install -y debootstrap util-linux coreutils git")
    if not is_root_mounted():
        raise FreshError("this is a chroot itself, whose mounts cannot be kept apart: run `make fresh` outside")


def run_commands(debian: Debian, packages: Sequence[str], commands: Sequence[str]) -> None:
    """Make the system, then run each command and print how long it took.

    Raises:
        FreshError: one failed.
    """
    say = f"fresh: Debian {debian.suite} in {debian.root}"
    print(f"{say} ...", flush=True)
    debian.create()
    debian.run(f"apt-get update -qq && apt-get install -y -qq {' '.join(packages)}", quiet=True)
    debian.trust_what_this_machine_trusts()
    debian.clone(PROJECT)
    for command in commands:
        print(f"fresh: {command}", flush=True)
        started = time.monotonic()
        debian.run(f"cd {CHECKOUT} && {command}")
        print(f"fresh: {command} took {time.monotonic() - started:.0f} s", flush=True)


def _parse(argv: Sequence[str]) -> argparse.Namespace:
    parser = CommandParser(prog="fresh", description=__doc__)
    parser.add_argument("--suite", default="trixie", help="Debian's release: trixie is 13, bookworm 12")
    parser.add_argument("--mirror", help="of Debian's packages; default: this machine's own")
    parser.add_argument("--folder", type=Path, help="where; default: out/fresh/SUITE of this checkout")
    parser.add_argument("--packages", nargs="+", help="default: those of the README")
    parser.add_argument("--commands", nargs="+", help="default: those of the README")
    parser.add_argument("--keep", action="store_true", help="use what an earlier run left, and leave it there")
    return parser.parse_args(argv)


def main(argv: Sequence[str]) -> int:
    """Run; a failure is one message, and the system is left for a look."""
    options = _parse(argv)
    readme = (PROJECT / "README.md").read_text()
    folder = (options.folder or PROJECT / "out" / "fresh" / options.suite).absolute()
    debian = Debian(folder, options.suite, options.mirror)
    try:
        require_tools()
        if not options.keep:
            debian.remove()
        run_commands(debian, options.packages or readme_packages(readme), options.commands or readme_commands(readme))
        if not options.keep:
            debian.remove()
    except FreshError as error:
        print(f"fresh: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
