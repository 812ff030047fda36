"""The page on a lake that the controller itself has written: what it shows, and what its forms do."""

from __future__ import annotations

import html
import json
import re
import time
from collections.abc import Iterator
from dataclasses import asdict
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import yaml
from controlled_cluster import ControlledCluster, controlled_cluster
from fastapi.testclient import TestClient
from strange_names import STRANGE_NAMES

from benchmarks.pipeline.made_fleet import CLUSTER, VERTEX, Size, hour_before, job_name, write_fleet
from controller.limits.limits_of_job import open_limits
from fleet import recent_tables
from fleet.bands import Band
from fleet.frontier import FILE, FrontierPoint, PolicyCurve
from fleet.loads import COARSE_S, LoadFact, coarsen_windows, load_of
from include.control.lifted_blocks import LiftedBlockStore
from include.control.pins import PersonalPin, PinStore
from include.flink.endpoints import requirements_body
from include.kubernetes.overrides import form_patch
from include.lake_table import LakeTable
from include.settings import load_settings
from include.tables import CONTROL_LOG
from include.utc import DAY_S
from models.control.limits import Limits
from page.app import build_app
from page.charts import Chart, Line
from page.environment import open_source
from page.visitors import (
    COOKIE,
    TOKEN_HOURS,
    Access,
    Visitor,
    admit_everyone,
    admit_with_token,
    form_token,
    is_form_token,
)

JOB = "live/orders"
BEFORE = {"1" * 32: 1, "2" * 32: 2}


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ControlledCluster]:
    """A job that was rescaled by a plan and runs as requested."""
    with controlled_cluster(tmp_path, monkeypatch) as world:
        assert world.want(4) == "rescale plan"
        assert world.want(4) == "confirm runs_as_requested"
        yield world


def visit(**rights: bool) -> TestClient:
    """Return a client of ada's, or, without rights, of the page alone."""
    access = Access(lambda: Visitor("ada", **rights), "a secret") if rights else Access(admit_everyone)
    return TestClient(
        build_app(open_source({}, time.time), access), raise_server_exceptions=False, follow_redirects=False
    )


def read_limits(world: ControlledCluster) -> Limits:
    """Return the limits of the job as the controller reads them anew."""
    settings = load_settings()
    return open_limits(settings, time.time, load_settings).read_limits("live", "orders", {"enrich": "2" * 32})


def show(client: TestClient, address: str) -> str:
    """Return the text of a page, without its tags."""
    reply = client.get(address)
    assert reply.status_code == 200, reply.text
    inline = re.sub(r"</?(?:a|b|bdi|code|span)\b[^>]*>", "", reply.text)
    return html.unescape(" ".join(re.sub(r"<[^>]*>", " ", inline).split()))


def post(client: TestClient, path: str, name: str = JOB, **form: str) -> Any:
    token = re.findall(r'name="token" value="(\w+)"', client.get(f"/job?name={name}").text)
    return client.post(f"/{path}?name={name}", data={"token": token[0] if token else "", **form})


def test_the_fleet_says_what_runs_and_what_needs_a_person(world) -> None:
    text = show(visit(), "/")
    assert re.search(r"\d things need you", text)
    assert "live: the as-of of the newest plan: there is none" in text
    assert "1 of 1 job" in text
    assert "orders live" in text
    assert "2 → 4 slots: load rises" in text


def test_a_job_says_why_it_was_rescaled(world) -> None:
    text = show(visit(), f"/job?name={JOB}&why={time.strftime('%H:%M', time.gmtime())}")
    assert "rescale by plan, 2 -> 4 slots (Source: orders 1->4, enrich 2->4)" in text
    assert "Flink: accepted" in text
    assert "ran as requested after" in text
    assert "None within two weeks" not in text


