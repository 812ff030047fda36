"""What does the work of a target that the Makefile no longer has; for one release. Standard library only."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path

from cli.console import VERBS

MAKEFILE = Path(__file__).resolve().parents[1] / "Makefile"
GONE = {
    "backfill": "./tidewise import",
    "check-deps": ".venv/bin/python -m tools.check_deps",
    "cluster": "make test-long PART=cluster",
    "compare": ".venv/bin/python -m tools.compare_runs",
    "mutate": ".venv/bin/python -m tools.mutate_rules --group capacity calibration scheduling value_rules",
    "mutate-rules": ".venv/bin/python -m tools.mutate_rules",
    "record": ".venv/bin/python -m tools.record",
    "structure": ".venv/bin/python -m tools.structure",
}
"""Target -> command; one that has the name of a verb is that verb."""


def list_targets() -> list[str]:
    """Return the targets of the Makefile that make help-all lists."""
    return re.findall(r"^([a-z-]+):.*##", MAKEFILE.read_text(), re.MULTILINE)


def find_command(target: str) -> str | None:
    """Return what does the work of a target that went; None where there was no such target."""
    if target.startswith("test-long-"):
        return f"make test-long PART={target.removeprefix('test-long-')}"
    return f"./tidewise {target}" if target in VERBS else GONE.get(target)


def answer(target: str, arguments: str) -> str:
    """Return what to type in place of a target that is not there."""
    if command := find_command(target):
        return f"make {target} went; type: {command} {arguments}".rstrip()
    targets = list_targets()
    near = get_close_matches(target, {*targets, *VERBS}, cutoff=0.5)
    named = [f"make {one}" if one in targets else f"./tidewise {one}" for one in near]
    return f"there is no target {target!r}; " + (
        f"did you mean {', '.join(named)}?" if named else "make help-all lists them"
    )


def main(argv: Sequence[str]) -> int:
    """Answer for a target and the value of ARGS; returns the exit code, which is never 0."""
    print(f"make: {answer(*argv)}", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
