"""Names of jobs and operators as text of a page or a plot, whatever they hold."""

from __future__ import annotations

import unicodedata

PLOT_TEXT_MAX = 64
"""Letters of a name in a drawing: more would leave its panel."""
PAGE_TEXT_MAX = 200
NO_NAME = "(no name)"


def shorten_name(name: str, most: int = PAGE_TEXT_MAX) -> str:
    """Return a name on one line, at most ``most`` letters long, without letters that XML 1.0 or a terminal refuses.

    Control characters, lone surrogates and unassigned code points become a blank; an empty name is called so.
    """
    kept = name[: 4 * most]  # a name of many kilobytes is not read to its end
    printable = "".join(" " if unicodedata.category(letter) in {"Cc", "Cs", "Cn"} else letter for letter in kept)
    words = " ".join(printable.split())
    if not words:
        return NO_NAME
    return words if len(words) <= most else f"{words[: most - 1]}…"


def plot_text(name: str, most: int = PLOT_TEXT_MAX) -> str:
    r"""Return a name as Matplotlib draws it letter by letter.

    Text with two dollar signs is mathematics to Matplotlib, and ``Foo$$Lambda$14/0x00$x`` is none that it can read; a
    dollar sign after a backslash is a dollar sign.
    """
    return shorten_name(name, most).replace("$", r"\$")
