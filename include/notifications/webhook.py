"""A webhook that takes ``{"text": ...}``, as those of Slack, Mattermost, Rocket.Chat and Google Chat."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from urllib3 import PoolManager
from urllib3.exceptions import HTTPError

from include.flink.deadline import CURRENT_CALL, POOLS, Call, DeadlineExceededError

WITHIN_S = 10.0
_CONNECT_S = 5.0


class WebhookError(Exception):
    """A message was not taken; the text names the host alone, since the path of such an address is a secret."""


@dataclass(frozen=True, slots=True)
class Webhook:
    """Where messages go.

    Attributes:
        url: of the webhook; its path is a secret.
        headers: sent besides the content type.
        within_s: limit for the whole of one message.
    """

    url: str = field(repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    within_s: float = WITHIN_S

    def send(self, text: str) -> None:
        """Send a message, once.

        Raises:
            WebhookError: it was not taken in time.
        """
        pools = PoolManager(num_pools=1, retries=False)
        pools.pool_classes_by_scheme = POOLS
        token = CURRENT_CALL.set(Call(self.within_s))
        try:
            reply = pools.request(
                "POST",
                self.url,
                body=json.dumps({"text": text}).encode(),
                headers={"Content-Type": "application/json", **self.headers},
                timeout=min(_CONNECT_S, self.within_s),
                redirect=False,
                preload_content=False,  # its status says it all
            )
            status = int(reply.status)
            reply.close()
        except DeadlineExceededError:
            raise WebhookError(f"{self._host}: no whole reply within {self.within_s:g} s") from None
        except (HTTPError, OSError, ValueError) as error:
            raise WebhookError(f"{self._host}: {type(error).__name__}") from None
        finally:
            CURRENT_CALL.reset(token)
            pools.clear()
        if not 200 <= status < 300:
            raise WebhookError(f"{self._host}: replied {status}")

    @property
    def _host(self) -> str:
        try:
            return f"the webhook on {urlsplit(self.url).hostname or '?'}"
        except ValueError:
            return "the webhook"
