"""How long Flink waits with a rescale, by version and configuration."""

from __future__ import annotations

import math

import pytest

from include.flink.durations import parse_duration_s
from include.flink.rescale_times import RescaleTimes, read_rescale_times

ADAPTIVE = "jobmanager.adaptive-scheduler."


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("10 min", 600), ("30s", 30), ("60000", 60), ("1 d", 86_400), ("2 hours", 7200), ("1500 MS", 1.5), ("5m", 300),
        ("PT10M", 600), ("P1DT2H", 93_600), ("pt1.5s", 1.5), ("0 ms", 0),
        ("", None), ("-1", None), ("soon", None), ("1 parsec", None), ("P", None), ("1.5 s", None),
    ],
)  # fmt: skip
def test_durations_are_read_as_flink_does(text: str, seconds: float | None) -> None:
    result = parse_duration_s(text)
    assert result == seconds or math.isclose(result, seconds)


@pytest.mark.parametrize(
    ("version", "configuration", "times"),
    [
        ((1, 18), {}, RescaleTimes(0, 0, 10)),
        ((1, 19), {}, RescaleTimes(0, 30, 10)),
        ((1, 20), {}, RescaleTimes(1800, 30, 10)),
        ((2, 1), {}, RescaleTimes(1800, 30, 70)),
        (None, {}, RescaleTimes(1800, 30, 70)),
        ((2, 3), {"rescale-trigger.max-delay": "1 min"}, RescaleTimes(60, 30, 70)),
        ((2, 3), {"rescale-trigger.max-delay": "0 ms"}, RescaleTimes(0, 30, 70)),
        ((1, 20), {"max-delay-for-scale-trigger": "45 s"}, RescaleTimes(45, 30, 10)),
        ((1, 20), {"rescale-trigger.max-delay": "45 s"}, RescaleTimes(1800, 30, 10)),  # 1.20 passes it over
        ((2, 0), {"max-delay-for-scale-trigger": "45 s"}, RescaleTimes(1800, 30, 70)),
        ((2, 0), {"rescale-trigger.max-checkpoint-failures": "4"}, RescaleTimes(3000, 30, 70)),
        ((1, 20), {"scale-on-failed-checkpoints-count": "0"}, RescaleTimes(600, 30, 10)),
        ((2, 0), {"executing.cooldown-after-rescaling": "2 s"}, RescaleTimes(1800, 2, 70)),
        ((2, 0), {"scaling-interval.min": "5 s"}, RescaleTimes(1800, 5, 70)),
        ((1, 20), {"scaling-interval.min": "5 s", "scaling-interval.max": "5 min"}, RescaleTimes(1800, 5, 310)),
        ((2, 0), {"executing.resource-stabilization-timeout": "PT5M"}, RescaleTimes(1800, 30, 310)),
        ((2, 0), {"rescale-trigger.max-delay": "whenever"}, RescaleTimes(1800, 30, 70)),
    ],
)
def test_the_waits_are_those_of_version_and_configuration(
    version: tuple[int, int] | None, configuration: dict[str, str], times: RescaleTimes
) -> None:
    reported = {f"{ADAPTIVE}{key}": value for key, value in configuration.items()}
    assert read_rescale_times(reported, 600.0, version) == times


def test_without_checkpoints_flink_waits_for_none() -> None:
    assert read_rescale_times({}, None, (2, 1)).checkpoint_s == 0
    assert read_rescale_times({}, None, (2, 1)).total_s == 100
