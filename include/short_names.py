"""Names of jobs and operators on a page, in a drawing and in a line of a log, where the whole ones do not fit.

Flink's names of chained SQL operators have hundreds of letters.  A short name keeps what tells operators apart: the
head of the chain and its end.  Wherever letters are left out there is an ellipsis, and a name that fits is not touched.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping

NAME_MAX = 60
"""Letters of a name in a table, a heading or a line of a log."""
NO_NAME = "(no name)"
_ARROW, _EXCLUDED = " -> ", "…"
_DEFAULTS = re.compile(r"`?default_catalog`?(?:\.|, )`?default_database`?(?:\.|, )")  # of every table without another
_ARGUMENTS = re.compile(r"(\w[^(]*)\((.*)\)")
_TABLE = re.compile(r"table=\[+(?:[^]]*[., …])?([^], ]+)\]")
_LEAST_PART = 12  # letters of the head and of the end of a chain


def clean_name(name: str) -> str:
    """Return a name on one line, of letters that can be printed alone; others become a blank, no name is called so.

    No other letter moves what a terminal or page shows, as control characters and marks of direction do.
    """
    return " ".join(visible(name, " ").split()) or NO_NAME


def visible(text: str, instead: str = "?") -> str:
    """Return a text without what a terminal would obey, and without what reorders or hides letters on it."""
    return "".join(letter if letter.isprintable() else instead for letter in text)


def shorten_text(text: str, most: int) -> str:
    """Return a text on one line, of which the end is left out where it has more than ``most`` letters."""
    words = clean_name(text[: 4 * most])  # a text of many kilobytes is not read to its end
    return words if len(words) <= most else f"{words[: most - 1]}{_EXCLUDED}"


def shorten_name(name: str, most: int = NAME_MAX) -> str:
    """Return a name on one line, at most ``most`` letters long.

    Of a name that is longer Flink's default catalog and database are left out, then the inner operators of a chain,
    then the arguments of an operator that is still too long, or the middle of a name without any.
    """
    retained = name if len(name) <= 16 * most else f"{name[: 8 * most]}{_EXCLUDED}{name[-8 * most :]}"
    words = clean_name(retained)
    if len(words) <= most:
        return words
    words = _DEFAULTS.sub(_EXCLUDED, words)
    if len(words) <= most:
        return words
    head, *inner = words.split(_ARROW)
    if not inner:
        return _cut(_drop_arguments(head), most)
    end = _close(inner[-1])
    between = _ARROW if len(inner) == 1 else f"{_ARROW}{_EXCLUDED}{_ARROW}"
    room = most - len(between)
    if room < 2 * _LEAST_PART:
        return _cut(words, most)
    if len(head) + len(end) > room:
        head, end = _drop_arguments(head), _drop_arguments(end)
    of_end = max(room // 2, room - len(head))
    end = _cut(end, of_end)
    return f"{_cut(head, room - len(end))}{between}{end}"


def shorten_names(names: Iterable[str], most: int = NAME_MAX) -> dict[str, str]:
    """Return whole name -> short name of ``most`` letters, of those that are shown together, such as a job's operators.

    No two whole names have the same, and a set of names has the same ever again. Names that would be alike end in ``#``
    and the first digits of their hash.
    """
    made = {name: shorten_name(name, most) for name in sorted(set(names))}
    digits = 4
    while clashing := _find_clashes(made):
        for name in clashing:
            digest = hashlib.sha256(name.encode(errors="surrogatepass")).hexdigest()[:digits]
            made[name] = f"{shorten_name(name, max(most - digits - 2, 1))} #{digest}"
        digits *= 2
    return made


def split_at_names(text: str, short: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield the parts of a text as ``(shown, whole)``: they differ where a name of ``short`` stands in a text.

    A name that became no shorter stays.
    """
    longer = sorted((whole for whole, shown in short.items() if len(whole) > len(shown)), key=len, reverse=True)
    if not longer:
        yield text, text
        return
    for part in re.split(f"({'|'.join(map(re.escape, longer))})", text):
        if part:
            yield short.get(part, part), part


def shorten_names_in(text: str, short: Mapping[str, str]) -> str:
    """Return a text with the short names in the places of the whole ones."""
    return "".join(shown for shown, _ in split_at_names(text, short))


def _find_clashes(made: Mapping[str, str]) -> list[str]:
    """Return the names that were changed into what another one is called too."""
    holders: dict[str, list[str]] = {}
    for name, shown in made.items():
        holders.setdefault(shown, []).append(name)
    return [name for shown, shared in holders.items() if len(shared) > 1 for name in shared if name != shown]


def _close(part: str) -> str:
    """Return the last operator of a chain without the brackets that were opened before it."""
    while part.endswith(")") and part.count(")") > part.count("("):
        part = part[:-1]
    return part


def _drop_arguments(operator: str) -> str:
    """Return an operator with the name of its table, where it has one, in the place of its arguments."""
    written = _ARGUMENTS.fullmatch(operator)
    if written is None:
        return operator
    table = _TABLE.search(written[2])
    dropped = f"{written[1]}({_EXCLUDED}{table[1] + _EXCLUDED if table else ''})"
    return dropped if len(dropped) < len(operator) else operator


def _cut(text: str, most: int) -> str:
    """Return an operator or a plain name of at most ``most`` letters."""
    if len(text) <= most:
        return text
    if "(" in text or most < _LEAST_PART:  # the first letters tell more than the last arguments
        return f"{text[: most - 1]}{_EXCLUDED}"
    of_end = (most - 1) // 3
    return f"{text[: most - 1 - of_end]}{_EXCLUDED}{text[len(text) - of_end :]}"
