"""Whose leases are read: of clusters, and of nothing else that lies beside them."""

from __future__ import annotations

import json
from pathlib import Path

from fleet.leases import LeaseFact, read_leases
from include.control.controlled_lake import LEASES_FOLDER


def test_a_witness_of_the_log_is_no_cluster(tmp_path: Path) -> None:
    folder = tmp_path / LEASES_FOLDER
    (folder / "cluster=live").mkdir(parents=True)
    (folder / "cluster=live" / "000000000001.json").write_text(json.dumps({"owner": "here", "until_s": 1180.0}))
    (folder / "log-live.json").write_text("{}")
    assert read_leases(str(tmp_path)) == {"live": LeaseFact("here", 1000.0)}
