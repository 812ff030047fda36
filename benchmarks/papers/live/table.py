"""``results/papers_live.md``: what the policies did on real jobs beside what they do on simulated ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.console import Console

from benchmarks.papers.live.experiment import (
    DECIDE_EVERY_S,
    DOWNTIME_S,
    PAPERS,
    PER_SUBTASK_PER_S,
    STEPS,
    WINDOW_S,
    PaperPolicy,
    Trial,
    find_sufficient,
)
from benchmarks.papers.live.real import run_real
from benchmarks.papers.live.simulated import run_simulated
from include.atomic_write import write_text
from include.settings import PROJECT

DOCUMENT = PROJECT / "benchmarks" / "papers" / "results" / "papers_live.md"


def run_live(
    out: Path, console: Console, document: Path = DOCUMENT, papers: Sequence[PaperPolicy] = PAPERS
) -> dict[str, tuple[Trial, Trial]]:
    """Run the experiment, real and simulated, and write the table; returns paper -> both."""
    console.print(f"{len(papers)} jobs on a real Flink cluster, {sum(seconds for _, seconds in STEPS)} s ...")
    real = run_real(papers, out / "papers_live")
    result = {paper.paper: (real[paper.paper], run_simulated(paper)) for paper in papers}
    write_text(document, print_table(result))
    console.print(f"written: {document}")
    return result


def print_table(result: Mapping[str, tuple[Trial, Trial]]) -> str:
    """Return the document."""
    steps = ", ".join(f"{rate:g}/s for {seconds} s" for rate, seconds in STEPS)
    least = ", ".join(map(str, find_sufficient()))
    lines = [
        "# The papers' policies on a real Flink cluster",
        "",
        'Written by `make papers ARGS="--live"`: one job of `flink_job/` per paper on one cluster of three Java',
        f"processes, all at the same time. Load: {steps}. A subtask of `enrich` waits for each record, so that it",
        f"processes {PER_SUBTASK_PER_S:.0f}/s at most; {least} of them are the fewest that suffice. Every",
        f"{DECIDE_EVERY_S} s the paper's policy decides from windows of {WINDOW_S} s, made of the replies of Flink's",
        "REST API; its change is sent at once. Simulated: the same policy, loads and times with the simulated job",
        f"(downtime {DOWNTIME_S:g} s). Dragster, MDP/RL and Phoebe are given capacities, in both, as a training",
        "would have found them. The last column is what windows showed: the median of those that were half busy.",
        "",
        "| paper | | `enrich` wanted, by step | at the end of each step | decisions | changes | a subtask, records/s |",
        "|---|---|---|---|---|---|---|",
    ]
    for paper, (real, simulated) in result.items():
        lines += [_row(paper, "real", real), _row("", "simulated", simulated)]
    same = sum(real.ends == simulated.ends for real, simulated in result.values())
    lines += ["", f"Real and simulated end every step at the same parallelism for {same} of {len(result)} papers."]
    differing = [
        f"- {paper}: real {_join(real.ends)}, simulated {_join(simulated.ends)}"
        for paper, (real, simulated) in result.items()
        if real.ends != simulated.ends
    ]
    return "\n".join([*lines, *([""] if differing else []), *differing]) + "\n"


def _row(paper: str, kind: str, trial: Trial) -> str:
    by_step = [_join([one.wanted[0] for one in trial.changes if one.step == step]) for step in range(len(STEPS))]
    paths = "; ".join(path or "-" for path in by_step)
    figures = f"{trial.decisions} | {len(trial.changes)} | {trial.capacity_per_s:.0f}"
    return f"| {paper} | {kind} | {paths} | {_join(trial.ends)} | {figures} |"


def _join(counts: Sequence[int]) -> str:
    return ", ".join(map(str, counts))
