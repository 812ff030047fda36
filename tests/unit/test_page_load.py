"""What many requests, large forms and slow clients cost the process that the page shares with Airflow."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest
from controlled_cluster import ControlledCluster, controlled_cluster
from fastapi import FastAPI

from page import acting, turns
from page.app import build_app
from page.environment import open_source
from page.results_view import VIEWS
from page.source import LOOKS, PAST_FRESH_S, FleetSource
from page.visitors import Access, Visitor, form_token

JOB = "live/orders"
SECRET = "a secret"


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ControlledCluster]:
    with controlled_cluster(tmp_path, monkeypatch) as world:
        yield world


def build(source: FleetSource, **rights: bool) -> FastAPI:
    """Return an application that the page is a part of, as within Airflow."""
    app = FastAPI()
    app.get("/own")(lambda: "own")
    app.mount("/tidewise", build_app(source, Access(lambda: Visitor("ada", **rights), SECRET)))
    return app


def client_of(app: FastAPI) -> httpx.AsyncClient:
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://page")


@pytest.mark.covers("harm page-threads")
def test_beside_many_requests_own_routes_answer_and_who_gets_no_turn_is_refused(world, monkeypatch) -> None:
    monkeypatch.setattr(turns, "PATIENCE_S", 0.2)
    source = open_source({}, time.time)

    async def ask() -> None:
        async with client_of(build(source)) as client:
            with ExitStack() as held:
                held.enter_context(source.reading())  # the first request waits for it in its thread
                first = asyncio.create_task(client.get("/tidewise/"))
                await asyncio.sleep(0)
                others = [asyncio.create_task(client.get(f"/tidewise/?page={place}")) for place in range(60)]
                assert (await client.get("/own")).text == '"own"'
                refused = await asyncio.gather(*others)
                assert {one.status_code for one in refused} == {503}
                assert refused[0].headers["retry-after"] == "5"
                assert "default-src" in refused[0].headers["content-security-policy"]
                assert not first.done()
            assert (await first).status_code == 200
            assert (await client.get("/tidewise/")).status_code == 200

    asyncio.run(ask())


@pytest.mark.covers("harm page-threads")
def test_a_past_time_is_looked_at_once_until_somebody_acts(world) -> None:
    now_s = [time.time()]
    source = open_source({}, lambda: now_s[0])
    past_s = now_s[0] - 60
    first = source.read(past_s)
    assert source.read(past_s) is first
    assert source.read() is not first
    now_s[0] += PAST_FRESH_S - 1
    assert source.read(past_s) is first
    source.forget()
    second = source.read(past_s)
    assert second is not first
    now_s[0] += PAST_FRESH_S + 1
    third = source.read(past_s)
    assert third is not second
    for place in range(LOOKS):
        source.read(past_s - place - 1)
    assert source.read(past_s) is not third  # a crawler does not fill memory


def test_the_results_of_a_few_months_are_held_whatever_months_are_asked_for(world) -> None:
    source, now_s = open_source({}, time.time), time.time()
    first = source.read_results(now_s, "2026-01")
    assert source.read_results(now_s, "2026-01") is first
    for number in range(VIEWS):
        source.read_results(now_s, f"no month {number}")
    assert source.read_results(now_s, "2026-01") is not first


async def send_body(app: FastAPI, megabytes: int, **headers: str) -> tuple[int, int]:
    """Post a large form piece by piece; returns how many pieces were read, and the status."""
    read = 0

    async def pieces() -> AsyncIterator[bytes]:
        nonlocal read
        for _ in range(megabytes):
            read += 1
            yield b"a" * 2**20

    async with client_of(app) as client:
        reply = await client.post(f"/tidewise/hold?name={JOB}", content=pieces(), headers=headers)
    return read, reply.status_code


@pytest.mark.parametrize(
    ("rights", "headers", "expected"),
    [
        ({}, {}, (0, 403)),
        ({"may_approve": True}, {}, (0, 403)),
        ({"may_hold": True}, {"sec-fetch-site": "cross-site"}, (0, 403)),
        ({"may_hold": True}, {"content-length": str(400 * 2**20)}, (0, 413)),
        ({"may_hold": True}, {}, (1, 413)),
    ],
)
@pytest.mark.covers("harm page-body")
def test_of_a_body_no_more_is_read_than_a_form_has_and_nothing_of_who_may_not(world, rights, headers, expected) -> None:
    app = build(open_source({}, time.time), **rights)
    assert asyncio.run(send_body(app, 400, **headers)) == expected


@pytest.mark.covers("harm page-body")
def test_a_form_that_never_ends_keeps_no_turn(world, monkeypatch) -> None:
    monkeypatch.setattr(acting, "FORM_WITHIN_S", 0.1)
    app = build(open_source({}, time.time), may_hold=True)

    async def drip() -> AsyncIterator[bytes]:
        yield f"token={form_token(SECRET, 'ada', time.time())}&".encode()
        await asyncio.Event().wait()

    async def ask() -> None:
        async with client_of(app) as client:
            assert (await client.post(f"/tidewise/hold?name={JOB}", content=drip())).status_code == 408
            assert (await client.get("/tidewise/")).status_code == 200

    asyncio.run(ask())
