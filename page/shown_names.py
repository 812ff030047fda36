"""Short names on a page, each with the whole name in its tooltip."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from markupsafe import Markup

from fleet.facts import StepFact
from include.short_names import shorten_names, shorten_text, split_at_names
from include.tables.plan_row import PlanRow

JOB_NAME_MAX = 40
"""Letters of a job's name: it stands in a narrow column of every table."""
TEXT_MAX = 1000  # letters of a sentence
WHOLE_MAX = 2000  # letters of a tooltip


def mark_text(text: object, short: Mapping[str, str] | None = None) -> Markup:
    """Return a sentence on one line of bounded length, with the long names in it short; nothing for an empty one."""
    written = str(text)
    if not written.strip():
        return Markup("")
    parts, room = list[Markup](), TEXT_MAX
    for shown, whole in split_at_names(written, short or {}):
        if room <= 0:
            break
        parts.append(Markup.escape(_fit(shown, room)) if shown == whole else mark(shown, whole))
        room -= len(shown)
    return Markup("").join(parts).strip()


def names_of(steps: Iterable[StepFact | PlanRow], others: Iterable[str] = ()) -> dict[str, str]:
    """Return whole name -> short name of the operators of steps, and of others."""
    of_steps = {name for step in steps for name in (*step.parallelism_from, *step.parallelism_to)}
    return shorten_names({*of_steps, *others})


def _fit(part: str, room: int) -> str:
    """Return a part of a sentence in at most ``room`` letters, with the blanks that part it from a name."""
    if not part.strip():
        return " "
    before, after = " " * part[0].isspace(), " " * part[-1].isspace()
    return f"{before}{shorten_text(part, room)}{after}"


def mark(shown: str, whole: str) -> Markup:
    """Return what is shown of a name, with the whole in a tooltip where letters are left out."""
    if shown == whole:
        return Markup.escape(shown)
    return Markup('<span title="{}">{}</span>').format(shorten_text(whole, WHOLE_MAX), shown)
