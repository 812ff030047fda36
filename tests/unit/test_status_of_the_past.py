"""`tidewise status --at`: what is only known of now is not told of then."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli.status import describe_fleet
from controller.leases.lease import Lease
from fleet.fleet_reader import FleetReader
from fleet.health import Fault
from include.settings import check_settings
from page.fleet_view import form_cards

NOW_S = 1_795_000_000.0


@pytest.mark.parametrize(
    ("ago_s", "shown"), [(0.0, "controller 0 s ago"), (86_400.0, "controller not known of this time")]
)
def test_a_lease_that_was_renewed_later_tells_nothing_of_then(tmp_path: Path, ago_s: float, shown: str) -> None:
    lake = str(tmp_path)
    assert Lease(lake, "live", "one", lambda: NOW_S).take()
    settings = check_settings({"paths": {"lake": lake, "raw": lake}, "clusters": {"live": {}}})
    facts = FleetReader(settings, {}).read(NOW_S - ago_s)
    (line,) = [line for line in describe_fleet(facts) if line.startswith("  live: 0 jobs")]
    assert shown in line
    told = [one.detail for one in facts.health if one.name == Fault.CONTROLLER_LATE]
    assert told == ([] if ago_s else ["one ticked 0 s ago"])
    (card,) = [one for one in form_cards(facts) if one.name == "controller"]
    assert [line.detail for line in card.lines] == told
