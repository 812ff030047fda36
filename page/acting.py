"""Routes that act: hold, release, pin, lift, answer and undo, each for a visitor who may, with a token in the form."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from urllib.parse import parse_qsl

from fastapi import Depends, FastAPI, HTTPException, Request
from fastapi.responses import RedirectResponse, Response

from fleet.acts.answers import NotWaitingError, find_waiting_step, give_answer
from fleet.acts.holds import NotControlledError, NotOnHoldError, record_hold, release_holds, write_hold
from fleet.acts.lifts import NothingBlockedError, lift_blocks
from fleet.acts.people import NotAllowedError, check_role
from fleet.acts.pins import NotPinnedError, pin_job, unpin_job
from fleet.acts.undo import HOURS, check_not_held, order_undo, read_undoable
from fleet.fleet_reader import FleetReader
from fleet.undoable import NothingToUndoError
from include.control.holds import Hold
from include.control.pins import PersonalPin
from include.settings.people import Act as RoleAct
from page.job_view import read_blocks, read_waiting
from page.rendering import job_link
from page.source import FleetSource, LakeSnapshot
from page.visitors import Access, Visitor, is_form_token

FORM_MAX_BYTES, FORM_WITHIN_S = 16_384, 5.0
REASON_MAX = 500
HOLD_HOURS_MAX = 24 * 365.0


class ConflictError(ValueError):
    """It was not done, and the page says why."""


NOT_DONE = (ConflictError, NotWaitingError, NotOnHoldError, NothingToUndoError, NotPinnedError, NothingBlockedError)
"""Nothing was done, and the message says why."""


@dataclass(frozen=True, slots=True)
class FormRequest:
    """What a form asks for."""

    cluster: str
    job: str
    by: str
    reason: str
    now_s: float
    form: Mapping[str, str]

    @property
    def scope(self) -> str:
        """``cluster/job``."""
        return f"{self.cluster}/{self.job}"


Doing = Callable[[FleetReader, LakeSnapshot, FormRequest], str]


def add_acts(app: FastAPI, source: FleetSource, access: Access, show_job: Callable[..., Response]) -> None:
    """Add the routes. ``show_job`` returns the page of a job with a problem on it."""

    def route(path: str, role: RoleAct, do: Doing) -> None:
        async def read_form(request: Request, visitor: Visitor = Depends(access.admit)) -> dict[str, str]:
            _check_right(request, visitor, role)  # before any of the body is read
            form = await _read_form(request)
            if not is_form_token(access.secret, visitor.login, source.clock(), form.get("token", "")):
                raise HTTPException(403, "the form is too old or came from elsewhere: load the page anew")
            return form

        def act(
            request: Request,
            visitor: Visitor = Depends(access.admit),
            form: dict[str, str] = Depends(read_form),
        ) -> Response:
            cluster, _, job = request.query_params.get("name", "").partition("/")
            reason = " ".join(form.get("reason", "").split())[:REASON_MAX]
            order = FormRequest(cluster, job, visitor.login, reason, source.clock(), form)
            try:
                with source.reading() as reader:
                    check_role(reader.settings.roles, role, visitor.login)
                    source.forget()
                    look = source.read()
                    if not any((one.cluster, one.job) == (cluster, job) for one in look.facts.jobs):
                        raise HTTPException(404, f"nothing is known of a job {order.scope!r}")
                    done = do(reader, look, order)
            except (*NOT_DONE, NotAllowedError) as error:
                status = 403 if isinstance(error, NotAllowedError) else 409
                return show_job(request, visitor, f"Nothing was done: {error}", status)
            except NotControlledError as error:
                return show_job(request, visitor, str(error), 202)
            finally:
                source.forget()
            return RedirectResponse(job_link(order.scope, done=done), 303)

        app.post(path)(act)

    route("/hold", "hold", put_on_hold)
    route("/release", "hold", release)
    route("/undo", "rescale", undo)
    route("/pin", "rescale", pin)
    route("/unpin", "rescale", unpin)
    route("/lift", "hold", lift)
    route("/answer", "approve", answer)


def put_on_hold(reader: FleetReader, look: LakeSnapshot, order: FormRequest) -> str:  # noqa: ARG001 - each act is called alike
    """Put the job on hold, for some hours or until it is released."""
    hours = read_hours(order.form.get("hours", ""))
    until_s = None if hours is None else order.now_s + 3600 * hours
    made = Hold(order.scope, order.reason, order.by, order.now_s, until_s)
    is_read = write_hold(reader.settings, made, order.now_s)
    record_hold(reader.settings, made)
    if not is_read:
        raise NotControlledError(
            "No controller has worked on this lake within an hour; the hold is written, and counts when one starts"
        )
    return "hold"


def release(reader: FleetReader, look: LakeSnapshot, order: FormRequest) -> str:
    """End the holds of the job itself, those after a foreign change as well."""
    holds, what = look.facts.holds, {"by": order.by, "reason": order.reason, "now_s": order.now_s}
    list(release_holds(reader.settings, holds, [order.scope], **what))  # type: ignore[arg-type]
    return "release"


def pin(reader: FleetReader, look: LakeSnapshot, order: FormRequest) -> str:  # noqa: ARG001
    """Pin all operators of the job to a parallelism, for some hours or until it is taken off."""
    hours = read_hours(order.form.get("hours", ""))
    until_s = None if hours is None else order.now_s + 3600 * hours
    count = order.form.get("parallelism", "").strip()
    if not (count.isascii() and count.isdigit() and len(count) < 6):
        raise ConflictError("expected a parallelism such as 4")
    made = PersonalPin(order.cluster, order.job, int(count), order.by, order.reason, order.now_s, until_s)
    if not pin_job(reader.settings, made, order.now_s):
        raise NotControlledError(
            "No controller has worked on this lake within an hour; the pin is written, and counts when one starts"
        )
    return "pin"


def unpin(reader: FleetReader, look: LakeSnapshot, order: FormRequest) -> str:  # noqa: ARG001
    """Take a person's pin off."""
    unpin_job(reader.settings, order.cluster, order.job, by=order.by, reason=order.reason, now_s=order.now_s)
    return "unpin"


