"""What cannot work is refused when the settings are loaded, in one line: key, value, why, and what to write."""

from __future__ import annotations

import pytest

from include.settings import SETTINGS_FILE_VARIABLE, SettingsError, check_settings, load_settings

CLUSTER = {"rest_url": "http://jobmanager:8081", "window_s": 300}


def nested(path: str, value: object) -> dict[str, object]:
    made: object = value
    for part in reversed(path.split(">")):
        made = {part: made}
    return made  # type: ignore[return-value]


SINGLE = [
    ("planner>costs>late_weight", float("inf"), "finite"),
    ("planner>costs>late_weight", float("nan"), "must be"),
    ("planner>costs>late_weight", 1e308, "less than or equal"),
    ("ingest>settle_s", 86_401, "less than or equal"),
    ("ingest>max_value", 1e9, "is a constant now: 1e+15, because"),
    ("planner>capacity>trust_region", 4, "is a constant now: 3, because"),
    ("planner>reactive", {"hold_s": 60}, "planner.reactive.hold_s = 60: is a constant now: 0, because"),
    ("planner>costs>resource_weight", -1, "greater than or equal"),
    ("spark>shuffle_partitions", 10**30, "less than or equal"),
    ("schedules>control", "hello", "five"),
    ("schedules>control", "*/0 * * * *", "no cron expression"),
    ("schedules>control", "61 * * * *", "no cron expression"),
    ("schedules>control", "0 0 31 2 *", "never comes"),
    ("schedules>train", "", "five"),
    ("schedules>train", "0 0 * * * *", "five"),
    ("schedules>ingest", "*/20 * * * *", "every hour"),
    ("clusters>a>rest_url", "ftp://jobmanager:8081", "http"),
    ("clusters>a>rest_url", "file:///etc/passwd", "http"),
    ("clusters>a>rest_url", "jobmanager:8081", "http"),
    ("clusters>a>rest_url", "http://jobmanager:99999", "Port out of range"),
    ("clusters>a>rest_url", "http://jobmanager:0", "host and port"),
    ("clusters>a>rest_url", "http://:8081", "host and port"),
    ("clusters>a>rest_url", "http://job manager:8081", "host and port"),
    ("clusters>a>rest_url", "http://user:secret@jobmanager:8081", "credentials"),
    ("clusters>a>rest_url", "http://jobmanager:8081/?a=b", "end with the path"),
    ("clusters>", {}, "cannot name a cluster"),
    ("clusters>a/b", {}, "cannot name a cluster"),
    ("clusters>../x", {}, "cannot name a cluster"),
    ("clusters>a>window_s", 7, "divide an hour"),
    ("clusters>a>slots_max", 10**6, "less than or equal"),
    ("paths>lake", "", "empty"),
    ("paths>out", "  ", "empty"),
    ("paths>out", "gs://bucket/out", "'gs', but only local folders and S3 are supported; write s3a://bucket/folder"),
    ("storage>endpoint", "http://key:secret@minio:9000", "must not hold credentials"),
    ("storage>endpoint", "minio:9000", "must begin with http:// or https://; write http://minio:9000, say"),
    ("paths>lake", "hdfs://nn/lake", "'hdfs', but only local folders and S3 are supported; write s3a://bucket/folder"),
    ("paths>lake", "gs://bucket/lake", "'gs', but only local"),
    ("paths>lake", "abfss://a@b.dfs.core.windows.net/lake", "'abfss', but only local"),
    ("paths>lake", "s3a:///lake", "names no bucket"),
    ("mlflow>artifact_root", "gs://bucket/models", "'gs', but only local"),
    ("mlflow>artifact_root", "s3://", "names no bucket"),
    ("paths>raw", "a\0b", "control characters"),
    ("spark>driver_memory", "lots", "Java"),
    ("spark>driver_memory", "4", "Java"),
    ("spark>driver_memory", "1m", "512m"),
    ("spark>master", "local[0]", "master"),
    ("spark>master", "localhost", "master"),
    ("mlflow>tracking_uri", "ftp://x", "scheme"),
    ("mlflow>tracking_uri", "sqlite://", "names no file"),
    ("mlflow>registered_model", "a/b", "neither / nor :"),
    ("mlflow>experiment", "", "empty"),
    ("planner>policy", "conttune", "conttune_a3"),
    ("planner>policies", {"c5m/orders": "plannr"}, "planner"),
    ("planner>policies>c/j", "dss2", "ds2"),
    ("planner>policies>orders", "ds2", "cluster/job"),
    ("planner>policies>/orders", "ds2", "cluster"),
    ("backtest>policies", ["planer"], "planner"),
    ("backtest>policies", [], "at least 1"),
    ("planner>horizon_h", 0, "greater than or equal"),
    ("planner>bin_s", 7000, "whole number of bins"),
    ("forecast>bin_s", 700, "divide a day"),
    ("forecast>quantiles", [0.5, 0.1], "no such key"),
    ("forecast>time_zones>a", "Mars/Olympus", "time zone"),
    ("profiling>adapter", "mine", "module:function"),
    ("planner>late_weight", 3, "planner.costs.late_weight"),
    ("planner>net_rescues", False, "no such key"),
    ("plannner>horizon_h", 3, "write planner"),
    ("planner", 3, "section"),
    ("limits>mode", "yes", "dry-run"),
    ("clusters>a>poll_every_s", 1e-9, "greater than or equal"),
    ("policies>conttune_a3>alpha", -1, "greater than or equal"),
    ("policies>conttune_a3>alhpa", 1, "policies.conttune_a3.alpha"),
    ("policies>conttune_a3>thresholds>core_mn", 1, "policies.conttune_a3.thresholds.core_min"),
    ("policies>conttune_a3>thresholds", {"core_min": 0.9, "core_max": 0.5}, "core_min <= core_max"),
    ("policies>conttune", {"alpha": 3}, "conttune_a3"),
    ("policies>planner", {"alpha": 3}, "no parameters"),
    ("policies>ds2>policy_interval_s", 0, "greater than 0"),
    ("planner>parameters>prod/orders", {"alpha": 3}, "no parameters"),
    ("planner>parameters>orders", {"alpha": 3}, "cluster/job"),
    ("profiling>adapter", "flink", "rest_url"),
    ("profiling>rest_url", "http://user:secret@side:8081", "credentials"),
    ("profiling>jobs>prod/orders", {"jar": "a.jar", "entry_class": "A", "arguments": ["--p", "4"]}, "parallelism"),
    ("profiling>jobs>prod/orders", {"jar": "a", "entry_class": "A", "arguments": ["{parallelism}", "{rat}"]}, "rat"),
    ("profiling>jobs>prod/orders", {"jar": "a", "entry_class": "A", "arguments": ["{parallelism} {"]}, "brace"),
    (
        "profiling>jobs>prod/orders",
        {"jar": "a.jar", "entry_class": "A", "arguments": ["{parallelism}", "{trace}"]},
        "trace_dir",
    ),
    ("policies>flink_autoscaler>utilization_max", 0.5, "utilization.max"),
    ("policies>flink_autoscaler>excluded_periods", ["nonsense"], "excluded period"),
    ("policies>mdp>weights", {"resources": 0.9}, "sum to 1"),
]