def test_the_page_alone_has_no_route_that_acts(world) -> None:
    client = visit()
    assert {
        client.post(f"/{path}?name={JOB}").status_code
        for path in ("hold", "release", "undo", "answer", "pin", "unpin", "lift")
    } <= {
        404,
        405,
    }
    page = client.get(f"/job?name={JOB}")
    assert 'method="post"' not in page.text
    assert "script-src 'self'" in page.headers["content-security-policy"]
    assert "frame-ancestors 'none'" in page.headers["content-security-policy"]
    assert not re.search(r"<script(?! src=)|<style|\sstyle=|\son\w+=", page.text)


def test_hold_and_release_are_logged_with_the_login(world) -> None:
    client = visit(may_hold=True)
    assert post(client, "hold", hours="2", reason="bad deploy").headers["location"] == f"job?name={JOB}&done=hold"
    assert world.want(6) == "refuse on_hold"
    text = show(client, f"/job?name={JOB}")
    assert "is held by ada until" in text
    assert "hold by ada" in text
    assert post(client, "release").status_code == 303
    assert world.want(6) == "wait cooldown"
    assert "release by ada" in show(client, f"/job?name={JOB}")


def test_undo_goes_back_by_the_controller_and_only_for_what_was_shown(world) -> None:
    client = visit(may_approve=True)
    assert post(client, "undo", step="another").status_code == 409
    assert world.want(None, evaluates=False) != "roll_back undo"
    assert "Back to Source: orders 4->1, enrich 4->2" in show(client, f"/job?name={JOB}")
    assert post(client, "undo", step="step-4", reason="late").status_code == 303
    assert world.want(None, evaluates=False) == "roll_back undo"
    assert world.job.requested == BEFORE
    assert post(client, "undo", step="step-4").status_code == 409


def test_a_pin_is_carried_out_and_taken_off(world) -> None:
    client = visit(may_approve=True)
    assert post(client, "pin", parallelism="3", hours="1", reason="release day").status_code == 303
    text = show(client, f"/job?name={JOB}")
    assert "pinned to 3 by ada until" in text
    assert re.search(r"pin by ada .* all operators at 3; release day", text)
    (world.root / "settings.toml").write_text((world.root / "settings.toml").read_text().replace("3600", "0"))
    assert world.want(6, evaluates=False) in {"wait settings_changed", "rescale pin"}
    assert read_limits(world).pin_all == 3
    assert post(client, "unpin").status_code == 303
    assert read_limits(world).pin_all is None
    assert "unpin by ada" in show(client, f"/job?name={JOB}")
    assert "no person has pinned live/orders" in post(client, "unpin").text


@pytest.mark.parametrize(("given", "answer"), [("0", "allow 1 to 64"), ("65", "allow 1 to 64"), ("x", "such as 4")])
def test_a_pin_outside_of_the_limits_is_refused(world, given: str, answer: str) -> None:
    reply = post(visit(may_approve=True), "pin", parallelism=given)
    assert reply.status_code == 409
    assert answer in html.unescape(reply.text)
    assert read_limits(world).pin_all is None


def test_a_pin_of_the_settings_goes_before(world) -> None:
    file = world.root / "settings.toml"
    file.write_text(file.read_text() + '[limits.jobs."live/orders"]\npin = 2\n')
    assert "is in the settings, and goes before" in html.unescape(
        post(visit(may_approve=True), "pin", parallelism="3").text
    )
    PinStore(str(world.root / "lake")).write(PersonalPin("live", "orders", 3))
    assert read_limits(world).pin_all == 2


def test_a_pin_that_cannot_be_read_holds_everything(world) -> None:
    (world.root / "lake" / "_control" / "pins").mkdir(parents=True)
    (world.root / "lake" / "_control" / "pins" / "x.json").write_text('{"cluster": "live"}')
    limits = read_limits(world)
    assert limits.is_held
    assert "no pin that could be read" in limits.hold_reason
    assert "no pin that could be read" in show(visit(), "/")


