"""A unit of a study as a case of the replay."""

from __future__ import annotations

from pathlib import Path

from benchmarks.replay.evidence.studies import Unit
from benchmarks.replay.replay_candidates import Forms
from benchmarks.replay.replay_cases import ReplayCase
from benchmarks.replay.scenarios import apply_scenario
from benchmarks.replay.split import TRACES, UNSEEN, Piece, read_piece
from lab.replay.conditions import Conditions


def build_case(unit: Unit, forms: Forms, unseen: Path = UNSEEN) -> ReplayCase:
    """Return the case of a unit.

    Args:
        unit: of a study.
        forms: of candidates that run in another than their own.
        unseen: folder of the traces that are not shipped.

    Raises:
        TraceError: the trace is in no folder.
    """
    trace = read_piece(Piece(unit.trace, 0, 0), (TRACES, unseen)).cut_days(unit.days)
    case = ReplayCase(trace, unit.job, (unit.policy,), unit.seeds, Conditions(), forms=forms)
    return apply_scenario(case, unit.scenario) if unit.scenario else case