@pytest.mark.parametrize(("path", "value", "why"), SINGLE)
@pytest.mark.covers("harm poll-without-rest")
def test_a_value_that_cannot_work_is_refused_in_one_line(path: str, value: object, why: str) -> None:
    with pytest.raises(SettingsError) as refused:
        check_settings(nested(path, value))
    line = str(refused.value)
    assert "\n" not in line
    assert len(line) < 700
    assert why in line
    assert path.partition(">")[0] in line
    assert "secret" not in line
    assert "write" in line or "remove" in line


PAIRS = [
    ({"clusters": {"a": CLUSTER | {"window_s": 15}}}, "poll_every_s", "without a poll"),
    ({"clusters": {"a": {"limits": {"mode": "auto"}}}}, "limits.mode", "rest_url"),
    ({"planner": {"horizon_h": 48}}, "planner.horizon_h", "forecast.horizon_h"),
    ({"planner": {"observed_h": 0.01}, "clusters": {"a": {}}}, "planner.observed_h", "window_s"),
    ({"planner": {"max_input_age_h": 0.01}, "clusters": {"a": {}}}, "planner.max_input_age_h", "window_s"),
    ({"planner": {"horizon_h": 1, "bin_s": 7200}}, "horizon_h", "bins"),
    ({"forecast": {"horizon_h": 1, "bin_s": 43200}}, "horizon_h", "bins"),
    ({"profiling": {"rate_steps": 61}}, "rate_steps", "rate_steps_max"),
    ({"apply": {"tick_s": 200}}, "tick_s", "confirm_timeout_s"),
]


