"""Named faults of replies: what could not be used, of which job, and why."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

_LONGEST_DETAIL = 200  # characters: a reply may be an error page of any length


class Rule(StrEnum):
    """Why a reply, or a part of it, was not used; the names are those of the quarantine."""

    HTTP_ERROR = "http_error"
    UNKNOWN_KIND = "unknown_kind"
    BAD_ID = "bad_id"
    EMPTY_BODY = "empty_body"
    MALFORMED_JSON = "malformed_json"
    WRONG_TYPE = "wrong_type"
    MISSING_FIELD = "missing_field"
    UNKNOWN_VERTEX = "unknown_vertex"
    NOT_NEWER = "not_newer"  # observed at the same time as the reply before, or earlier
    BAD_GRAPH = "bad_graph"
    MISSING_SUBTASKS = "missing_subtasks"  # an aggregate over fewer of them than run
    VALUE_NAN = "value_nan"
    VALUE_NEGATIVE = "value_negative"
    VALUE_HUGE = "value_huge"


@dataclass(frozen=True, slots=True)
class Fault:
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
    """Return a text that can be logged: printable, and not longer than a line."""
    head = text[:_LONGEST_DETAIL]
    return "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in head)
