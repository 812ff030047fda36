"""The version of the code by which each row of a table was decided."""

from __future__ import annotations

from collections.abc import Callable, Collection

from include.version import stage_version


def find_versions(stage: str, policies: Collection[str]) -> Callable[[str | None], str]:
    """Return the function that gives of a row's policy the version of a stage's code with that of the policy."""
    versions, alone = {name: stage_version(stage, [name]) for name in sorted(policies)}, stage_version(stage)
    return lambda name: versions.get(name or "", alone)
