"""The plots: convergence paths (Table 4) and the word count on Flink over time (Fig. 7)."""

from __future__ import annotations

from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks.papers.ds2.convergence import STARTS, Runs
from benchmarks.papers.ds2.ds2_published import PUBLISHED
from benchmarks.papers.ds2.nexmark import QUERIES, SLOTS
from models.arrays import Floats

_DPI = 130


def convergence_paths(result: Runs, indicated: Runs, out: Path) -> None:
    """Write the parallelism of each query's main operator per step, from six starts.

    Args:
        result: with the minor changes that the code ignores, drawn solid.
        indicated: without ignoring any, dotted where it goes further.
        out: folder of the plot.
    """
    figure = Figure(figsize=(10.0, 5.6), layout="constrained")
    axes = figure.subplots(2, 3, sharex=True)
    for axis, query in zip(axes.flat, QUERIES, strict=True):
        axis.axhline(result[query, STARTS[0]].smallest, color="0.8", linewidth=5, label="smallest without backpressure")
        for colour, start in enumerate(STARTS):
            for runs, style in ((indicated, ":"), (result, "-")):
                path = runs[query, start].path
                axis.plot(range(len(path)), path, style, color=f"C{colour}", marker="o", markersize=4, linewidth=1.3)
        axis.set_title(query)
        axis.set_ylim(0, SLOTS)
        axis.xaxis.get_major_locator().set_params(integer=True)
    for axis in axes[1]:
        axis.set_xlabel("reconfigurations")
    for axis in axes[:, 0]:
        axis.set_ylabel("instances of the main operator")
    axes[0, 1].plot([], [], "k-", label="as in DS2's code")
    axes[0, 1].plot([], [], "k:", label="one instance less counts too")
    axes[0, 1].legend(loc="upper right", fontsize=8, frameon=False)
    figure.savefig(out / "ds2_convergence.png", dpi=_DPI)


def word_count(rows: Floats, out: Path) -> None:
    """Write rate and parallelism over time beside the published steps.

    Args:
        rows: as :func:`benchmarks.papers.ds2.flink_wordcount.run` returns them.
        out: folder of the plot.
    """
    figure = Figure(figsize=(8.0, 5.0), layout="constrained")
    above, below = figure.subplots(2, 1, sharex=True)
    above.step(rows[:, 0], rows[:, 1] / 1e6, where="pre", color="C0")
    above.set_ylabel("M sentences/s emitted")
    for place, name in enumerate(("FlatMap", "Count")):
        below.step(rows[:, 0], rows[:, 2 + place], where="pre", color=f"C{place}", label=f"{name}, ours")
        _draw_published(below, place, float(rows[-1, 0]), name)
    below.yaxis.get_major_locator().set_params(integer=True)
    below.set_ylabel("instances")
    below.set_xlabel("s")
    below.legend(loc="upper right", ncols=2, fontsize=8, frameon=False)
    figure.savefig(out / "ds2_flink_wordcount.png", dpi=_DPI)


def _draw_published(axis: Axes, place: int, end_s: float, name: str) -> None:
    paper = PUBLISHED["flink_wordcount"]
    times = [0.0, *(action[0] for action in paper["actions"]), end_s]
    counts = [paper["start"][place], *(action[1 + place] for action in paper["actions"])]
    axis.step(times, [*counts, counts[-1]], ":", where="post", color=f"C{place}", label=f"{name}, published")
