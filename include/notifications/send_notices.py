"""Send what is due, and remember what was taken; what was not is tried again at the next occasion."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from include.notifications.due_notices import choose_due, mark_sent
from include.notifications.notice import Notice, format_end, format_notice, format_rest
from include.notifications.sent_notices import SentNotices
from include.notifications.webhook import Webhook, WebhookError

MOST_MESSAGES = 20
"""So many faults have a message of their own at a time; one more names the number of the others."""


@dataclass(frozen=True, slots=True)
class DeliveryReport:
    """What became of it.

    Attributes:
        begun, ended: messages that were taken, of faults and of their ends.
        problem: why the others were not sent; empty when all were.
    """

    begun: int
    ended: int
    problem: str = ""


def send_due(
    active: Iterable[Notice],
    store: SentNotices,
    webhook: Webhook,
    page_url: str,
    now_s: float,
    *,
    is_complete: bool = True,
) -> DeliveryReport:
    """Send the messages that are due, with a link to the page; ``is_complete``: a fault that is not active has ended.

    Raises:
        StoreUnreadableError: nobody knows what was sent; nothing is sent any more.
    """
    sent = store.read()
    due = choose_due(active, sent, now_s)
    begun = ended = 0
    try:
        for one in due.begun[:MOST_MESSAGES]:
            webhook.send(format_notice(one, page_url))
            store.write(mark_sent(one, sent.get(one.key), now_s))
            begun += 1
        rest = due.begun[MOST_MESSAGES:]
        if rest:
            webhook.send(format_rest(rest, page_url))
            for one in rest:
                store.write(mark_sent(one, sent.get(one.key), now_s))
            begun += 1
        for over in due.ended if is_complete else ():
            if ended < MOST_MESSAGES:
                webhook.send(format_end(over.fault, over.scope, over.subject, now_s - over.since_s, page_url))
                ended += 1
            store.write(replace(over, ended_s=now_s))
    except WebhookError as error:
        return DeliveryReport(begun, ended, str(error))
    for key in due.forgotten if is_complete else ():
        store.delete(key)
    return DeliveryReport(begun, ended)
