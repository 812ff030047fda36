"""Whether the controllers of some clusters tick in time, as seen from outside of their processes."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence

from deltalake.exceptions import DeltaError

from fleet.fleet_reader import FleetReader
from fleet.health import Fault
from include.settings import Settings


def watch_ticks(settings: Settings, clusters: Sequence[str], now_s: float, variables: Mapping[str, str]) -> int:
    """Print when each cluster's controller ticked last; returns 1 where one is late or that cannot be known."""
    try:
        facts = FleetReader(settings, variables).read(now_s)
    except (DeltaError, OSError) as error:
        print(f"controller: a table cannot be read, so nothing is known: {error}", file=sys.stderr)
        return 1
    ticks = {one.scope: one for one in facts.health if one.name == Fault.CONTROLLER_LATE}
    for name in clusters:
        one = ticks.get(name)
        detail = "no controller has ever worked on it" if one is None else one.detail
        remedy = "" if one is None or not one.needs_person else f"; {one.remedy}"
        print(f"controller: cluster {name}: {detail}{remedy}")
    return int(any(name not in ticks or ticks[name].needs_person for name in clusters))