def test_what_is_blocked_is_lifted_as_it_was_shown(world) -> None:
    log = LakeTable(str(world.root / "lake"), CONTROL_LOG)
    columns = [name for name in CONTROL_LOG.columns if name != "history"]
    last = max(log.read([*columns, "history"], date.min, date.max).to_pylist(), key=lambda row: row["entry"])
    history = json.loads(last["history"])
    history["blocked"] = [
        {"parallelism": {"2" * 32: 9}, "until_s": "Infinity", "block_id": "b1", "because": "it fails at that"}
    ]
    log.append(
        [
            last
            | {
                "entry": last["entry"] + 1,
                "at": datetime.now(UTC),
                "history": json.dumps(history, separators=(",", ":")),
            }
        ]
    )
    client = visit(may_hold=True)
    assert "enrich 9 is not tried again: it fails at that" in show(client, f"/job?name={JOB}")
    assert post(client, "lift", blocks="another").status_code == 409
    assert post(client, "lift", blocks="b1", reason="fixed").status_code == 303
    text = show(client, f"/job?name={JOB}")
    assert "is not tried again" not in text
    assert "enrich 9 may be tried again: it fails at that; fixed" in text
    assert [one.block_id for one in LiftedBlockStore(str(world.root / "lake")).read()] == ["b1"]


def test_what_came_of_it_data_and_advice_have_pages(world) -> None:
    client = visit()
    assert "Where Tidewise advises against itself" in show(client, "/results")
    assert "01 Jan 2026 to 31 Jan 2026" in show(client, "/results?month=2026-01")
    assert "Newest ingestion of each cluster" in show(client, "/data")
    assert client.get("/advice").status_code == 404
    (world.root / "out" / "advice.html").write_text("<style>p { color: red; }</style><p>saved")
    advice = client.get("/advice")
    assert "sha256-" in advice.headers["content-security-policy"]
    assert "script" not in advice.headers["content-security-policy"]
    assert 'href="advice"' in client.get("/").text


@pytest.mark.parametrize("hours", ["-1", "soon", "nan", "1e9"])
def test_a_hold_of_no_time_is_refused(world, hours: str) -> None:
    reply = post(visit(may_hold=True), "hold", hours=hours)
    assert (reply.status_code, "Nothing was done" in reply.text) == (409, True)
    assert world.want(6) == "wait cooldown"


@pytest.mark.parametrize("path", ["pin", "unpin", "undo"])
@pytest.mark.covers("harm hold-and-rescale")
def test_who_may_hold_may_not_rescale(world, path: str) -> None:
    client = visit(may_hold=True)
    assert post(client, path, parallelism="3", step="step-4").status_code == 403
    page = client.get(f"/job?name={JOB}").text
    assert 'action="hold?' in page
    assert f'action="{path}?' not in page
    assert read_limits(world).pin_all is None


def test_who_may_hold_may_not_answer(tmp_path, monkeypatch) -> None:
    with controlled_cluster(tmp_path, monkeypatch, mode="approve") as world:
        assert world.want(4, "a backlog of 543 s") == "wait needs_approval"
        assert "a backlog of 543 s; it waits for a person's yes" in show(visit(), f"/job?name={JOB}")
        assert post(visit(may_hold=True), "answer", step="step-4", answer="yes").status_code == 403
        client = visit(may_approve=True)
        assert post(client, "answer", step="step-9", answer="yes").status_code == 409
        assert post(client, "answer", step="step-4", answer="perhaps").status_code == 409
        assert world.want(4) == "wait needs_approval"
        assert post(client, "answer", step="step-4", answer="yes").status_code == 303
        assert world.want(4) == "rescale plan"
        assert "approve by ada" in show(client, f"/job?name={JOB}")


def test_a_no_is_a_no(tmp_path, monkeypatch) -> None:
    with controlled_cluster(tmp_path, monkeypatch, mode="approve") as world:
        assert world.want(4) == "wait needs_approval"
        assert post(visit(may_approve=True), "answer", step="step-4", answer="no").status_code == 303
        assert world.want(4) == "refuse denied"


