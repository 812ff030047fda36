"""ContTune and its baselines as policies."""

from __future__ import annotations

from models.policies.baselines.big_ds2 import BigDs2
from models.policies.baselines.random_search import RandomSearch
from models.policies.conttune.driver import WindowTuner
from models.policies.conttune.tuning_loop import Options

__all__ = ["BigDs2", "ContTune", "ContTuneAlpha0", "RandomSearch"]


class ContTune(WindowTuner):
    """ContTune with the known region of its main results, radius 3."""

    def __init__(self) -> None:
        super().__init__(Options(), "ContTune")


class ContTuneAlpha0(WindowTuner):
    """ContTune that trusts only parallelisms that it has seen: DS2 with a cache."""

    def __init__(self) -> None:
        super().__init__(Options(alpha=0), "ContTune with alpha 0")
