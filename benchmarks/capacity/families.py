"""Synthetic operators of known capacity, one family per way in which real ones leave the simple curve.

Each operator is seen in stays: some hours at one parallelism, of which WINDOWS windows are kept.  What a model is
trained on came before, what it is scored on are later stays at parallelisms that it saw, at ones between them, and
beyond them.  Seeds are in ``seeds.json``: models were tuned on other seeds than those that tables are made of.
"""

from __future__ import annotations

import json
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from models.arrays import Floats, Ints

SEEDS: Final[dict[str, list[int]]] = json.loads((Path(__file__).parent / "seeds.json").read_text())
FAMILIES: Final = (
    "contention",
    "retrograde",
    "key groups",
    "skew",
    "shared error",
    "machine steps",
    "two points",
    "outliers",
)
WINDOWS: Final = 5
KEY_GROUPS: Final = 128
OBSERVED_TOP: Final = 24  # largest parallelism that is seen
TOP: Final = 64
NOISE: Final = (0.01, 0.04)
OUTLIER_SHARE: Final = 0.05
BEYOND: Final = (1.25, 1.5, 2.0, 2.5)  # times the largest parallelism seen
_SLOTS_PER_MACHINE: Final = 8


@dataclass(frozen=True, slots=True)
class Family:
    """Windows of a fleet of operators of one family.

    Attributes:
        name: of the family.
        operators: B.
        key_groups: (B,) as Flink's REST would tell.
        owner, parallelism: (n,) of each window trained on.
        stay: (n,) number of its stay; a later one has a larger number.
        capacity_per_s: (n,) as measured.
        test_owner, test_parallelism, test_per_s: (t,) of the windows to predict.
        test_true_per_s: (t,) without noise of any kind.
    """

    name: str
    operators: int
    key_groups: Floats
    owner: Ints
    parallelism: Ints
    stay: Ints
    capacity_per_s: Floats
    test_owner: Ints
    test_parallelism: Ints
    test_per_s: Floats
    test_true_per_s: Floats


def make_family(name: str, operators: int, seed: int) -> Family:
    """Return a fleet of one family."""
    draws = np.random.default_rng([seed, zlib.crc32(name.encode())])
    grid = np.arange(1, TOP + 1)
    truth = _true_curves(name, operators, grid, draws)
    noise = draws.uniform(*NOISE, operators)
    shared = draws.uniform(0.02, 0.05, operators) if name == "shared error" else noise * 0.5
    train: list[tuple[int, int, int]] = []  # operator, parallelism, stay
    test: list[tuple[int, int]] = []
    for one in range(operators):
        points = 2 if name == "two points" else int(draws.integers(4, 11))
        largest = int(draws.integers(10, OBSERVED_TOP + 1))
        inner = draws.choice(np.arange(1, largest), points - 1, replace=False)
        observed = np.append(inner, largest)
        returns = draws.choice(observed, len(observed))
        order = draws.permutation(np.concatenate([observed, returns]))
        train += [(one, int(p), stay) for stay, p in enumerate(order)]
        rest = np.setdiff1d(np.arange(observed.min(), largest), observed)
        between = draws.choice(rest, min(3, len(rest)), replace=False)
        beyond = np.minimum(np.round(largest * np.array(BEYOND)), TOP)
        test += [(one, int(p)) for p in (*draws.choice(observed, 2, replace=False), *between, *beyond)]
    owner, at, stay = (np.repeat(np.array(column), WINDOWS) for column in zip(*train, strict=True))
    test_owner, test_at = (np.array(column) for column in zip(*test, strict=True))
    by_stay = np.repeat(shared[owner[::WINDOWS]] * draws.standard_normal(len(train)), WINDOWS)
    observed_per_s = truth[owner, at - 1] * np.exp(by_stay + noise[owner] * draws.standard_normal(len(owner)))
    later = np.exp(
        shared[test_owner] * draws.standard_normal(len(test)) + noise[test_owner] * draws.standard_normal(len(test))
    )
    if name == "outliers":
        observed_per_s, later = (values * _draw_gross_errors(len(values), draws) for values in (observed_per_s, later))
    true = truth[test_owner, test_at - 1]
    groups = np.full(operators, float(KEY_GROUPS))
    return Family(name, operators, groups, owner, at, stay, observed_per_s, test_owner, test_at, true * later, true)


def _draw_gross_errors(windows: int, draws: np.random.Generator) -> Floats:
    """Return (windows,) factors: far below or far above one for OUTLIER_SHARE of the windows, one for the others."""
    low, high = draws.uniform(0.3, 0.7, windows), draws.uniform(1.5, 3.0, windows)
    factor = np.where(draws.random(windows) < 0.5, low, high)
    return np.asarray(np.where(draws.random(windows) < OUTLIER_SHARE, factor, 1.0), float)


def _true_curves(name: str, operators: int, grid: Ints, draws: np.random.Generator) -> Floats:
    """Return (B, TOP) true capacities, records/s."""
    level = np.exp(draws.uniform(np.log(1e3), np.log(1e6), (operators, 1)))
    contention = draws.uniform(0.003, 0.06, (operators, 1))
    working = np.broadcast_to(grid.astype(float), (operators, len(grid)))
    coherency = np.zeros((operators, 1))
    if name == "retrograde":
        coherency = 1.0 / draws.uniform(25.0, 60.0, (operators, 1)) ** 2  # falls beyond about that parallelism
    if name in {"key groups", "skew"}:
        working = KEY_GROUPS / np.ceil(KEY_GROUPS / working)
        contention = contention * 0.3
    if name == "skew":  # the hottest key has a share of the load, and its subtask ends the growth softly
        hottest = draws.uniform(0.01, 0.05, (operators, 1))
        working = 1.0 / ((1.0 - hottest) / working + hottest)
    curve = level * working / (1.0 + (working - 1.0) * (contention + coherency * working))
    if name == "machine steps":  # each machine more costs a share of what an instance processes
        machines = np.ceil(grid / _SLOTS_PER_MACHINE)
        curve = curve * (1.0 - draws.uniform(0.02, 0.08, (operators, 1))) ** (machines - 1.0)
    return np.asarray(curve, float)
