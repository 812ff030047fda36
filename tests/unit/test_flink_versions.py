"""What is known of Flink's versions: names of keys, why a cluster cannot rescale, and what the doctor says of it."""

import pytest

from cli.doctor.cluster_setup import check_keys, check_rescale_history
from include.flink.versions import (
    RESCALE_HISTORY_KEY,
    explain_no_requirements,
    find_unread_keys,
    name_key,
    read_version,
)
from lab.local_flink.configuration import rename_keys, write_configuration

ADAPTIVE = "jobmanager.adaptive-scheduler."
WAIT = f"{ADAPTIVE}submission.resource-wait-timeout"
COOLDOWN = f"{ADAPTIVE}executing.cooldown-after-rescaling"


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("2.1.3", (2, 1)),
        ("1.20-SNAPSHOT", (1, 20)),
        ("2.3.0.jar", (2, 3)),
        ("", None),
        ("<unknown>", None),
        (None, None),
    ],
)
def test_a_version_is_read_from_its_text(text, version):
    assert read_version(text) == version


@pytest.mark.parametrize(
    ("key", "version", "name"),
    [
        (WAIT, (2, 0), WAIT),
        (WAIT, (1, 18), f"{ADAPTIVE}resource-wait-timeout"),
        (COOLDOWN, (1, 20), f"{ADAPTIVE}scaling-interval.min"),
        (COOLDOWN, (1, 18), None),
        ("execution.checkpointing.dir", (1, 18), "state.checkpoints.dir"),
        ("execution.checkpointing.dir", (1, 20), "execution.checkpointing.dir"),
        (RESCALE_HISTORY_KEY, (2, 2), None),
        (RESCALE_HISTORY_KEY, (2, 3), RESCALE_HISTORY_KEY),
        ("rest.port", (1, 18), "rest.port"),
    ],
)
def test_a_key_has_the_name_of_its_version(key, version, name):
    assert name_key(key, version) == name


def test_a_configuration_is_written_as_its_version_reads_it(tmp_path):
    values = {WAIT: "2 min", COOLDOWN: "2 s", "rest.port": "1"}
    assert rename_keys(values, (2, 1)) == values
    write_configuration(tmp_path / "old", values, (1, 18))
    lines = (tmp_path / "old" / "flink-conf.yaml").read_text().splitlines()
    assert lines == [f"{ADAPTIVE}resource-wait-timeout: 2 min", "rest.port: 1"]
    write_configuration(tmp_path / "new", values, (2, 0))
    assert f'{COOLDOWN}: "2 s"' in (tmp_path / "new" / "config.yaml").read_text()


@pytest.mark.parametrize(
    ("version", "is_reactive", "reason"),
    [
        ((1, 17), False, "flink_too_old"),
        ((1, 17), True, "reactive_mode"),
        ((1, 18), False, "default_scheduler"),
        ((2, 3), True, "reactive_mode"),
        (None, False, "default_scheduler"),
    ],
)
def test_what_a_cluster_cannot_do_has_a_name(version, is_reactive, reason):
    assert explain_no_requirements(version, is_reactive=is_reactive)[0] == reason


def test_the_doctor_finds_keys_that_the_version_does_not_read():
    configuration = {COOLDOWN: "5 s", WAIT: "2 min", RESCALE_HISTORY_KEY: "20"}
    assert find_unread_keys(configuration, (2, 3)) == {}
    assert check_keys("c", configuration, (2, 3)) == []
    (result,) = check_keys("c", configuration, (1, 20))
    assert result.level == "warning"
    assert f"write {ADAPTIVE}scaling-interval.min for {COOLDOWN}" in result.remedy
    assert RESCALE_HISTORY_KEY in result.text
    assert check_keys("c", configuration, None) == []


def test_the_doctor_says_whether_rescales_are_kept():
    assert check_rescale_history("c", {}, (2, 2)) == []
    (result,) = check_rescale_history("c", {RESCALE_HISTORY_KEY: "20"}, (2, 3))
    assert "last 20" in result.text
    (result,) = check_rescale_history("c", {}, (2, 3))
    assert RESCALE_HISTORY_KEY in result.text
