"""What was sent, below the lake: whoever sends next, on whatever machine, sends nothing twice within an hour."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

from include.control.small_objects import ObjectFolder, object_name

FOLDER = "_notifications"


@dataclass(frozen=True, slots=True)
class SentNotice:
    """A fault of which a message was sent.

    Attributes:
        key: of the notice; ``fault``, ``scope`` and ``subject`` are its parts.
        since_s: when the fault was first sent, epoch seconds.
        sent_s: when it was sent last.
        ended_s: when its end was sent; None: it has not ended.
    """

    key: str
    fault: str
    scope: str
    subject: str
    since_s: float
    sent_s: float
    ended_s: float | None = None


class SentNotices:
    """The messages that were sent for one lake; every method raises ``StoreUnreadableError``."""

    def __init__(self, lake: str) -> None:
        self._folder = ObjectFolder(lake.rstrip("/"), FOLDER)

    def read(self) -> dict[str, SentNotice]:
        """Return key -> what was sent; an object that is none counts as not sent."""
        read = map(_decode, self._folder.read_all().values())
        return {one.key: one for one in read if one is not None}

    def write(self, sent: SentNotice) -> None:
        """Remember a message."""
        self._folder.write(object_name(sent.key), json.dumps(asdict(sent)).encode())

    def delete(self, key: str) -> None:
        """Forget a fault."""
        self._folder.delete(object_name(key))


def _decode(content: bytes) -> SentNotice | None:
    try:
        sent = SentNotice(**json.loads(content))
    except (ValueError, TypeError, RecursionError):
        return None
    times = (sent.since_s, sent.sent_s, sent.ended_s if sent.ended_s is not None else 0.0)
    texts = (sent.key, sent.fault, sent.scope, sent.subject)
    usable = all(isinstance(one, int | float) for one in times) and all(isinstance(one, str) for one in texts)
    return sent if usable else None
