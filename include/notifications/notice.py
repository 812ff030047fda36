"""What a person reads of a fault: one line that says where, what and what to do, and a link."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from html import escape
from typing import Any
from urllib.parse import quote

from include.short_names import clean_name, shorten_name, shorten_text
from include.utc import HOUR_S

EVERYWHERE = "all"
_LONGEST, _LONGEST_NAME = 400, 120
_MARKUP = re.compile(r"@(?=\w)|\](?=\()")  # a mention, and a link of Markdown


@dataclass(frozen=True, slots=True)
class Notice:
    """A fault that needs a person.

    Attributes:
        fault: snake_case, of :class:`fleet.health.Fault`.
        scope: ``all``, a cluster, or ``cluster/job``.
        subject: what of the scope it is about, such as a task; empty where the scope says it.
        detail: one sentence, which names the subject.
        remedy: what to do.
    """

    fault: str
    scope: str
    subject: str
    detail: str
    remedy: str

    @property
    def key(self) -> str:
        """What makes it the same fault as an hour ago."""
        return f"{self.fault} {self.scope} {self.subject}".strip()


def read_notices(health: Iterable[Mapping[str, Any]]) -> list[Notice]:
    """Return what needs a person, one notice for each fault of a scope, from the JSON of ``tidewise status``.

    Raises:
        KeyError, TypeError: it is not that JSON.
    """
    result: dict[str, Notice] = {}
    for one in health:
        if not one["needs_person"]:
            continue
        notice = Notice(one["name"], one["scope"], one.get("subject", ""), one["detail"], one["remedy"])
        known = result.get(notice.key)
        result[notice.key] = notice if known is None else replace(known, detail=_join(known.detail, notice.detail))
    return list(result.values())


def format_notice(notice: Notice, page_url: str) -> str:
    """Return the message: its first line says where, what and what to do; the second is the link, if there is one.

    >>> print(format_notice(Notice("plan_old", "prod", "", "the plan is 3 h old", "does tidewise_hour run?"), ""))
    prod: plan old: the plan is 3 h old → does tidewise_hour run?
    """
    first = f"{_place(notice.scope)}: {_words(notice.fault)}: {_cut(notice.detail)} → {_cut(notice.remedy)}"
    return _with_link(first, notice.scope, page_url)


def format_end(fault: str, scope: str, subject: str, lasted_s: float, page_url: str) -> str:
    """Return the message that a fault is over.

    >>> print(format_end("plan_old", "prod", "", 5400.0, "https://host/tidewise"))
    prod: over after 1.5 h: plan old; nothing to do
    https://host/tidewise/
    """
    lasted = f"{lasted_s / HOUR_S:.1f} h" if lasted_s >= HOUR_S else f"{lasted_s / 60:.0f} min"
    return _with_link(f"{_place(scope, subject)}: over after {lasted}: {_words(fault)}; nothing to do", scope, page_url)


def format_rest(notices: Iterable[Notice], page_url: str) -> str:
    """Return one message for many faults: how many of which kind."""
    counts: dict[str, int] = {}
    for one in notices:
        counts[one.fault] = counts.get(one.fault, 0) + 1
    listed = ", ".join(f"{count} of {_words(fault)}" for fault, count in sorted(counts.items()))
    return _with_link(f"all clusters: and {sum(counts.values())} more faults: {listed} → tidewise status", "", page_url)


def escape_markup(text: str) -> str:
    """Return a text that receivers show as it is: no link, and nobody who is called, is made by a job's name.

    Slack and Google Chat want three letters escaped; a word joiner within keeps Mattermost and Rocket.Chat from more.

    >>> escape_markup("<!here> R&D")
    '&lt;!here&gt; R&amp;D'
    """
    return _MARKUP.sub("\\g<0>\N{WORD JOINER}", escape(text, quote=False))


def _place(scope: str, subject: str = "") -> str:
    where = "all clusters" if scope == EVERYWHERE else shorten_name(scope, _LONGEST_NAME)
    return f"{where}, {shorten_name(subject, _LONGEST_NAME)}" if subject else where


def _words(fault: str) -> str:
    return fault.replace("_", " ")


def _with_link(first: str, scope: str, page_url: str) -> str:
    first = escape_markup(clean_name(first))
    if not page_url:
        return first
    page = page_url.rstrip("/")
    return f"{first}\n{page}/job?name={quote(scope, safe='')}" if "/" in scope else f"{first}\n{page}/"


def _join(known: str, more: str) -> str:
    return known if more in known else f"{known}; {more}"


def _cut(text: str) -> str:
    return shorten_text(text, _LONGEST)