@pytest.mark.parametrize(("values", "key", "why"), PAIRS)
def test_two_keys_that_contradict_each_other_are_both_named(values: dict[str, object], key: str, why: str) -> None:
    with pytest.raises(SettingsError) as refused:
        check_settings(values)
    line = str(refused.value)
    assert "\n" not in line
    assert key in line
    assert why in line
    assert "write" in line or "remove" in line


def test_a_deeply_nested_file_is_one_line(tmp_path, monkeypatch) -> None:
    path = tmp_path / "deep.toml"
    monkeypatch.setenv(SETTINGS_FILE_VARIABLE, str(path))
    for text in (
        "a = " + "[" * 5000 + "]" * 5000,
        "x = " + "{a=" * 3000 + "1" + "}" * 3000,
        "[" + "a." * 3000 + "a]\n",
    ):
        path.write_text(text)
        with pytest.raises(SettingsError) as refused:
            load_settings()
        assert "\n" not in str(refused.value)
        assert len(str(refused.value)) < 5000


@pytest.mark.parametrize("text", ["[planner\n", "a = \n", "[a]\n[a]\n", "\udcff", "a = 'b"])
def test_a_file_that_is_no_toml_is_one_line(tmp_path, monkeypatch, text: str) -> None:
    path = tmp_path / "bad.toml"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    monkeypatch.setenv(SETTINGS_FILE_VARIABLE, str(path))
    with pytest.raises(SettingsError, match=r"bad\.toml") as refused:
        load_settings()
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("written", "right"),
    [
        ({"planner": {"policies": {"pord/orders": "ds2"}}}, 'planner.policies."prod/orders"'),
        ({"planner": {"parameters": {"Prod/orders": {}}}}, 'planner.parameters."prod/orders"'),
        ({"forecast": {"holidays": {"prd": []}}}, 'forecast.holidays."prod"'),
        ({"advise": {"job": "x"}}, "write advise.jobs"),
    ],
)
def test_a_key_that_is_nearly_right_is_refused_with_the_right_one(written, right):
    with pytest.raises(SettingsError) as refused:
        check_settings({"clusters": {"prod": {"rest_url": "http://h:8081"}}, **written})
    assert right in str(refused.value)


def test_clusters_that_only_files_know_may_have_keys():
    check_settings({"clusters": {"prod": {}}, "planner": {"policies": {"simulated/orders": "ds2"}}})


SECRET = "t0psecretpw"


@pytest.mark.parametrize(
    "url",
    [f"http://h:1?token={SECRET}", f"http://h:1/#{SECRET}", f"h:1?{SECRET}", f"http:/h?a=1&b={SECRET}", f"ftp://h#{SECRET}",
     f"http://u:{SECRET}@h:1", f"http://h:x{SECRET}?{SECRET}@", f"http://h/%3Ftoken={SECRET}#", f"http://h:1?a\n{SECRET}"],
)  # fmt: skip
@pytest.mark.parametrize(
    "place",
    ["clusters.a.rest_url", "clusters.a.prometheus.url", "clusters.a.connection.proxy", "mlflow.tracking_uri",
     "paths.raw", "spark.master", "clusters.a.no_such_key", "planner.no_such_key", "backtest.policies"],
)  # fmt: skip
@pytest.mark.covers("harm secret-in-address")
def test_no_refusal_holds_what_a_url_may_hide(place: str, url: str) -> None:
    values: dict[str, object] = {"clusters": {"a": {"slots_max": 0}}}
    at, (*sections, key) = values, place.split(".")
    for section in sections:
        at = at.setdefault(section, {})
    at[key] = [url] if key == "policies" else url
    with pytest.raises(SettingsError) as refused:
        check_settings(values)
    if url.startswith("http://h:x") and place != "clusters.a.rest_url":
        return  # a port is no place for a secret
    assert SECRET not in f"{refused.value} {refused.value.faults}"
    with pytest.raises(SettingsError) as refused:
        check_settings({"clusters": {url: {}}, "limits": {"jobs": {f"{url}/j": {"mode": "x"}}}})
    assert "token" not in str(refused.value)


@pytest.mark.parametrize("scheme", ["s3", "s3a", "S3"])
def test_s3_and_s3a_are_one_place_under_the_name_that_each_reader_knows(scheme):
    settings = check_settings(
        {"paths": {"lake": f"{scheme}://bucket/lake"}, "mlflow": {"artifact_root": f"{scheme}://bucket/models"}}
    )
    assert settings.paths.lake == "s3a://bucket/lake"
    assert settings.mlflow.artifact_root == "s3://bucket/models"
