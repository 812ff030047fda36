"""Copies of slices of a table, each of which says from which files it was made, and so whether it is out of date.

The copy's last partition column is ``made_from``; those before it, a date and whole numbers, name the slice.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from datetime import date
from typing import Any, TypeVar, cast

from include.lake_table import LakeTable

Slice = TypeVar("Slice", bound=tuple[Any, ...])


def find_stale(
    copy: LakeTable, files: Mapping[Slice, Iterable[str]], since: date, until: date, rule: int
) -> tuple[dict[Slice, str], list[Slice]]:
    """Return the hash that each slice of some dates has to be made from, and the slices that were not, in order.

    Another number of ``rule``, how copies are made, makes all of them stale.
    """
    wanted = {one: _hash_files(own, rule) for one, own in files.items() if since <= one[0] <= until}
    present = _read_made_from(copy, since, until)
    every = wanted.keys() | cast("set[Slice]", present.keys())
    return wanted, sorted(one for one in every if present.get(one) != {wanted.get(one)})


def _hash_files(paths: Iterable[str], rule: int) -> str:
    """Return the hash of files by their names, which are unique: a table that was moved has the same ones."""
    names = sorted(path.rsplit("/", 1)[-1] for path in paths)
    return hashlib.sha256("\n".join([str(rule), *names]).encode()).hexdigest()[:16]


def _read_made_from(copy: LakeTable, since: date, until: date) -> dict[tuple[Any, ...], set[str | None]]:
    """Return what the rows of each slice were made from: one hash, unless two programs made them at once."""
    result: dict[tuple[Any, ...], set[str | None]] = {}
    for day, *numbers, made_from in copy.read_partitions():
        if since <= (own := date.fromisoformat(day)) <= until:
            result.setdefault((own, *map(int, numbers)), set()).add(made_from)
    return result
