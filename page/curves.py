"""An operator's learnt capacity over parallelism, as SVG without text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from page.charts import HEIGHT, WIDTH, round_up

REACH = 1.6
"""A curve is drawn to so many times the highest parallelism that was observed."""
_Z = 1.2816  # of an interval of 80%


@dataclass(frozen=True, slots=True)
class Curve:
    """An operator's capacity with the points it was learnt from; rates in records/s.

    Attributes:
        parallelism, mean_per_s, sd_per_s: of the curve.
        observed, observed_per_s: parallelism and mean rate of the recent observations.
    """

    operator: str
    parallelism: Sequence[float]
    mean_per_s: Sequence[float]
    sd_per_s: Sequence[float]
    observed: Sequence[float]
    observed_per_s: Sequence[float]

    @property
    def shown(self) -> int:
        """Number of points that are drawn: beyond what was learnt the curve is a guess."""
        last = max(self.observed, default=self.parallelism[-1] if self.parallelism else 0) * REACH
        return max(sum(one <= last for one in self.parallelism), min(len(self.parallelism), 2))

    @property
    def highest_per_s(self) -> float:
        """Upper end of the axis."""
        ends = [mean + _Z * sd for mean, sd in zip(self.mean_per_s, self.sd_per_s, strict=True)][: self.shown]
        return round_up(max([*ends, *self.observed_per_s], default=1.0))

    @property
    def last(self) -> float:
        """Highest parallelism that is drawn."""
        return self.parallelism[self.shown - 1] if self.shown else 1.0

    def draw(self) -> Markup:
        """Return the SVG: the mean, its 80% interval, and the observations as dots."""
        top, last, count = self.highest_per_s, max(self.last, 1.0), self.shown

        def point(parallelism: float, rate: float) -> str:
            return f"{WIDTH * parallelism / last:.1f} {HEIGHT * (1 - min(max(rate / top, 0.0), 1.0)):.1f}"

        rows = list(zip(self.parallelism, self.mean_per_s, self.sd_per_s, strict=True))[:count]
        upper = [point(one, mean + _Z * sd) for one, mean, sd in rows]
        lower = [point(one, mean - _Z * sd) for one, mean, sd in rows]
        body = []
        if rows:
            body.append(f'<path class="area capacity" d="M{"L".join([*upper, *reversed(lower)])}Z"/>')
            line = "L".join(point(one, mean) for one, mean, _ in rows)
            body.append(f'<path class="line sustained" vector-effect="non-scaling-stroke" d="M{line}"/>')
        dots = "".join(
            f"M{point(one, rate)}h0.1"
            for one, rate in zip(self.observed, self.observed_per_s, strict=True)
            if one <= last
        )
        if dots:
            body.append(f'<path class="dots" vector-effect="non-scaling-stroke" d="{dots}"/>')
        return Markup(
            f'<svg viewBox="0 0 {WIDTH:.0f} {HEIGHT:.0f}" preserveAspectRatio="none" aria-hidden="true">'
            f"{''.join(body)}</svg>"
        )
