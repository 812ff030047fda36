"""Who looks at the page, what they may do, and the token that their forms carry."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

TOKEN_HOURS = 12


@dataclass(frozen=True, slots=True)
class Visitor:
    """A person.

    Attributes:
        login: their name; empty where nobody logs in.
        may_hold: whether they may hold, release and lift.
        may_approve: whether they may answer steps, pin and undo.
    """

    login: str = ""
    may_hold: bool = False
    may_approve: bool = False


@dataclass(frozen=True, slots=True)
class Access:
    """How visitors are known.

    Attributes:
        admit: dependency of every route; returns the :class:`Visitor`, or raises an HTTPException.
        secret: for the tokens of forms; empty: there are no forms, and no route takes one.
        ancestors: who may show the page in a frame, as the Content-Security-Policy names it.
        home: link to what is around the page; empty without it.
    """

    admit: Callable[..., Any]
    secret: str = ""
    ancestors: str = "'none'"
    home: str = ""


def admit_everyone() -> Visitor:
    """Admit whoever reaches the address, to look and no more."""
    return Visitor()


def form_token(secret: str, login: str, now_s: float) -> str:
    """Return what a form of a person has to carry; it counts for at least :data:`TOKEN_HOURS` hours."""
    return _sign(secret, login, int(now_s // (3600 * TOKEN_HOURS)))


def is_form_token(secret: str, login: str, now_s: float, given: str) -> bool:
    """Whether a form carries the token of this person."""
    period = int(now_s // (3600 * TOKEN_HOURS))
    wanted = [_sign(secret, login, one) for one in (period, period - 1)]
    return bool(secret) and any(hmac.compare_digest(one.encode(), given.encode()) for one in wanted)


def _sign(secret: str, login: str, period: int) -> str:
    return hmac.new(secret.encode(), f"tidewise page\0{login}\0{period}".encode(), hashlib.sha256).hexdigest()
