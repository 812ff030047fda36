"""Names that people and frameworks have given to jobs and operators, and that have stopped something somewhere."""

from __future__ import annotations

STRANGE_NAMES = (
    "Foo$$Lambda$14/0x00$x",
    "$\\frac{1}{0$ and $x^$",
    "\\$already escaped\\$ $1",
    "<script>alert(1)</script>",
    'x" onmouseover="alert(1)" y="',
    "'; DROP TABLE plans; --",
    "[/red] [bold]markup[/]",
    "{{ 7 * 7 }} {% raw %}",
    "日本語 🚀 ζ",
    "tab\tline\nbreak\rbell\x07null\x00",
    "%s %d {0} {name}",
    "a/b/../c?d#e",
    "`back` $(tick)",
    "_hidden",
    "x" * 4096,
    "🚀" * 2048,
    " ",
    "",
)
