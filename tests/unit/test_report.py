"""The saved page: complete, in one file, without scripts or network, the same for the same tables."""

from __future__ import annotations

import html
import re
import xml.etree.ElementTree as ET
from datetime import timedelta
from pathlib import Path

import pytest
from saved_page import AS_OF, CURVE, HOUR, refused_row, save, step_row, write_jobs

from include.lake_table import LakeTable
from include.tables import BACKTESTS, CONTROL_LOG, JOB_DAYS, PLANS, STEP_RESULTS
from page import saving
from page.curves import Curve
from page.rendering import anchor_of, show_number, show_signed


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    write_jobs(tmp_path, [step_row("checkout"), refused_row("idle", reason="nothing was learnt")])
    return tmp_path


def words(page: str) -> str:
    inline = re.sub(r"</?(?:a|b|bdi|code|span)\b[^>]*>", "", page)
    return html.unescape(" ".join(re.sub(r"<[^>]*>", " ", inline).split()))


def test_the_page_has_an_index_and_a_part_for_each_job(lake: Path) -> None:
    page = save(lake)
    for name in ("live/checkout", "live/idle"):
        assert f'<main class="part" id="{anchor_of(name)}">' in page
        assert f'href="#{anchor_of(name)}"' in page
    assert "load rises &amp; enrich &lt;b&gt; needs 9" in page
    text = words(page)
    for part in ("6 → 9", "70k/s, 81.3k/s", "99k/s 93k/s to 104k/s", "nothing was learnt", "2 of 2 jobs"):
        assert part in text
    assert "11.8 of 24 slot-hours more (+50%) than with what runs now, until Sat 00:00Z" in text


def test_the_page_needs_no_network_and_its_drawings_are_valid_xml(lake: Path) -> None:
    page = save(lake)
    assert re.findall(r'(?:src|href)="(?!#)([^"]+)"', page) == []
    assert re.search(r"<script|<form|\sstyle=|\son\w+=", page) is None
    drawings = re.findall(r"<svg.*?</svg>", page, re.DOTALL)
    assert len(drawings) == 2 * 6  # of each job four charts, a curve, and the plan beside the slots
    for drawing in drawings:
        ET.fromstring(drawing)


def test_every_link_of_the_page_leads_somewhere(lake: Path) -> None:
    page = save(lake)
    targets = set(re.findall(r'\sid="([^"]+)"', page))
    assert set(re.findall(r'href="#([^"]+)"', page)) <= targets
    assert len(re.findall(r'\sid="', page)) == len(targets)


def test_the_same_tables_give_the_same_bytes(lake: Path) -> None:
    assert save(lake) == save(lake)


def test_money_stands_where_somebody_has_said_the_price(lake: Path) -> None:
    assert "price_per_slot_hour in the settings" in words(save(lake))
    priced = save(lake, advise={"price_per_slot_hour": 0.2, "currency": "EUR"})
    assert "(+50%) than with what runs now, 2.37 EUR, until" in words(priced)


def test_limits_that_were_set_are_under_no_word_of_defaults(lake: Path) -> None:
    text = words(save(lake, limits={"cooldown_s": 1234}))
    assert "cooldown_s 1234.0 limits" in text
    assert "these are the defaults" not in text


def test_a_step_below_the_90_percent_load_says_why(lake: Path) -> None:
    late = step_row("tight", expected_capacity_per_s=80_000.0, expected_late_minutes=24.0, day_late_minutes=30.0)
    LakeTable(str(lake), PLANS).append(
        [late, step_row("clipped", expected_capacity_per_s=70e3, reason="clipped to the maximum")]
    )
    text = words(save(lake))
    # 3.95 h of one slot of 64, at a late minute for one minute of all slots
    assert re.search(
        r"Below the 90% load: 80k/s against 81.3k/s, on purpose: one slot more for these 4.0 h costs as much", text
    )
    assert "Below the 90% load: 70k/s against 81.3k/s, because no more is allowed or would help." in text
    assert "24.0" in text
    assert "30 late minutes" in text
    stays = step_row(
        "stays", status="hold", expected_capacity_per_s=70e3, expected_late_minutes=40.0, slots=6, parallelism_to={}
    )
    LakeTable(str(lake), PLANS).append([stays])
    assert "What runs sustains 70k/s, and the 90% load is 81.3k/s, 40 late minutes expected." in words(save(lake))


