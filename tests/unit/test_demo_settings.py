"""The settings of `make demo`."""

from __future__ import annotations

import tomllib

from include.settings.loading import check_settings
from lab.commands.demo import CLUSTER, write_settings


def test_each_slot_is_paid_though_the_cluster_has_a_single_taskmanager(tmp_path):
    write_settings(tmp_path, "http://127.0.0.1:8081", 8, "auto")
    settings = check_settings(tomllib.loads((tmp_path / "tidewise.toml").read_text()))
    assert settings.cluster(CLUSTER).taskmanager_slots == 1
    assert settings.cluster(CLUSTER).slots_max == 8
