"""tidewise lift: a job whose steps went wrong may be tried again, by the controller's log and by no clock."""

from __future__ import annotations

import time
from dataclasses import replace

from control_entries import NOW_S, TWO, entry_for, plain_case

from cli import lift
from controller.limits.limits_of_job import open_limits
from controller.log.delta_log import DeltaControlLog, open_control_log
from include.control.holds import HoldStore
from include.settings import SETTINGS_FILE_VARIABLE, load_settings
from models.control.bad_steps import name_suspension
from models.control.state import JobHistory


class Lease:
    first_number = number = 1

    def check(self) -> None:
        pass


def test_a_suspension_is_shown_lifted_and_read_by_the_controller(tmp_path, monkeypatch, capsys) -> None:
    path, lake = tmp_path / "settings.toml", str(tmp_path / "lake")
    path.write_text(f'[paths]\nlake = "{lake}"\n[clusters.live]\nrest_url = "http://j:8081"\n[limits]\nmode = "auto"\n')
    monkeypatch.setenv(SETTINGS_FILE_VARIABLE, str(path))
    monkeypatch.setattr(time, "time", lambda: NOW_S + 60)
    history = JobHistory(job_id="j", known_requested=TWO, bad_steps_s=(NOW_S - 3, NOW_S - 2, NOW_S - 1.5))
    entry = entry_for(replace(plain_case(), history=history), job="live/orders")
    DeltaControlLog(open_control_log(lake), "live", Lease(), lambda: NOW_S).append(replace(entry, history=history))

    def limits():
        return open_limits(load_settings(), lambda: NOW_S + 60).read_limits("live", "orders", {})

    assert lift.main(["--list"]) == 0
    assert (
        "live/orders: every step, until a person lifts it: 3 steps rolled back or failed within a day"
        in capsys.readouterr().out
    )
    assert name_suspension(history, limits())
    assert lift.main(["live/Orders"]) == 2
    assert lift.main(["live/orders", "--by", "ada"]) == 0
    assert not name_suspension(history, limits())
    assert lift.main(["live/orders"]) == 2  # nothing is left to lift
    assert HoldStore(lake).read(NOW_S) == []
    assert name_suspension(replace(history, bad_steps_s=(*history.bad_steps_s, NOW_S, NOW_S, NOW_S)), limits())
