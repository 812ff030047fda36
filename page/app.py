"""The application: routes that look, and, where visitors are known by name, routes that act."""

from __future__ import annotations

import asyncio
import importlib.resources
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any

from deltalake.exceptions import DeltaError
from fastapi import Depends, FastAPI, HTTPException, Request
from fastapi.responses import HTMLResponse, PlainTextResponse, Response
from starlette.exceptions import HTTPException as StarletteHTTPException

from fleet.health import Fault
from fleet.metrics import format_metrics
from include.control.small_objects import StoreUnreadableError
from include.settings import SettingsError, settings_file
from page.acting import add_acts
from page.fleet_view import Query, form_view
from page.further_pages import add_pages
from page.job_view import HOURS, read_view
from page.moments import read_moment
from page.rendering import render
from page.source import FleetSource
from page.turns import RETRY_AFTER_S, BusyError, take_turn
from page.visitors import Access, Visitor, form_token

STATIC = {"page.css": "text/css", "page.js": "text/javascript", "icon.svg": "image/svg+xml"}
OLD_S = 2 * 86_400.0
DONE = {
    "hold": "It is on hold. Nothing is sent before somebody releases it, or it ends.",
    "release": "Released. The controller goes on at its next tick.",
    "approve": "Approved. The controller sends it at its next tick, if it still wants it.",
    "deny": "Denied. It is not sent.",
    "pin": "Pinned. The controller brings the job there after its cooldown, and plans are not followed until then.",
    "unpin": "The pin is off. The controller follows plans again.",
    "lift": "Lifted. It may be tried again.",
    "undo": "Ordered. The controller takes it back at its next tick; then the job is on hold for two hours.",
}


def build_app(source: FleetSource, access: Access) -> FastAPI:
    """Return the application. Every route depends on ``access``."""
    app = FastAPI(
        title="Tidewise",
        dependencies=[Depends(access.admit)],
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        redirect_slashes=False,
    )

    turns = asyncio.Semaphore(1)

    async def secure(request: Request, call_next: Callable[[Request], Awaitable[Response]]) -> Response:
        try:
            async with take_turn(turns):  # which ends before the body is sent: a slow reader takes none
                response = await call_next(request)
        except BusyError:
            text = f"many ask for the page now: try again in {RETRY_AFTER_S} s\n"
            response = PlainTextResponse(text, 503, {"Retry-After": str(RETRY_AFTER_S)})
        for name, value in _headers(access).items():
            response.headers.setdefault(name, value)
        return response

    app.middleware("http")(secure)

    def show_fleet(request: Request, visitor: Visitor = Depends(access.admit)) -> HTMLResponse:
        query = read_query(request)
        look = source.read(read_moment(query.at, source.clock()))
        newest_s = look.facts.newest_s if not query.at else None
        is_old = newest_s is not None and look.facts.at_s - newest_s > OLD_S
        return _page(
            "fleet.html.j2",
            visitor,
            access=access,
            now_s=look.facts.at_s,
            look=look,
            view=form_view(look, query),
            query=query,
            data_end_s=newest_s if is_old else None,
            has_advice=source.has_advice(),
        )

    def show_job(request: Request, visitor: Visitor = Depends(access.admit)) -> HTMLResponse:
        return page_of_job(request, visitor)

    def page_of_job(request: Request, visitor: Visitor, problem: str = "", status: int = 200) -> HTMLResponse:
        asked = request.query_params
        name, at, why = asked.get("name", ""), asked.get("at", ""), asked.get("why", "")
        hours = next((one for one in HOURS if str(one) == asked.get("hours")), None)
        cluster, _, job = name.partition("/")
        now_s = source.clock()
        moment = read_moment(at, now_s)
        with source.reading() as reader:
            look = source.read(moment)
            why_at = read_moment(why, look.facts.at_s)
            view = read_view(
                *(reader, look, cluster, job),
                hours=hours,
                why_at=datetime.fromtimestamp(why_at, UTC) if why_at is not None else None,
            )
        if view is None:
            lost = [fact.detail for fact in look.facts.health if fact.name == Fault.TABLE_LOST]
            raise HTTPException(404, "; ".join([f"nothing is known of a job {name!r}: capitals count", *lost]))
        return _page(
            "job.html.j2",
            visitor,
            access=access,
            status=status,
            now_s=look.facts.at_s,
            view=view,
            origin=look.origin,
            name=name,
            hours=view.hours,
            choices=HOURS,
            at=at,
            why=why,
            done=DONE.get(asked.get("done", ""), ""),
            problem=problem,
            has_advice=source.has_advice(),
            token=form_token(access.secret, visitor.login, now_s) if access.secret else "",
        )

    def show_metrics() -> PlainTextResponse:
        text = format_metrics(source.read().facts)
        return PlainTextResponse(text, media_type="text/plain; version=0.0.4")

    def serve_static(name: str) -> Response:
        if name not in STATIC:
            raise HTTPException(404, "there is no such file")
        content = importlib.resources.files("page").joinpath("static", name).read_bytes()
        return Response(content, media_type=STATIC[name], headers={"Cache-Control": "max-age=3600"})

    app.get("/", response_class=HTMLResponse)(show_fleet)
    app.get("/job", response_class=HTMLResponse)(show_job)
    add_pages(app, source, access, partial(_page, access=access))
    app.get("/metrics")(show_metrics)
    app.get("/static/{name}")(serve_static)
    if access.secret:
        add_acts(app, source, access, page_of_job)
    _add_errors(app, access)
    return app


