"""The page within Airflow: no route without a log-in and a right, for all routes that there are."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from airflow_page import airflow_app, forget_app, log_in, page_plugin
from controlled_cluster import ControlledCluster, controlled_cluster
from fastapi.testclient import TestClient

from include.control.holds import HoldStore
from page import PREFIX

pytestmark = pytest.mark.airflow
READS = {("GET", path) for path in ("/", "/job", "/results", "/data", "/advice", "/metrics", "/static/{name}")}
ACTS = {("POST", f"/{act}") for act in ("hold", "release", "undo", "answer", "pin", "unpin", "lift")}
NAME = "live/orders"


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ControlledCluster]:
    """A job that a plan has rescaled, in mode approve, and a step of it that waits for a yes."""
    with controlled_cluster(tmp_path, monkeypatch, mode="auto") as world:
        assert world.want(4) == "rescale plan"
        assert world.want(4) == "confirm runs_as_requested"
        (world.root / "out" / "advice.html").write_text("<title>orders</title>")
        forget_app()
        yield world


def routes() -> set[tuple[str, str]]:
    """Return method and path of every route of the page's application."""
    app = page_plugin()["app"].__globals__["_app"]()
    return {(method, route.path) for route in app.routes for method in route.methods - {"HEAD"}}


def visit(name: str) -> TestClient:
    """Return a client with the cookie of a log-in."""
    client = TestClient(airflow_app(), raise_server_exceptions=False, follow_redirects=False)
    if name:
        client.cookies.set("_token", log_in(client, name))
    return client


def ask(client: TestClient, method: str, path: str, **form: str) -> Any:
    address = f"{PREFIX}{path.replace('{name}', 'page.css')}?name={NAME}"
    return client.request(method, address, **({"data": form} if method == "POST" else {}))


def token_of(page: str) -> str:
    return next(iter(re.findall(r'name="token" value="(\w+)"', page)), "")


def test_there_are_no_routes_but_these(world) -> None:
    assert routes() == READS | ACTS


@pytest.mark.parametrize(("name", "expected"), [("", 401), ("nora", 403)])
def test_without_a_log_in_or_a_right_no_route_answers(world, name: str, expected: int) -> None:
    client = visit(name)
    for method, path in sorted(routes()):
        reply = ask(client, method, path, answer="yes", step="step-4", token="x")
        assert reply.status_code == expected, (method, path)
        assert "orders" not in reply.text
    assert HoldStore(str(world.root / "lake")).read(0.0) == []


def test_a_token_that_nobody_has_signed_is_no_log_in(world) -> None:
    client = visit("")
    client.cookies.set("_token", log_in(client, "olga")[:-2] + "xx")
    assert {ask(client, *one).status_code for one in routes()} == {403}


def test_a_viewer_looks_and_does_nothing(world) -> None:
    client, admin = visit("vera"), visit("olga")
    pages = {path: ask(client, method, path) for method, path in READS}
    assert {reply.status_code for reply in pages.values()} == {200}
    assert '<form method="post"' not in pages["/job"].text
    assert "Your rights let you look" in pages["/job"].text
    stolen = token_of(ask(admin, "GET", "/job").text)
    assert stolen
    for method, path in sorted(ACTS):
        assert ask(client, method, path, token=stolen, step="step-4", answer="yes").status_code == 403
    assert HoldStore(str(world.root / "lake")).read(0.0) == []


def test_an_operator_acts_with_the_token_of_a_form_alone(world) -> None:
    client = visit("olga")
    token = token_of(ask(client, "GET", "/job").text)
    assert ask(client, "POST", "/hold", hours="2").status_code == 403
    assert ask(client, "POST", "/hold", hours="2", token="0" * 64).status_code == 403
    foreign = client.post(f"{PREFIX}/hold?name={NAME}", data={"token": token}, headers={"Sec-Fetch-Site": "cross-site"})
    assert foreign.status_code == 403
    assert HoldStore(str(world.root / "lake")).read(0.0) == []
    assert ask(client, "POST", "/hold", hours="2", reason="bad deploy", token=token).status_code == 303
    (held,) = HoldStore(str(world.root / "lake")).read(0.0)
    assert (held.scope, held.by, held.reason) == (NAME, "olga", "bad deploy")


def test_the_settings_roles_count_besides(world) -> None:
    file = world.root / "settings.toml"
    file.write_text(f'{file.read_text()}[roles]\nhold = ["ada"]\n')
    client = visit("olga")
    reply = ask(client, "POST", "/hold", token=token_of(ask(client, "GET", "/job").text))
    assert reply.status_code == 403
    assert "olga may not: roles.hold names ada" in reply.text
    assert HoldStore(str(world.root / "lake")).read(0.0) == []


def test_airflow_shows_the_page_in_its_navigation() -> None:
    from airflow.plugins_manager import _get_ui_plugins

    views = [one for one in _get_ui_plugins()[0] if one["name"] == "Tidewise"]
    assert [(one["href"], one["destination"]) for one in views] == [(f"{PREFIX}/", "nav")]
