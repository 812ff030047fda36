"""Settings that parts are made with: what begins anew, what stops, and what goes on."""

from __future__ import annotations

from typing import Any

import pytest

from controller.command import find_restart
from controller.wired_settings import explain_change
from include.settings import Settings, check_settings

ONE, OTHER = {"rest_url": "http://a:1"}, {"rest_url": "http://b:1"}


def settings_of(**clusters: dict[str, str]) -> Settings:
    return check_settings({"paths": {"lake": "l", "raw": "r"}, "clusters": clusters})


@pytest.mark.parametrize(
    ("before", "after", "why"),
    [
        ({}, {}, ""),
        ({"a": ONE}, {"a": ONE}, ""),
        ({}, {"a": ONE}, "clusters.a changed: control of cluster 'a' begins anew"),
        ({"a": ONE}, {}, "the settings name no cluster 'a' any more: it is not controlled"),
        ({"a": ONE}, {"a": OTHER}, "clusters.a.rest_url changed: control of cluster 'a' begins anew"),
    ],
)
def test_a_cluster_begins_anew_when_it_comes_goes_or_is_another(
    before: dict[str, Any], after: dict[str, Any], why: str
) -> None:
    """A cluster that is known from its raw files alone is named by neither, and goes on."""
    assert explain_change(settings_of(**before), settings_of(**after), "a") == why


def test_while_nothing_has_changed_nothing_is_chosen_anew(caplog: pytest.LogCaptureFixture) -> None:
    """A cluster that was asked for may be known from raw files alone, which are cleaned up some day."""
    assert find_restart(settings_of(a=ONE), settings_of(a=ONE), ["gone"]) == ("", [])
    assert caplog.messages == []
