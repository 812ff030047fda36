"""The version of the code by which each row of a table was decided."""

from __future__ import annotations

from collections.abc import Callable, Collection
from itertools import chain

from pyspark.sql import Column
from pyspark.sql import functions as F

from include.version import stage_version


def version_column(stage: str, policies: Collection[str]) -> Column:
    """Return the version of a stage's code with that of the policy in a row's column ``policy``, where it has one."""
    versions = _versions(stage, policies)
    alone = F.lit(stage_version(stage))
    if not versions:
        return alone
    known = F.create_map(*(F.lit(text) for text in chain.from_iterable(versions.items())))
    return F.coalesce(F.try_element_at(known, F.col("policy")), alone)


def find_versions(stage: str, policies: Collection[str]) -> Callable[[str | None], str]:
    """Return the function that gives of a row's policy what :func:`version_column` has in the row."""
    versions, alone = _versions(stage, policies), stage_version(stage)
    return lambda name: versions.get(name or "", alone)


def _versions(stage: str, policies: Collection[str]) -> dict[str, str]:
    return {name: stage_version(stage, [name]) for name in sorted(policies)}