def read_query(request: Request) -> Query:
    """Return what the address of the fleet's page asks for; what cannot be read is as if it were not there."""
    asked = request.query_params
    page = asked.get("page", "")
    texts = {name: asked.get(name, "")[:200] for name in ("q", "cluster", "mode", "show", "sort", "at")}
    return Query(**texts, page=int(page) if page.isdigit() and len(page) < 6 else 1)


def _page(template: str, visitor: Visitor, *, access: Access, status: int = 200, **content: Any) -> HTMLResponse:
    text = render(template, visitor=visitor, home=access.home, acts=bool(access.secret), **content)
    return HTMLResponse(text, status)


def _headers(access: Access) -> dict[str, str]:
    policy = (
        "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; form-action 'self'; "
        f"base-uri 'none'; frame-ancestors {access.ancestors}"
    )
    return {
        "Content-Security-Policy": policy,
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "same-origin",
        "Cross-Origin-Resource-Policy": "same-origin",
    }


def _list_remedies(error: Exception, reported: str) -> list[str]:
    """Return what a person does about settings or a lake that cannot be used."""
    if isinstance(error, SettingsError):
        return [
            f"Correct {settings_file()}, or the variable that is named: the page reads them anew at the next request.",
            "Until then a controller with these settings sends nothing; requests in flight are followed.",
            "tidewise doctor checks all of them.",
        ]
    lost = (
        ["Put the table back: tidewise restore, or run its stages again (docs/runbook.md)."]
        if " is lost" in reported
        else []
    )
    return [*lost, "tidewise doctor checks the lake, its store and its rights.", "Jobs go on as they run."]


def _add_errors(app: FastAPI, access: Access) -> None:
    def page(
        status: int, text: str, headers: Mapping[str, str] | None = None, remedies: Sequence[str] = ()
    ) -> HTMLResponse:
        reply = _page(
            "error.html.j2",
            Visitor(),
            access=access,
            status=status,
            text=text,
            code=status,
            now_s=None,
            remedies=remedies,
        )
        reply.headers.update(headers or {})
        return reply

    async def refuse(request: Request, error: Exception) -> HTMLResponse:  # noqa: ARG001
        status = error.status_code if isinstance(error, StarletteHTTPException) else 500
        return page(status, str(getattr(error, "detail", "")), getattr(error, "headers", None))

    async def fail(request: Request, error: Exception) -> HTMLResponse:  # noqa: ARG001
        reported = str(error).partition("\n")[0] or type(error).__name__
        what = "the settings cannot be used" if isinstance(error, SettingsError) else "the lake cannot be read"
        return page(503, f"{what}: {reported}", remedies=_list_remedies(error, reported))

    app.add_exception_handler(StarletteHTTPException, refuse)
    for kind in (SettingsError, StoreUnreadableError, DeltaError, OSError):
        app.add_exception_handler(kind, fail)
