"""ContTune as policies."""

from __future__ import annotations

from models.policies.conttune.driver import WindowTuner
from models.policies.conttune.options import Options


class ContTune(WindowTuner):
    """ContTune with the known region of its main results, radius 3."""

    def __init__(self, options: Options | None = None) -> None:
        super().__init__(options or Options(), "ContTune")


class ContTuneAlpha0(WindowTuner):
    """ContTune that trusts only parallelisms that it has seen: DS2 with a cache."""

    def __init__(self, options: Options | None = None) -> None:
        super().__init__(options or Options(alpha=0), "ContTune with alpha 0")
