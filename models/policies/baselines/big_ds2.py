"""Big+DS2, a baseline of ContTune: its Big phase ends the backpressure, then DS2 tunes with the rates that shows."""

from __future__ import annotations

from models.policies.conttune.driver import WindowTuner
from models.policies.conttune.options import Acquisition, Options

OPTIONS = Options(acquisition=Acquisition.LINEAR, always_big=True)


class BigDs2(WindowTuner):
    """The Big phase of every tuning of an under-provisioned job, then DS2's linear rule until it settles."""

    def __init__(self, options: Options | None = None) -> None:
        super().__init__(options or OPTIONS, "Big+DS2")
