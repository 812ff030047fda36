"""``python -m benchmarks.replay.tuning``: the best form of every rival, and of our own constants, on the tuning pieces.

Each candidate gets the same number of trials of Optuna's TPE with the same seed; the first is its own form.  A trial
costs what the candidate costs over the clairvoyant, after the first day, mean of the pieces and seeds.  All trials go
to ``published/tuning_trials.csv``, the best forms to ``best_forms.toml``, candidate by candidate.
"""

from __future__ import annotations

import csv
import json
import multiprocessing
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path

import optuna

from benchmarks.replay.best_forms import BEST_FORMS, BestForm, read_found, write_found
from benchmarks.replay.replay_cases import FLOOR, ReplayCase, Row, replay_case
from benchmarks.replay.rivals.rival_options import CandidateForm
from benchmarks.replay.search_spaces import SPACES
from benchmarks.replay.split import UNSEEN, Piece, SplitSide, read_piece, read_split
from cli.arguments import CommandParser, whole_number
from cli.process_group import exit_on_sigterm
from lab.commands.workers import end_with_parent
from lab.replay.conditions import Conditions

SEED = 0
JOB = "wordcount"
TRIALS_FILE = Path(__file__).parent / "published" / "tuning_trials.csv"
_TRIED = "tried"
_COLUMNS = ("candidate", "trial", "cost", "seconds", "form")


@dataclass(frozen=True, slots=True)
class TriedForm:
    """A trial: its number, cost over the clairvoyant's, how long it ran, and the form."""

    trial: int
    cost: float
    seconds: float
    form: CandidateForm


def compute_later_cost(rows: Sequence[Row], policy: str, seed: int) -> float:
    """Return a candidate's cost from the second day on."""
    costs = {str(row["segment"]): row["cost"] for row in rows if row["policy"] == policy and row["seed"] == seed}
    whole, first = costs["all"], costs["first_day"]
    if not isinstance(whole, float) or not isinstance(first, float):
        raise TypeError(f"{policy} has no cost in {sorted(costs)}")
    return whole - first


@cache
def _compute_floor(piece: Piece, seeds: tuple[int, ...], unseen: Path) -> tuple[float, ...]:
    case = ReplayCase(read_piece(piece, _list_folders(unseen)), JOB, (FLOOR,), seeds, Conditions())
    rows = replay_case(case).rows
    return tuple(compute_later_cost(rows, FLOOR, seed) for seed in seeds)


def _list_folders(unseen: Path) -> tuple[Path, ...]:
    from benchmarks.replay.split import TRACES

    return (TRACES, unseen)


def compute_trial_cost(form: CandidateForm, side: SplitSide, unseen: Path) -> float:
    """Return the mean cost of a form over the clairvoyant's, over pieces and seeds, after the first day."""
    ratios = []
    for piece in side.pieces:
        floor = _compute_floor(piece, side.seeds, unseen)
        trace = read_piece(piece, _list_folders(unseen))
        rows = replay_case(ReplayCase(trace, JOB, (_TRIED,), side.seeds, Conditions(), forms={_TRIED: form})).rows
        ratios += [
            compute_later_cost(rows, _TRIED, seed) / least for seed, least in zip(side.seeds, floor, strict=True)
        ]
    return sum(ratios) / len(ratios)


def search_form(name: str, trials: int, side: SplitSide, unseen: Path) -> tuple[str, list[TriedForm]]:
    """Return a candidate's trials, the first of them its own form.

    Args:
        name: of the candidate, in ``SPACES``.
        trials: how many, its own form included.
        side: pieces and seeds.
        unseen: folder of the traces that are not shipped.
    """
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    tried: list[TriedForm] = []

    def run(form: CandidateForm) -> float:
        began = time.monotonic()
        cost = compute_trial_cost(form, side, unseen)
        tried.append(TriedForm(len(tried), cost, time.monotonic() - began, form))
        return cost

    run(CandidateForm(name))
    study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=SEED, n_startup_trials=min(5, trials)))
    study.optimize(lambda trial: run(SPACES[name](trial)), n_trials=trials - 1)
    return name, tried


def choose_best(tried: Sequence[TriedForm]) -> BestForm:
    """Return the cheapest of the trials; the first is the candidate's own form."""
    best = min(tried, key=lambda one: one.cost)
    return BestForm(best.form, len(tried), tried[0].cost, best.cost)


def write_trials(name: str, tried: Sequence[TriedForm], path: Path = TRIALS_FILE) -> None:
    """Replace a candidate's trials in the log."""
    retained: list[list[str]] = []
    if path.is_file():
        with path.open(newline="") as file:
            retained = [row for row in list(csv.reader(file))[1:] if row[0] != name]
    own = [
        [name, str(one.trial), f"{one.cost:.4f}", f"{one.seconds:.1f}", json.dumps(asdict(one.form))] for one in tried
    ]
    with path.open("w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(
            [list(_COLUMNS), *sorted([*retained, *own], key=lambda row: row[0])]
        )


def build_parser() -> CommandParser:
    """Return the command line."""
    result = CommandParser(prog="replay.tuning", description=__doc__)
    result.add_argument("--candidate", nargs="+", choices=sorted(SPACES), metavar="NAME", help="default: all")
    result.add_argument("--trials", type=whole_number(2), default=12, metavar="N", help="of each (default: 12)")
    result.add_argument("--unseen", type=Path, default=UNSEEN, metavar="DIR", help="traces of replay.unseen")
    result.add_argument("-j", "--jobs", type=whole_number(1), default=2, metavar="N", help="processes (default: 2)")
    return result


def main(argv: Sequence[str] | None = None) -> int:
    """Search, and write what was found after each candidate."""
    options = build_parser().parse_args(argv)
    exit_on_sigterm()
    side = read_split("tuning")
    for piece in side.pieces:
        read_piece(piece, _list_folders(options.unseen))
    chosen = [name for name in SPACES if name in (options.candidate or SPACES)]
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(options.jobs, mp_context=context, initializer=end_with_parent) as pool:
        waiting = [pool.submit(search_form, name, options.trials, side, options.unseen) for name in chosen]
        for done in as_completed(waiting):
            name, tried = done.result()
            best = choose_best(tried)
            write_trials(name, tried)
            write_found({**read_found(), name: replace(best)})
            took = sum(one.seconds for one in tried)
            print(f"{name}: {best.cost_own:.3f} -> {best.cost_best:.3f}, {len(tried)} trials, {took:.0f} s", flush=True)
    print(f"written: {BEST_FORMS}, {TRIALS_FILE}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
