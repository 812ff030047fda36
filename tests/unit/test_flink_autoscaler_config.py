"""The autoscaler's options: all keys with their defaults, how values are written, what is refused."""

import json
from pathlib import Path

import pytest

from lab.policies.flink_autoscaler.config import Alignment, AutoscalerConfig
from lab.policies.flink_autoscaler.options import OPTIONS, ConfigError
from lab.policies.flink_autoscaler.values import read

DECLARED = json.loads(
    (Path(__file__).resolve().parents[2] / "data" / "cases" / "flink_autoscaler_options.json").read_text()
)
KINDS = {
    "Duration": "duration",
    "Boolean": "boolean",
    "Integer": "integer",
    "Double": "double",
    "List<String>": "list",
    "MemorySize": "memory",
    "Enum": "text",
    "String": "text",
}


def test_the_60_options_are_those_declared() -> None:
    assert len(OPTIONS) == 60
    result = {option.key: (option.kind, option.default) for option in OPTIONS}
    declared = {
        key: (KINDS[one["type"]], None if one["default"] == "(none)" else one["default"].strip('"'))
        for key, one in DECLARED.items()
    }
    assert result == declared
    releases = {option.key: option.release for option in OPTIONS}
    for key, one in DECLARED.items():
        assert (
            releases[key]
            == {(True, True): "both", (True, False): "1.15.0", (False, True): "main"}[
                (one["in_1_15_0"], one["in_main"])
            ]
        )


def test_giving_every_default_changes_nothing() -> None:
    """The fields' defaults are the keys', except for the alignment, which release 1.15.0 names otherwise than main."""
    given = {option.key: option.default for option in OPTIONS if option.default is not None and "<" not in option.key}
    newer = given.pop("job.autoscaler.scaling.parallelism-alignment.mode")
    assert AutoscalerConfig.from_options(given) == AutoscalerConfig()
    assert newer == "BALANCED"


def test_keys_are_read_with_and_without_prefix_and_unit() -> None:
    long = AutoscalerConfig.from_options(
        {"job.autoscaler.scale-down.interval": "30 min", "job.autoscaler.quota.cpu": "4"}
    )
    short = AutoscalerConfig.from_options({"scale-down.interval_s": 1800, "quota.cpu": 4.0})
    assert long == short
    assert (long.scale_down_interval_s, long.quota_cpu) == (1800.0, 4.0)
    custom = {"job.autoscaler.scaling.parallelism-alignment.mode.mine.class": "org.example.Mine", "alignment": "OFF"}
    assert AutoscalerConfig.from_options(custom).alignment is Alignment.OFF


def test_the_newer_alignment_key_comes_first() -> None:
    legacy = {"scaling.key-group.partitions.adjust.mode": "MAXIMIZE_UTILISATION"}
    assert AutoscalerConfig.from_options(legacy).alignment is Alignment.LEGACY_MAXIMIZE_UTILISATION
    assert AutoscalerConfig.from_options({**legacy, "alignment": "BALANCED"}).alignment is Alignment.BALANCED


@pytest.mark.parametrize(
    ("kind", "raw", "value"),
    [
        ("duration", "5 min", 300.0),
        ("duration", "90 d", 90 * 86400.0),
        ("duration", "250", 0.25),
        ("duration", "1h", 3600.0),
        ("memory", "2 gb", 2 << 30),
        ("memory", "1024", 1024),
        ("boolean", "True", True),
        ("list", "a; b;;c", ("a", "b", "c")),
        ("list", ["a", "b"], ("a", "b")),
        ("integer", 3.0, 3),
        ("double", "1e5", 1e5),
    ],
)
def test_values(kind: str, raw: object, value: object) -> None:
    assert read(kind, raw) == value  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"scale-down.intervall": "1 h"}, "no option 'scale-down.intervall'"),
        ({"scale-down.interval": "1 fortnight"}, "'scale-down.interval': '1 fortnight' is not a duration"),
        ({"history.max.count": 2.5}, "2.5 is not a integer"),
        ({"scaling.enabled": "yes"}, "'yes' is not a boolean"),
        ({"utilization.target": 0}, r"utilization.target must be in \(0, 1\]"),
        ({"utilization.target": 0.8, "utilization.max": 0.7}, "utilization.max must be between"),
        ({"vertex.min-parallelism": 10, "vertex.max-parallelism": 5}, "at least vertex.min-parallelism"),
        ({"utilization.target": float("nan")}, "is not a double"),
        ({"alignment": "SIDEWAYS"}, "'SIDEWAYS' is not built in; choose one of"),
    ],
)
def test_what_is_not_understood_is_refused_by_name(options: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        AutoscalerConfig.from_options(options)


def test_bounds_are_around_the_target_unless_given() -> None:
    assert AutoscalerConfig().utilization_bounds() == pytest.approx((0.4, 1.0))
    assert AutoscalerConfig(utilization_max=0.9, utilization_min=0.6).utilization_bounds() == (0.6, 0.9)
