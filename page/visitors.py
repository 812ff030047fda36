"""Who looks at the page, what they may do, and the token that their forms carry."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from fastapi import HTTPException, Request

TOKEN_HOURS = 12
COOKIE = "tidewise"


@dataclass(frozen=True, slots=True)
class Visitor:
    """A person.

    Attributes:
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


def admit_with_token(token: str, login: str) -> Callable[..., Visitor]:
    """Return what admits whoever has opened the printed link: its token becomes a cookie of the browser.

    Acts are recorded under ``login``.
    """

    def admit(request: Request) -> Visitor:
        if is_same(request.query_params.get("token", ""), token):
            cookie = f"{COOKIE}={token}; Path=/; HttpOnly; SameSite=Lax"
            raise HTTPException(303, "the link is right", {"Location": "./", "Set-Cookie": cookie})
        if not is_same(request.cookies.get(COOKIE, ""), token):
            raise HTTPException(401, "open the link with the token, which the terminal shows that serves this page")
        return Visitor(login, may_hold=True, may_approve=True)

    return admit


def is_same(given: str, wanted: str) -> bool:
    """Whether two secrets are the same; how long it takes tells nothing of them."""
    return hmac.compare_digest(given.encode(), wanted.encode())


def form_token(secret: str, login: str, now_s: float) -> str:
    """Return what a form of a person has to carry; it counts for at least :data:`TOKEN_HOURS` hours."""
    return _sign(secret, login, int(now_s // (3600 * TOKEN_HOURS)))


def is_form_token(secret: str, login: str, now_s: float, given: str) -> bool:
    """Whether a form carries the token of this person."""
    period = int(now_s // (3600 * TOKEN_HOURS))
    wanted = [_sign(secret, login, one) for one in (period, period - 1)]
    return bool(secret) and any(is_same(given, one) for one in wanted)


def _sign(secret: str, login: str, period: int) -> str:
    return hmac.new(secret.encode(), f"tidewise page\0{login}\0{period}".encode(), hashlib.sha256).hexdigest()
