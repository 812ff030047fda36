"""Tables and lists in Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def format_table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    r"""Return a table.

    >>> print(format_table(("name", "why"), [("`red`", "it glows | it burns")]))
    | name | why |
    |---|---|
    | `red` | it glows \| it burns |
    """
    lines = [f"| {' | '.join(heads)} |", f"|{'---|' * len(heads)}"]
    lines += [f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |" for row in rows]
    return "\n".join(lines)


def format_list(rows: Iterable[tuple[str, str]]) -> str:
    """Return a list of names with their meanings, for two columns that need no heads.

    >>> print(format_list([("`red`", "it glows"), ("`blue`", "")]))
    - `red`: it glows
    - `blue`
    """
    return "\n".join(f"- {name}: {meaning}" if meaning else f"- {name}" for name, meaning in rows)