def test_a_wrong_question_has_an_answer(world) -> None:
    client = visit()
    assert client.get("/job?name=live/order").status_code == 404
    assert client.get("/?at=soon").status_code == 422
    assert client.get("/static/../app.py").status_code == 404
    assert client.get("/static/app.py").status_code == 404
    assert "No job matches" in client.get("/?q=nothing&page=99").text
    assert client.get("/?page=x&sort=x&show=x&mode=x").status_code == 200


def test_what_cannot_be_read_is_said(world) -> None:
    client = visit()
    (world.root / "settings.toml").write_text("[limits]\nmode = 3\n")
    reply = client.get("/")
    assert reply.status_code == 503
    assert "limits.mode" in reply.text


def test_tokens_are_of_one_person_and_end() -> None:
    token = form_token("secret", "ada", 0.0)
    assert is_form_token("secret", "ada", 3600.0 * TOKEN_HOURS, token)
    assert not is_form_token("secret", "bob", 0.0, token)
    assert not is_form_token("another", "ada", 0.0, token)
    assert not is_form_token("secret", "ada", 3600.0 * TOKEN_HOURS * 2, token)
    assert not is_form_token("", "ada", 0.0, form_token("", "ada", 0.0))


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fleet of seventy jobs, the last of which is late."""
    lake = tmp_path_factory.mktemp("fleet")
    write_fleet(str(lake), Size(70, 3, 2, 500, 1), hour_before(time.time()))
    return lake


@pytest.fixture
def many(fleet: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TestClient:
    file = tmp_path / "settings.toml"
    file.write_text(f'[paths]\nlake = "{fleet}"\nraw = "{fleet}"\nout = "{tmp_path}"\n')
    monkeypatch.setenv("TIDEWISE_SETTINGS", str(file))
    return visit()


def names(client: TestClient, address: str) -> list[str]:
    return re.findall(r'<tr>\s*<th scope="row" class="name"><a href="job\?name=([^"&]*)', client.get(address).text)


def test_a_late_job_is_first_and_the_others_by_late_minutes(many) -> None:
    first, second, *others = names(many, "/")
    assert (first, second) == (f"{CLUSTER}/job-0069", f"{CLUSTER}/job-0016")
    assert len(others) == 48
    assert len(names(many, "/?page=2")) == 20
    text = show(many, "/")
    assert "late 15 min" in text
    assert "70 of 70 jobs, page 1 of 2" in text


def test_jobs_are_searched_filtered_and_sorted_by_the_address(many) -> None:
    assert names(many, "/?q=JOB-003&sort=name") == [f"{CLUSTER}/{job_name(place)}" for place in range(30, 40)]
    assert names(many, "/?q=fleet+0012") == [f"{CLUSTER}/job-0012"]
    assert names(many, "/?mode=auto") == []
    assert names(many, "/?show=needs") == [f"{CLUSTER}/job-0069"]
    assert names(many, "/?show=held") == []
    loads = [float(one) for one in re.findall(r'load, expected"><span>([\d.]+)k/s', many.get("/?sort=load").text)]
    assert loads == sorted(loads, reverse=True)
    assert len(set(loads)) > 3


def test_a_jobs_page_has_load_forecasts_plan_and_slots(many) -> None:
    page = many.get(f"/job?name={CLUSTER}/job-0069").text
    assert page.count("<figure") == 4
    assert "nothing is known of this time" not in page
    for kind in ("area forecast", "area capacity", "line load", "line ran", "line planned", "line late"):
        assert f'class="{kind}"' in page, kind
    assert "15 min" in page
    assert "4,200,000 records wait" in page


def test_beside_a_step_are_its_neighbours_and_what_would_be_sent(many) -> None:
    page = many.get(f"/job?name={CLUSTER}/job-0069").text
    step = page.partition('id="planned"')[2].partition("</tr>")[2].partition("</tr>")[0]
    slots = int(re.search(r"8 → (\d+)</td>", step)[1])
    assert f"safer: {slots + 1} slots, 4.0 slot-hours more, no late minute expected" in step
    assert f"cheaper: {slots - 1} slots, 4.0 slot-hours fewer, 3 late minutes expected" in step
    assert re.search("<p>PUT /jobs/0{30}45/resource-requirements <button", step)
    copies = [html.unescape(one) for one in re.findall("<pre>(.*?)</pre>", step, re.DOTALL)]
    counts = [slots, slots + 1, slots - 1]
    assert [json.loads(one) for one in copies[::2]] == [requirements_body({VERTEX: count}) for count in counts]
    patches = [form_patch({}, {VERTEX: count}, "7", frozenset([VERTEX])) for count in counts]
    assert [yaml.safe_load(one)["spec"] for one in copies[1::2]] == [one["spec"] for one in patches]


def test_a_job_shows_what_its_goals_cost_once_advise_has_replayed_them(many, tmp_path) -> None:
    address = f"/job?name={CLUSTER}/job-0069"
    text = show(many, address)
    assert "Not known yet: tidewise advise replays its last days" in text
    goals = [
        FrontierPoint("cheap", 100.0, 9.0, 4.0),
        FrontierPoint("balanced", 104.0, 5.0, 4.0),
        FrontierPoint("on_time", 110.0, 2.0, 5.0),
    ]
    alone = [FrontierPoint("aims at 85% used", 120.0, 3.0, 6.0)]
    curves = [PolicyCurve("programme", "Tidewise", tuple(goals)), PolicyCurve("x", "alone", tuple(alone))]
    jobs = {f"{CLUSTER}/job-0069": [asdict(one) for one in curves]}
    (tmp_path / FILE).write_text(json.dumps({"as_of": "2026-11-20T20:00:00Z", "days": 7, "jobs": jobs}))
    page, text = many.get(address).text, show(many, address)
    assert [page.count(f'class="{kind}"') for kind in ("line c0", "dots c0", "line c1", "dots c1")] == [1, 1, 1, 1]
    assert "Its 7 days up to 2026-11-20T20:00:00Z, replayed by tidewise advise" in text
    assert "Tidewise: balanced in force 104.0 5.0 4.0" in text
    assert "alone: aims at 85% used 120.0 3.0 6.0" in text
    assert "Not known yet" in show(many, f"/job?name={CLUSTER}/job-0068")


def test_without_a_plan_a_chart_ends_now(world) -> None:
    page, now_s = visit().get(f"/job?name={JOB}&hours=6").text, time.time()
    charts = [json.loads(html.unescape(one)) for one in re.findall('data-chart="([^"]*)"', page)]
    assert len(charts) == 4
    assert all(abs(one["until"] - now_s) < 60 for one in charts)


def test_what_is_older_than_a_day_is_the_same_in_half_hours(fleet, monkeypatch) -> None:
    end, job = hour_before(time.time()), (CLUSTER, "job-0003")
    monkeypatch.setattr(recent_tables, "ANCHOR_H", 1)

    def read() -> tuple[list[LoadFact], list[Band]]:
        tables, since = recent_tables.RecentTables(str(fleet)), end - timedelta(hours=2)
        loads = tables.read_loads(*job, since, end)
        return loads, tables.read_bands(*job, since, end + timedelta(minutes=1), end + timedelta(hours=1))

    loads, bands = read()
    monkeypatch.setattr(recent_tables, "HOURS", -8)
    coarse, wide = read()
    assert (len(loads), len(coarse)) == (24, 4)
    for one in coarse:
        mine = [each for each in loads if one.at_s <= each.at_s < one.at_s + COARSE_S]
        assert len(mine) == 6
        assert one.load_per_s == pytest.approx(sum(each.load_per_s or 0.0 for each in mine) / 6)
        assert one.busy_share == max(each.busy_share or 0.0 for each in mine)
        assert (one.lag_s, one.slots, one.until_s) == (mine[0].lag_s, 8, one.at_s + COARSE_S)
    for band in wide:
        within = [each for each in bands if band.at_s <= each.at_s < band.at_s + COARSE_S]
        assert band.q90_per_s == pytest.approx(sum(each.q90_per_s for each in within) / len(within))
    assert len(wide) * 6 == len(bands)


def test_a_load_that_one_source_does_not_tell_is_in_no_half_hour() -> None:
    at = datetime(2026, 11, 20, 18, tzinfo=UTC)
    rows = [
        {"cluster": "c", "job": "j", "window_start": at + timedelta(minutes=5 * place), "load_sum": 10.0 * place}
        | {"load_count": count, "sources_sum": 2, "busy_max": 0.5, "pending_sum": None, "age_s_max": None}
        | {"window_s_max": 300, "parallelism_max": 4}
        for place, count in enumerate((2, 1, 2))
    ]
    facts = [load_of(row) for row in coarsen_windows(pa.Table.from_pylist(rows)).to_pylist()]
    assert [(one.load_per_s, one.pending_records, one.slots) for one in facts] == [(10.0, None, 4)]
    none = coarsen_windows(pa.Table.from_pylist([row | {"load_count": 0} for row in rows])).to_pylist()
    assert [load_of(row).load_per_s for row in none] == [None]


def test_metrics_are_those_of_the_command(many) -> None:
    assert 'tidewise_jobs{cluster="fleet",mode="dry-run"} 70.0' in many.get("/metrics").text


@pytest.mark.parametrize("name", STRANGE_NAMES[:6])
def test_names_that_are_markup_are_text(tmp_path, monkeypatch, name: str) -> None:
    with controlled_cluster(tmp_path, monkeypatch) as world:
        world.job.name = name
        world.want(4)
        client = visit(may_hold=True)
        links = re.findall(r'class="name"><a href="(job[^"]*)"', client.get("/").text)
        reply = client.get("/" + links[0].replace("&amp;", "&"))
        assert reply.status_code == 200
        assert "<script>" not in reply.text.replace('<script src="static/page.js" defer></script>', "")
        assert post(client, "hold", name=links[0].partition("name=")[2], hours="1").status_code == 303


def test_a_gap_is_no_line() -> None:
    chart = Chart("x", 0, 100, 50, lines=(Line("a", "load", [(0, 1.0), (10, None), (20, 2.0), (30, 2.0)]),))
    assert 'd="M0.0' in chart.draw()
    assert chart.draw().count("M") == 2
    assert Chart("x", 0, 1, 1, lines=(Line("a", "load", [(0, None)]),)).is_empty


@pytest.mark.parametrize("highest", [0.53, 0.0057, 5.5, 53.0])
def test_an_axis_has_rounded_numbers_a_unit_and_dates(highest: float) -> None:
    chart = Chart("age", 0, DAY_S, 50, lines=(Line("a", "load", [(0, highest)]),), unit=" s")
    for share in (0.5, 1.0):
        assert re.fullmatch(r"\d+(?:\.\d{1,4})? s", chart.label(share)), chart.label(share)
    assert chart.ticks() == ["01 Jan 00:00", "06:00", "12:00", "18:00", "02 Jan 00:00"]


def test_who_has_the_printed_token_may_act(world) -> None:
    app = build_app(open_source({}, time.time), Access(admit_with_token("a secret", "ada"), "a secret"))
    client = TestClient(app, follow_redirects=False)
    assert client.get("/").status_code == 401
    assert (
        client.post(f"/hold?name={JOB}", data={"token": form_token("a secret", "ada", time.time())}).status_code == 401
    )
    assert client.get("/?token=another").status_code == 401
    entered = client.get("/?token=a+secret".replace("+", "%20"))
    assert (entered.status_code, entered.headers["location"]) == (303, "./")
    client.cookies.set(COOKIE, "a secret")
    assert post(client, "hold", hours="1", reason="a look").status_code == 303
    assert "ada" in show(client, f"/job?name={JOB}")
