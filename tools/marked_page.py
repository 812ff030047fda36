"""The part of a page that a command writes, between two marks; the rest of the page is a person's."""

from __future__ import annotations

from cli.arguments import UsageError


def put_between_marks(page: str, marks: tuple[str, str], part: str) -> str:
    """Return a page with other text between two marks, each on a line of its own.

    Raises:
        UsageError: the page has no such marks.
    """
    begin, end = marks
    before, begins, rest = page.partition(begin)
    _, ends, after = rest.partition(end)
    if not (begins and ends):
        raise UsageError(f"the page has no {begin} and {end}")
    return f"{before}{begin}\n{part}\n{end}{after}"
