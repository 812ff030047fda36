from __future__ import annotations

import pytest

from include.settings import PROJECT, SETTINGS_FILE_VARIABLE, SettingsError, load_settings, settings_file


@pytest.fixture
def toml(tmp_path, monkeypatch):
    """Write a settings file and put it in force."""

    def write(text: str):
        path = tmp_path / "settings.toml"
        path.write_text(text)
        monkeypatch.setenv(SETTINGS_FILE_VARIABLE, str(path))
        return path

    return write


def test_defaults_file_and_environment_in_this_order(toml, monkeypatch):
    toml('[paths]\nlake = "/srv/lake"\nraw = "/srv/raw"\n[policies.need_vector]\nmin_step_s = 60\n')
    monkeypatch.setenv("TIDEWISE__PATHS__RAW", "/data/raw")
    settings = load_settings()
    assert settings.paths.lake == "/srv/lake"
    assert settings.paths.raw == "/data/raw"
    assert settings.paths.out == "out"
    assert settings.parameters_of("need_vector") == {"min_step_s": 60}


def test_a_job_has_parameters_of_its_own(toml):
    """A recovery target is the job's; where it sets none that of its policy holds, then the paper's."""
    toml(
        '[planner]\npolicy = "phoebe"\n[planner.parameters."prod/orders"]\nrecovery_target_s = 240\n'
        "[policies.phoebe]\nrecovery_target_s = 300\nbins = 4\n"
    )
    settings = load_settings()
    assert settings.parameters_of("phoebe", "prod/orders") == {"recovery_target_s": 240, "bins": 4}
    assert settings.parameters_of("phoebe", "prod/other") == {"recovery_target_s": 300, "bins": 4}
    toml('[planner.policies]\n"prod/orders" = "phoebe"\n[planner.parameters."prod/orders"]\nrecovery_target_s = -1\n')
    with pytest.raises(SettingsError, match=r"recovery_target_s"):
        load_settings()


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("[planner]\nhorizon = 3\n", "planner.horizon"),
        ("[plannner]\nhorizon_h = 3\n", "plannner"),
        ("[planner]\nhorizon_h = 0\n", "planner.horizon_h"),
        ("[clusters.a]\nwindow_s = 7\n", "window_s = 7 does not divide an hour"),
        ('[limits]\nmode = "yes"\n', "limits.mode"),
        ("[planner\n", "settings.toml"),
    ],
)
def test_a_fault_is_named(toml, text, named):
    toml(text)
    with pytest.raises(SettingsError, match=named):
        load_settings()


def test_every_fault_is_listed(toml):
    toml("[planner]\nhorizon_h = 0\nmax_input_age_h = 0\n")
    with pytest.raises(SettingsError, match=r"(?s)horizon_h.*max_input_age_h"):
        load_settings()


def test_an_unknown_section_in_the_environment_is_refused(toml, monkeypatch):
    toml("")
    monkeypatch.setenv("TIDEWISE__PLANER__HORIZON_H", "3")
    with pytest.raises(SettingsError, match=r"TIDEWISE__PLANER__HORIZON_H.*no such section.*TIDEWISE__PLANNER"):
        load_settings()


def test_a_named_file_must_exist(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(SETTINGS_FILE_VARIABLE, str(tmp_path / "gone.toml"))
    with pytest.raises(SettingsError, match="does not exist"):
        load_settings()


def test_a_shipped_file_is_found_in_the_working_directory(monkeypatch, tmp_path):
    (tmp_path / "tidewise.toml").write_text('[paths]\nlake = "/srv/lake"\n')
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(SETTINGS_FILE_VARIABLE, "/not/on/this/machine/tidewise.toml")
    assert load_settings().paths.lake == "/srv/lake"


def test_the_projects_own_file_is_the_last_resort(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(SETTINGS_FILE_VARIABLE, raising=False)
    assert settings_file() == PROJECT / "tidewise.toml"


def test_the_shipped_settings_load(monkeypatch):
    monkeypatch.delenv(SETTINGS_FILE_VARIABLE, raising=False)
    settings = load_settings()
    assert settings.limits.mode == "dry-run"
    assert {"recorded", "simulated"} <= set(settings.clusters)
    assert settings.cluster("unknown").window_s == 300
