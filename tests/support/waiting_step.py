"""A step that waits for a person, as a controller records it."""

from __future__ import annotations

from control_entries import entry_for, plain_case

from controller.leases.lease import Lease
from controller.log.control_log import Provenance
from controller.log.delta_log import DeltaControlLog, open_control_log
from models.control.state import Mode


def write_waiting(lake: str, at_s: float, cluster: str = "Prod", job: str = "orders", step_id: str = "step-1") -> None:
    """Write what the controller records when a step waits for a yes."""
    lease = Lease(lake, cluster, f"test at {at_s}", lambda: at_s)
    assert lease.take()
    log = DeltaControlLog(open_control_log(lake), cluster, lease, lambda: at_s)
    named = Provenance({"a": "Source: orders", "b": "enrich"})
    case = plain_case(now_s=at_s, step_id=step_id, mode=Mode.APPROVE)
    log.append(entry_for(case, f"{cluster}/{job}", provenance=named))
    lease.release()