def lift(reader: FleetReader, look: LakeSnapshot, order: FormRequest) -> str:
    """Let be tried again what the form showed; what was blocked since stays."""
    shown = set(order.form.get("blocks", "").split())
    blocks = [one for one in read_blocks(reader, look, order.cluster, order.job) if one.block_id in shown]
    lift_blocks(reader.settings, blocks, by=order.by, reason=order.reason, now_s=order.now_s)
    return "lift"


def answer(reader: FleetReader, look: LakeSnapshot, order: FormRequest) -> str:
    """Say yes or no to a step, for exactly the change that the form showed."""
    is_approved = {"yes": True, "no": False}.get(order.form.get("answer", ""))
    if is_approved is None:
        raise ConflictError("the form has neither yes nor no")
    waiting = read_waiting(reader, look, order.cluster, order.job)
    step = find_waiting_step(waiting, order.scope, order.form.get("step"))
    give_answer(reader.settings, step, is_approved=is_approved, by=order.by, reason=order.reason, now_s=order.now_s)
    return "approve" if is_approved else "deny"


def undo(reader: FleetReader, look: LakeSnapshot, order: FormRequest) -> str:
    """Order that the job's last rescale is taken back: the one that the form showed."""
    what = read_undoable(reader, order.cluster, order.job, order.now_s)
    check_not_held(look.facts.holds, order.cluster, order.job)
    if what.step_id != order.form.get("step"):
        raise ConflictError("another rescale was sent meanwhile; look at what would be taken back")
    until_s = order.now_s + 3600 * HOURS
    order_undo(reader.settings, what, by=order.by, reason=order.reason, now_s=order.now_s, until_s=until_s)
    return "undo"


def read_hours(text: str) -> float | None:
    """Return for how long to hold; None until it is released.

    Raises:
        ConflictError: it is no number of hours.
    """
    if not text.strip():
        return None
    try:
        hours = float(text)
    except ValueError:
        hours = 0.0
    if not 0 < hours <= HOLD_HOURS_MAX:
        raise ConflictError(f"expected a number of hours above 0 and at most {HOLD_HOURS_MAX:.0f}")
    return hours


def _check_right(request: Request, visitor: Visitor, role: RoleAct) -> None:
    """Refuse who may not, and what came from another site."""
    may = visitor.may_hold if role == "hold" else visitor.may_approve
    if not visitor.login or not may:
        raise HTTPException(403, "you may look, and not do this")
    if request.headers.get("sec-fetch-site", "same-origin") != "same-origin":
        raise HTTPException(403, "the form came from another site")


async def _read_form(request: Request) -> dict[str, str]:
    """Return the fields of a form, of which no more is read than a form has."""
    told, body = request.headers.get("content-length", ""), b""
    if told.isdigit() and int(told) > FORM_MAX_BYTES:
        raise HTTPException(413, "the form is too large")
    try:
        async with asyncio.timeout(FORM_WITHIN_S):
            async for part in request.stream():
                body += part
                if len(body) > FORM_MAX_BYTES:
                    raise HTTPException(413, "the form is too large")
    except TimeoutError:
        raise HTTPException(408, f"the form was not whole within {FORM_WITHIN_S:g} s") from None
    return dict(parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True))
