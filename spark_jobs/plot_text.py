"""Names of jobs and operators as text of a drawing, whatever they hold."""

from __future__ import annotations

from include.short_names import shorten_name

PLOT_TEXT_MAX = 64
"""Letters of a name in a drawing: more would leave its panel."""


def escape_dollars(text: str) -> str:
    r"""Return a text as Matplotlib draws it letter by letter.

    Text with two dollar signs is mathematics to Matplotlib, and ``Foo$$Lambda$14/0x00$x`` is none that it can read; a
    dollar sign after a backslash is a dollar sign.
    """
    return text.replace("$", r"\$")


def plot_text(name: str, most: int = PLOT_TEXT_MAX) -> str:
    """Return a name, short, as Matplotlib draws it letter by letter."""
    return escape_dollars(shorten_name(name, most))
