"""Named faults of replies: what could not be used, of which job, and why."""

from __future__ import annotations

from dataclasses import dataclass

from include.domain.quarantine_rules import Rule

_LONGEST_DETAIL = 200  # characters: a reply may be an error page of any length


@dataclass(frozen=True, slots=True)
class ReplyFault:
    """One reply, or one part of it, that was not used.

    Attributes:
        cluster: its name.
        job: the job's name, its id while no name is known, empty for what concerns no job.
        rule: why.
        detail: where, with the beginning of what was received.
    """

    cluster: str
    job: str
    rule: Rule
    detail: str


class ReplyError(ValueError):
    """A reply that cannot be used at all."""

    def __init__(self, rule: Rule, detail: str) -> None:
        super().__init__(f"{rule}: {detail}")
        self.rule, self.detail = rule, detail


def shorten(text: str) -> str:
    """Return a text that can be logged: printable, and not longer than a line.

    >>> shorten("one" + chr(9) + "two" * 100)[:7].isprintable(), len(shorten("x" * 1000))
    (True, 200)
    """
    head = text[:_LONGEST_DETAIL]
    return "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in head)
