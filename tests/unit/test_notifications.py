"""Messages to a webhook on loopback: one for each fault and hour, its end once, and no harm from a bad webhook."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from webhook_server import WebhookServer, running_webhook

from include.notifications.notice import Notice, read_notices
from include.notifications.send_notices import MOST_MESSAGES, DeliveryReport, send_due
from include.notifications.sent_notices import FOLDER, SentNotices
from include.notifications.webhook import Webhook, WebhookError
from include.orchestration.webhook_connection import form_url

NOW_S = 1_795_000_000.0
HOUR_S, MINUTE_S = 3600.0, 60.0
PAGE = "https://airflow.example/tidewise"
OLD = Notice("plan_old", "prod", "", "the as-of of the newest plan was 3.0 h ago", "does tidewise_hour run?")
REFUSED = Notice("steps_refused", "prod/a b", "", "9 decisions were refused", "tidewise why prod/a b")


@pytest.fixture
def server() -> Iterator[WebhookServer]:
    with running_webhook() as running:
        yield running


class World:
    """One lake and one webhook."""

    def __init__(self, lake: Path, server: WebhookServer) -> None:
        self.lake, self.server = str(lake), server

    def send(self, active: list[Notice], after_s: float = 0.0, *, is_complete: bool = True) -> DeliveryReport:
        webhook = Webhook(f"{self.server.url}/services/T0/B0/secret", within_s=0.5)
        # Whoever sends next is another process: nothing is remembered but what the lake holds.
        return send_due([*active], SentNotices(self.lake), webhook, PAGE, NOW_S + after_s, is_complete=is_complete)


@pytest.fixture
def world(tmp_path: Path, server: WebhookServer) -> World:
    return World(tmp_path, server)


def test_the_first_line_says_where_what_and_what_to_do_and_the_second_is_the_link(world: World) -> None:
    world.send([OLD, REFUSED])
    assert world.server.texts == [
        f"prod: plan old: {OLD.detail} → {OLD.remedy}\n{PAGE}/",
        f"prod/a b: steps refused: {REFUSED.detail} → {REFUSED.remedy}\n{PAGE}/job?name=prod%2Fa%20b",
    ]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("prod/<!channel> R&D", "prod/&lt;!channel&gt; R&amp;D"),
        ("prod/<https://evil.example|Tidewise>", "prod/&lt;https://evil.example|Tidewise&gt;"),
        ("prod/@all", "prod/@\N{WORD JOINER}all"),
        ("prod/[Tidewise](https://evil.example)", "prod/[Tidewise]\N{WORD JOINER}(https://evil.example)"),
        ("prod/a\N{RIGHT-TO-LEFT OVERRIDE}b\nc", "prod/a b c"),
    ],
)
@pytest.mark.covers("harm name-as-markup")
def test_a_name_is_no_markup_of_the_receiver(world: World, name: str, expected: str) -> None:
    world.send([Notice("plan_old", name, name, f"{name}: old", f"see {name}")])
    world.send([], HOUR_S)
    began, ended = (text.partition("\n")[0] for text in world.server.texts)
    assert began == f"{expected}: plan old: {expected}: old → see {expected}"
    assert f"{expected}, {expected}: over after" in ended


@pytest.mark.covers("harm name-as-markup")
def test_names_of_kilobytes_are_cut(world: World) -> None:
    name = f"prod/{'x' * 10_000}"
    world.send([Notice("plan_old", name, name, name, name)])
    assert len(world.server.texts[0].partition("\n")[0]) < 1000


def test_a_fault_is_sent_once_an_hour_and_its_end_once(world: World) -> None:
    for minute in range(0, 125, 10):
        world.send([OLD], minute * MINUTE_S)
    assert len(world.server.texts) == 3  # at 0, 60 and 120 minutes
    for minute in (130, 140, 200, 260):
        world.send([], minute * MINUTE_S)
    assert world.server.texts[3:] == [f"prod: over after 2.2 h: plan old; nothing to do\n{PAGE}/"]
    assert SentNotices(world.lake).read() == {}


def test_a_fault_that_comes_and_goes_sends_two_messages_an_hour(world: World) -> None:
    for minute in range(0, 60, 10):
        world.send([OLD] if minute % 20 == 0 else [], minute * MINUTE_S)
    assert [text.partition(":")[2].split()[0] for text in world.server.texts] == ["plan", "over"]
    world.send([OLD], HOUR_S)
    assert len(world.server.texts) == 3


def test_who_names_one_fault_ends_no_other(world: World) -> None:
    world.send([OLD])
    world.send([REFUSED], is_complete=False)
    assert len(world.server.texts) == 2
    assert set(SentNotices(world.lake).read()) == {OLD.key, REFUSED.key}


@pytest.mark.parametrize("status", [302, 404, 500])
def test_a_message_that_was_not_taken_is_sent_at_the_next_occasion(world: World, status: int) -> None:
    world.server.status = status
    assert "secret" not in world.send([OLD]).problem
    assert str(status) in world.send([OLD], 1.0).problem
    assert set(world.server.paths) == {"/services/T0/B0/secret"}  # a redirect is not followed
    world.server.status = 200
    assert world.send([OLD], 2.0) == DeliveryReport(1, 0)
    assert len(world.server.texts) == 1


def test_a_webhook_that_replies_byte_by_byte_costs_its_limit_and_no_more(world: World) -> None:
    world.server.is_slow = True
    began_s = time.monotonic()
    report = world.send([OLD, REFUSED])
    assert "within 0.5 s" in report.problem
    assert time.monotonic() - began_s < 5  # the second message was not tried


def test_nobody_there(tmp_path: Path) -> None:
    with pytest.raises(WebhookError) as reported:
        Webhook("http://127.0.0.1:1/secret").send("x")
    assert "secret" not in str(reported.value)
    with pytest.raises(WebhookError):
        Webhook("no address").send("x")
    assert "secret" not in repr(Webhook("http://host/secret"))


def test_a_flood_is_one_message_that_names_the_number(world: World) -> None:
    many = [Notice("foreign_change", f"prod/job-{index}", "", "changed", "tidewise release") for index in range(200)]
    assert world.send(many) == DeliveryReport(MOST_MESSAGES + 1, 0)
    assert world.server.texts[-1].startswith(f"all clusters: and {200 - MOST_MESSAGES} more faults")
    assert world.send(many, MINUTE_S) == DeliveryReport(0, 0)


def test_what_nobody_can_read_was_not_sent(world: World, tmp_path: Path) -> None:
    (tmp_path / FOLDER).mkdir()
    (tmp_path / FOLDER / "broken.json").write_text("{")
    (tmp_path / FOLDER / "list.json").write_text("[]")
    assert world.send([OLD]) == DeliveryReport(1, 0)


def test_faults_of_one_scope_are_one_notice_and_what_is_well_is_none() -> None:
    def fact(scope: str, detail: str, *, needs_person: bool = True) -> dict[str, object]:
        named = {"name": "waits_for_person", "scope": scope, "detail": detail, "remedy": "r", "subject": ""}
        return named | {"needs_person": needs_person}

    health = [fact("c/a", "one"), fact("c/a", "two"), fact("c/b", "three"), fact("c/c", "four", needs_person=False)]
    assert [(one.scope, one.detail) for one in read_notices(health)] == [("c/a", "one; two"), ("c/b", "three")]


@pytest.mark.parametrize(
    ("given", "url"),
    [
        ({"host": "https://hooks.example/services", "password": "T/B/x"}, "https://hooks.example/services/T/B/x"),
        ({"host": "hooks.example", "schema": "https"}, "https://hooks.example"),
        ({"host": "127.0.0.1", "port": 8099, "schema": "hook", "conn_type": "http"}, "http://127.0.0.1:8099/hook"),
        ({"host": "hooks.example", "password": "x"}, "https://hooks.example/x"),
        ({"host": "  "}, None),
    ],
)
def test_the_address_of_a_connection(given: dict[str, object], url: str | None) -> None:
    usual = {"host": None, "port": None, "schema": None, "password": None, "conn_type": "generic"}
    assert form_url(SimpleNamespace(**usual | given)) == url  # type: ignore[arg-type]
