"""The page of the comparison: one HTML file without scripts or links to the network."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import jinja2

from benchmarks.live.drawing import COLOURS, draw_ages, draw_slots
from benchmarks.live.policies import POLICIES, TIDEWISE
from benchmarks.live.results import CPU_MAX, RunResult
from benchmarks.live.run import LOST_FOR_S, read_prices
from benchmarks.live.simulator import Comparison
from benchmarks.live.tables import format_error, format_seconds

TEMPLATE = Path(__file__).with_name("page.html.j2")


def render_page(results: Sequence[RunResult], against: Sequence[str], comparisons: Sequence[Comparison]) -> str:
    """Return the page as HTML text; the same results give the same text.

    Args:
        results: sorted.
        against: what they say against Tidewise.
        comparisons: the simulator beside them.
    """
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("page"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(seconds=format_seconds)
    prices = read_prices()
    groups = []
    for key in dict.fromkeys((one.job, one.seed, one.minutes) for one in results):
        runs = [one for one in results if (one.job, one.seed, one.minutes) == key and one.lines]
        if runs:
            drawings = {"slots": draw_slots(runs), "ages": draw_ages(runs, prices.late_after_s)}
            groups.append({"job": key[0], "seed": key[1], "minutes": key[2], "runs": runs, **drawings})
    return environment.from_string(TEMPLATE.read_text(encoding="utf-8")).render(
        groups=groups,
        results=results,
        invalid=[one for one in results if not one.is_valid],
        against=against,
        comparisons=[
            {
                "run": one,
                "cost": format_error(one.simulated_cost, one.cost),
                "recovery": format_error(one.simulated_recovery_s, one.recovery_s),
            }
            for one in comparisons
        ],
        policies=POLICIES,
        colours=COLOURS,
        own=TIDEWISE,
        prices=prices,
        cpu_max=CPU_MAX,
        lost_for_s=LOST_FOR_S,
    )
