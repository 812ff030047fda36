"""A controller in this process that polls nothing and sends nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from cli.embedded import below
from controller.tick import Ticker
from controller.wiring import build_ticker
from include.settings import load_settings


def build_rehearsal(out: Path, patch: pytest.MonkeyPatch, clock: Callable[[], float]) -> Ticker:
    """Return what makes the ticks of a cluster ``c`` whose tables are below a folder."""
    for name, value in below(out).items():
        patch.setenv(name, value)
    return build_ticker(load_settings, ["c"], "here:1", clock, is_rehearsal=True)
