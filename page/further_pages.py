"""Routes beside the fleet and its jobs: what came of Tidewise, data and models, advice."""

from __future__ import annotations

from collections.abc import Callable

from fastapi import Depends, FastAPI, HTTPException, Request
from fastapi.responses import HTMLResponse

from page.advice import advice_policy, link_to_fleet
from page.data_view import read_data
from page.moments import read_moment
from page.source import FleetSource
from page.visitors import Access, Visitor


def add_pages(app: FastAPI, source: FleetSource, access: Access, show: Callable[..., HTMLResponse]) -> None:
    """Add the routes. ``show`` returns a page from its template, the visitor and its content."""

    def now_of(request: Request) -> float:
        clock_s = source.clock()
        at_s = read_moment(request.query_params.get("at", ""), clock_s)
        return clock_s if at_s is None else at_s

    def show_results(request: Request, visitor: Visitor = Depends(access.admit)) -> HTMLResponse:
        at = request.query_params.get("at", "")
        now_s, month = now_of(request), request.query_params.get("month", "")
        results = source.read_results(now_s, month)
        return show(
            "results.html.j2", visitor, now_s=now_s, results=results, has_advice=source.has_advice(), month=month, at=at
        )

    def show_data(request: Request, visitor: Visitor = Depends(access.admit)) -> HTMLResponse:
        now_s = now_of(request)
        with source.reading() as reader:
            data = read_data(reader, now_s)
        return show("data.html.j2", visitor, now_s=now_s, data=data, has_advice=source.has_advice())

    def show_advice() -> HTMLResponse:
        text = source.read_advice()
        if text is None:
            raise HTTPException(404, "no advice was made: tidewise advise writes it")
        return HTMLResponse(link_to_fleet(text), headers={"Content-Security-Policy": advice_policy(text)})

    app.get("/results", response_class=HTMLResponse)(show_results)
    app.get("/data", response_class=HTMLResponse)(show_data)
    app.get("/advice", response_class=HTMLResponse)(show_advice)
