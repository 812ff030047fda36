"""Environment variables: read by their key's type, and near misses refused with the right name."""

from __future__ import annotations

import pytest

from include.settings import SETTINGS_FILE_VARIABLE, Settings, SettingsError, load_settings


@pytest.fixture
def load(tmp_path, monkeypatch):
    """Load settings from a file's text and variables."""

    def loaded(text: str = "", **variables: str) -> Settings:
        path = tmp_path / "settings.toml"
        path.write_text(text)
        monkeypatch.setenv(SETTINGS_FILE_VARIABLE, str(path))
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        return load_settings()

    return loaded


def test_every_type_of_key_is_read(load) -> None:
    made = load(
        "[clusters.Prod]\nwindow_s = 60\npoll_every_s = 30\n[policies.conttune_a3]\nalpha = 1\n",
        TIDEWISE__PLANNER__COSTS__LATE_WEIGHT="4",
        TIDEWISE__PLANNER__TIMING__AWAITS_CHECKPOINT="true",
        TIDEWISE__PLANNER__POLICIES='{"c/orders": "mdp"}',
        TIDEWISE__BACKTEST__POLICIES='["planner"]',
        TIDEWISE__CLUSTERS__Prod__REST_URL="http://jobmanager:8081",
        TIDEWISE__CLUSTERS__new__SLOTS_TOTAL="9",
        TIDEWISE__POLICIES__conttune_a3__KEEP="7",
        TIDEWISE__POLICIES__conttune_a3__THRESHOLDS__CORE_MIN="0.5",
        TIDEWISE__POLICIES__dhalion__SYMPTOM="pending",
        TIDEWISE__MLFLOW__EXPERIMENT="mine",
    )
    assert made.planner.costs.late_weight == 4.0
    assert made.planner.timing.awaits_checkpoint is True
    assert made.planner.policies == {"c/orders": "mdp"}
    assert made.backtest.policies == ("planner",)
    assert made.cluster("Prod").model_dump(include={"window_s", "rest_url"}) == {
        "window_s": 60,
        "rest_url": "http://jobmanager:8081",
    }
    assert made.cluster("new").slots_total == 9
    assert made.parameters_of("conttune_a3") == {"alpha": 1, "keep": 7, "thresholds": {"core_min": 0.5}}
    assert made.parameters_of("dhalion") == {"symptom": "pending"}
    assert made.mlflow.experiment == "mine"


@pytest.mark.parametrize(
    ("variable", "value", "told"),
    [
        ("TIDEWISE_PATHS__LAKE", "x", "write TIDEWISE__PATHS__LAKE"),
        ("TIDEWISE__PATHS_LAKE", "x", "TIDEWISE__PATHS"),
        ("TIDEWISE_PATHS_LAKE", "x", "write TIDEWISE__PATHS__LAKE"),
        ("tidewise__paths__lake", "x", "write TIDEWISE__PATHS__LAKE"),
        ("TIDEWISE__PATHS__LAEK", "x", "write TIDEWISE__PATHS__LAKE"),
        ("TIDEWISE__PATH__LAKE", "x", "write TIDEWISE__PATHS"),
        ("TIDEWISE__PLANNER__LATE_WEIGHT", "4", "write TIDEWISE__PLANNER__COSTS__LATE_WEIGHT"),
        ("TIDEWISE__PATHS__LAKE__X", "4", "is a key and has none below it"),
        ("TIDEWISE_SETTING", "x.toml", "write TIDEWISE_SETTINGS"),
        ("TIDEWISE__CLUSTERS__PROD__SLOTS_MAX", "4", "write TIDEWISE__CLUSTERS__Prod__SLOTS_MAX"),
        ("TIDEWISE_CLUSTERS__Prod__SLOTS_MAX", "4", "write TIDEWISE__CLUSTERS__"),
        ("TIDEWISE__CLUSTERS__Prod__SLOT_MAX", "4", "SLOTS_MAX"),
        ("TIDEWISE__BACKTEST__POLICIES", "planner", "no JSON"),
        ("TIDEWISE__MLFLOW", "x", "names a section"),
        ("TIDEWISE__PLANNER__HORIZON_H", "many", "planner.horizon_h"),
        ("TIDEWISE__", "x", "no such section"),
    ],
)
def test_a_near_miss_is_refused_with_the_right_name(load, variable: str, value: str, told: str) -> None:
    with pytest.raises(SettingsError) as refused:
        load("[clusters.Prod]\n", **{variable: value})
    assert told in str(refused.value)
    assert "\n" not in str(refused.value)


def test_variables_of_others_are_left_alone(load) -> None:
    others = {"TIDEWISE_SERVICE_HOST": "10.0.0.1", "TIDEWISE_PORT_8080_TCP": "tcp://10.0.0.1:8080", "TIDEWISE": "x"}
    assert load(**others) == Settings()