def test_what_was_promised_stands_beside_what_came_and_nothing_is_a_day_of_25_minutes(lake: Path) -> None:
    day = {"cluster": "live", "job": "checkout", "until": AS_OF, "date": AS_OF.date(), "measured_s": 1500.0}
    day |= {"slot_hours": 2.5, "late_known_s": 1500.0, "late_minutes": 2.0, "rescales": 1, "restarts": 0}
    LakeTable(str(lake), JOB_DAYS).append([day | {"steps_due": 2, "steps_as_planned": 1}])
    begin = AS_OF - HOUR
    step = {"cluster": "live", "job": "checkout", "step_id": "s", "origin": "plan", "apply_at": begin}
    step |= {"effective_at": begin, "ended_at": AS_OF, "status": "confirmed", "outcome": "confirmed", "slots_from": 6}
    step |= {
        "slots_to": 9,
        "slots_ran": 8.5,
        "load_q90_per_s": 81_300.0,
        "load_max_per_s": 79e3,
        "late_minutes_promised": 2.1,
    }
    step |= {"late_minutes": 2.5, "recovery_s": 241.0, "took_s": 130.0, "date": begin.date()}
    LakeTable(str(lake), STEP_RESULTS).append([step])
    text = words(save(lake))
    assert "Measured for 25 min of the last dates: 2.5 slot-hours, 2.0 minutes late, 1 rescale, 0 restarts." in text
    assert "1 of 2 steps of plans that were due went out as planned. Less than a day: no figures per day." in text
    assert "9, 8.5 81.3k/s, 79k/s 2.1, 2.5 4 min, 2 min" in text


def test_other_policies_stand_beside_the_one_in_use(lake: Path) -> None:
    row = {"as_of": AS_OF, "cluster": "live", "job": "checkout", "days": 7.0, "slot_hours": 812.0, "date": AS_OF.date()}
    row |= {"rescales_per_day": 4.25, "late_minutes_per_day": 1.5, "cost": 1.0, "cost_vs_clairvoyant": 1.3}
    failed = dict.fromkeys(("cost", "cost_vs_clairvoyant", "slot_hours"))
    LakeTable(str(lake), BACKTESTS).append(
        [
            row | {"policy": "ds2", "in_use": True, "recommended": False},
            row | {"policy": "planner", "cost_vs_clairvoyant": 1.03, "recommended": True, "in_use": False},
            row | failed | {"policy": "phoebe", "error": "KeyError('x')", "in_use": False, "recommended": False},
        ]
    )
    text = words(save(lake))
    assert re.search(r"planner cheapest 1.03 .*ds2 in use 1.30 .*phoebe failed: KeyError", text)


def test_decisions_that_are_made_again_and_again_are_one_line(lake: Path) -> None:
    row = {
        "cluster": "live",
        "job": "checkout",
        "lease_number": 1,
        "verb": "wait",
        "reason": "cooldown",
        "slots_from": 6,
    }
    rows = [
        row
        | {"entry": place, "at": AS_OF - timedelta(minutes=30 - 5 * place), "detail": f"{place}", "date": AS_OF.date()}
        for place in range(4)
    ]
    rows.append(rows[-1] | {"entry": 9, "verb": "refuse", "reason": "on_hold", "detail": "<script>", "at": AS_OF})
    LakeTable(str(lake), CONTROL_LOG).append(rows)
    page = save(lake)
    assert "<script" not in page
    assert "18:00 refuse: on_hold <script>" in words(page)
    assert "17:30 to 17:45 wait: cooldown, 4 times 3" in words(page)


def test_a_job_that_cannot_be_drawn_does_not_keep_the_others_from_the_page(
    lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = saving.read_view

    def fails_for_one(reader: object, look: object, cluster: str, job: str, **rest: object) -> object:
        if job == "idle":
            raise OverflowError("a date of the year 99999")
        return read(reader, look, cluster, job, **rest)  # type: ignore[arg-type]

    monkeypatch.setattr(saving, "read_view", fails_for_one)
    page = save(lake)
    assert "Not drawn: OverflowError: a date of the year 99999" in page
    assert page.count("<figure") == 5


def test_advice_and_page_lead_to_each_other(lake: Path) -> None:
    assert 'href="advice.html"' not in save(lake)
    (lake / "advice.html").write_text("<title>advice</title>")
    assert 'href="advice.html"' in save(lake)


def test_an_empty_lake_has_a_page(tmp_path: Path) -> None:
    text = words(save(tmp_path))
    assert "0 of 0 jobs" in text
    assert "Nothing was measured in this time" in text


def test_a_curve_is_cut_where_nothing_was_learnt() -> None:
    curve = Curve("map", list(range(1, 129)), [float(p) for p in range(1, 129)], [1.0] * 128, [2, 10], [2.0, 10.0])
    assert curve.last == 16
    assert CURVE.draw().count("h0.1") == 2


def test_numbers_have_signs_and_dashes() -> None:
    assert (show_number(None), show_number(-1234.5, 1), show_signed(0.04), show_signed(2.0)) == (
        "–",
        "−1,234.5",
        "0",
        "+2.0",
    )
