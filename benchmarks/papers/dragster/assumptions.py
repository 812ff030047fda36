"""What the paper leaves open, one assumption varied at a time: slots of Fig. 4, speed-ups of Fig. 5."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from benchmarks.papers.cells import Cell
from benchmarks.papers.dragster.dragster_experiments import (
    CAPACITY_NOISE,
    DHALION,
    DHALION_BACKPRESSURE,
    Progress,
    Tuner,
    make_dhalions,
    make_dragsters,
    play,
)
from benchmarks.papers.dragster.dragster_jobs import Application
from benchmarks.papers.dragster.dragster_measures import SLOT_MIN, Interval, cell, read_published, runs_of
from benchmarks.papers.dragster.workloads import MEASURES, list_workloads
from lab.policies.dhalion import dhalion_options as dhalion
from lab.policies.dragster.dragster_options import Bonus, CapacityTarget, DragsterOptions, ThroughputForm
from models.arrays import Floats

RUNS = 5
_SLOTS = 30  # 300 min
TABLE = "assumptions"
_SCHEMES = {CapacityTarget.SADDLE: "saddle", CapacityTarget.GRADIENT: "gradient"}


@dataclass(frozen=True, slots=True)
class Assumption:
    """One variant.

    Attributes:
        options: of Dragster.
        dhalion: of Dhalion.
        keeps_backlog, noise: see :func:`play`.
        learns: whether throughput functions are learnt.
    """

    options: DragsterOptions = field(default_factory=DragsterOptions)
    dhalion: dhalion.DhalionOptions = DHALION
    keeps_backlog: bool = True
    noise: float = CAPACITY_NOISE
    learns: bool = False


ASSUMPTIONS: Mapping[str, Assumption] = {
    "as used": Assumption(),
    "backlog dropped after each window": Assumption(keeps_backlog=False),
    "multipliers ignored": Assumption(DragsterOptions(multiplier_weight=0.0)),
    "multiplier weight 0.5": Assumption(DragsterOptions(multiplier_weight=0.5)),
    "15% headroom, multipliers ignored": Assumption(DragsterOptions(multiplier_weight=0.0, headroom=0.15)),
    "kernel length 1 task": Assumption(DragsterOptions(length_scale_share=0.1)),
    "kernel length 5 tasks": Assumption(DragsterOptions(length_scale_share=0.5)),
    "kernel length 10 tasks": Assumption(DragsterOptions(length_scale_share=1.0)),
    "kernel deviation 0.1": Assumption(DragsterOptions(prior_deviation=0.1)),
    "kernel deviation 1": Assumption(DragsterOptions(prior_deviation=1.0)),
    "zero prior mean": Assumption(DragsterOptions(linear_prior=False)),
    "sqrt(beta) sigma": Assumption(DragsterOptions(bonus=Bonus.DEVIATION)),
    "capacity measured without noise": Assumption(noise=0.0),
    "h learnt, linear": Assumption(learns=True),
    "h learnt, tanh": Assumption(DragsterOptions(throughput=ThroughputForm.TANH), learns=True),
    "Dhalion goes by backpressure": Assumption(dhalion=DHALION_BACKPRESSURE),
}


def vary_assumptions(progress: Progress) -> list[Cell]:
    """Return, for each assumption, minutes of WordCount (Fig. 4) and the speed-ups over Dhalion (Fig. 5).

    Both readings of "converge" are shown: near the best from then on, and near it for the first time.
    """
    workloads, cells = list_workloads(), []
    groups = {
        "one operator": [app for app in workloads if len(app.start) == 1],
        "two operators": [app for app in workloads if len(app.start) == 2],
    }
    for name, assumption in ASSUMPTIONS.items():
        progress(f"dragster: assumptions, {name}")
        cells += _cells_of(name, {label: _measure(assumption, apps) for label, apps in groups.items()})
    return cells


Minutes = Mapping[tuple[str, str, str], Floats]
"""(scheme, workload, reading) -> (R,) minutes."""


def _measure(assumption: Assumption, apps: list[Application]) -> Minutes:
    result = {}
    for app in apps:
        offered, keeps = np.full(_SLOTS, app.source_per_s), assumption.keeps_backlog
        rules = make_dhalions(app, assumption.dhalion)
        played = {"Dhalion": play(app, offered, rules, noise=0.0, keeps_backlog=keeps)}
        tuners: list[Tuner] = []
        for target in _SCHEMES:
            options = replace(assumption.options, target=target)
            tuners += make_dragsters(app, options, RUNS, learns=assumption.learns)
        both = play(app, offered, tuners, seed=3, noise=assumption.noise, keeps_backlog=keeps)
        for place, scheme in enumerate(_SCHEMES.values()):
            played[scheme] = runs_of(both, place * RUNS, (place + 1) * RUNS)
        for scheme, record in played.items():
            for reading, minutes in MEASURES.items():
                result[scheme, app.name, reading] = minutes(Interval(record))
    return result


def _cells_of(name: str, groups: Mapping[str, Minutes]) -> list[Cell]:
    published = read_published()
    slots, means = published["fig4_wordcount_slots_to_converge"]["no_budget"], published["fig5_means"]
    keys, cells = {"one operator": "one_operator", "two operators": "two_operator"}, []
    for scheme in _SCHEMES.values():
        for reading in MEASURES:
            minutes = groups["two operators"][scheme, "WordCount high", reading]
            column, shown = f"Fig. 4: {scheme}, slots, {reading}", slots.get(scheme)
            cells.append(cell(TABLE, name, column, minutes / SLOT_MIN, "slots", paper_value=shown))
    for label, result in groups.items():
        apps = sorted({app for _, app, _ in result})
        for scheme in _SCHEMES.values():
            for reading in MEASURES:
                ours = float(np.mean([result[scheme, app, reading].mean() for app in apps]))
                theirs = float(np.mean([result["Dhalion", app, reading].mean() for app in apps]))
                shown = means[keys[label]][f"speedup_{scheme}"]
                column = f"Fig. 5: {label}, {scheme}, speed-up, {reading}"
                cells.append(cell(TABLE, name, column, theirs / ours, "ratio", paper_value=shown))
    return cells
