"""Series or operators are worked on at once; where that fails, one by one, so that one spoils no other."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import TypeVar

from include.short_names import shorten_name

log = logging.getLogger(__name__)
Item = TypeVar("Item")
Result = TypeVar("Result")


def work_with_fallback(
    items: Sequence[Item], work: Callable[[Sequence[Item]], Result], names_of: Callable[[Item], Sequence[str]]
) -> list[tuple[Sequence[Item], Result]]:
    """Return what ``work`` makes of all items; if it raises, of each that it can work on, beside the items.

    One that fails is named in the log with its error, by ``names_of``, and has no result.
    """
    try:
        return [(items, work(items))]
    except Exception as error:
        log.warning("a batch of %d failed (%s: %s); one by one", len(items), type(error).__name__, error)
    result: list[tuple[Sequence[Item], Result]] = []
    for one in items:
        try:
            result.append(([one], work([one])))
        except Exception as error:
            log.error("%s is left out: %s: %s", "/".join(map(shorten_name, names_of(one))), type(error).__name__, error)
    return result
