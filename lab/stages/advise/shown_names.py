"""Names of jobs on the page of the advice."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from markupsafe import Markup

from include.short_names import shorten_name, shorten_names
from page.shown_names import JOB_NAME_MAX, mark


def mark_name(name: str, short: Mapping[str, str] | None = None) -> Markup:
    """Return a name as it is shown, with the whole in a tooltip where letters are left out.

    Args:
        name: whole.
        short: of :func:`include.short_names.shorten_names`; without it, or where it lacks the name, the name is
            shortened for itself.
    """
    shown = (short or {}).get(name) or shorten_name(name)
    return mark(shown, name)


def name_jobs(names: Iterable[str]) -> dict[str, str]:
    """Return whole name -> short name of the jobs of a page."""
    return shorten_names(names, JOB_NAME_MAX)
