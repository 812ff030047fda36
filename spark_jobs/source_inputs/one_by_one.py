"""A batch of series or operators is worked on at once; where that fails, one by one, so that one spoils no other."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

import pandas as pd

from include.short_names import shorten_name

log = logging.getLogger(__name__)


def apply_with_fallback(
    rows: pd.DataFrame, keys: Sequence[str], work: Callable[[pd.DataFrame], pd.DataFrame], columns: Sequence[str]
) -> pd.DataFrame:
    """Return what ``work`` makes of all rows; if it raises, of each key's rows that it can work on.

    A key that fails is named in the log with its error and has no rows in the result.

    Args:
        rows: of a batch.
        keys: columns that say whose a row is.
        work: gets rows and returns rows with ``columns``.
        columns: of the result, also when nothing is left.
    """
    try:
        return work(rows)
    except Exception as error:
        log.warning("a batch of %d rows failed (%s: %s); one by one", len(rows), type(error).__name__, error)
    parts = []
    for key, mine in rows.groupby(list(keys), sort=True):
        try:
            parts.append(work(mine.reset_index(drop=True)))
        except Exception as error:
            name = "/".join(shorten_name(str(part)) for part in (key if isinstance(key, tuple) else (key,)))
            log.error("%s is left out: %s: %s", name, type(error).__name__, error)
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=list(columns))
