"""Which messages are due: a fault at most once an hour, its end once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from include.notifications.notice import Notice
from include.notifications.sent_notices import SentNotice
from include.utc import HOUR_S


@dataclass(frozen=True, slots=True)
class DueNotices:
    """What is to be done.

    Attributes:
        begun: faults to send.
        ended: faults whose end is to be sent.
        forgotten: keys of faults that ended over an hour ago.
    """

    begun: tuple[Notice, ...]
    ended: tuple[SentNotice, ...]
    forgotten: tuple[str, ...]


def choose_due(active: Iterable[Notice], sent: Mapping[str, SentNotice], now_s: float) -> DueNotices:
    """Return what is due.

    A fault that comes back within an hour of its message is not sent again, and neither is its next end: one that
    comes and goes sends two messages an hour.
    """
    notices = {one.key: one for one in active}
    begun = [one for key, one in notices.items() if key not in sent or now_s - sent[key].sent_s >= HOUR_S]
    over = [one for key, one in sent.items() if key not in notices]
    return DueNotices(
        begun=tuple(begun),
        ended=tuple(one for one in over if one.ended_s is None),
        forgotten=tuple(one.key for one in over if one.ended_s is not None and now_s - one.sent_s >= HOUR_S),
    )


def mark_sent(notice: Notice, known: SentNotice | None, now_s: float) -> SentNotice:
    """Return what is remembered of a fault that was sent now."""
    since_s = known.since_s if known is not None and known.ended_s is None else now_s
    return SentNotice(notice.key, notice.fault, notice.scope, notice.subject, since_s, now_s)
