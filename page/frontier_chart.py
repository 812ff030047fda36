"""Late minutes over slot-hours as SVG without text: a curve for each policy, a dot for each goal or headroom."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from fleet.frontier import FrontierPoint, PolicyCurve
from page.charts import HEIGHT, WIDTH, round_up

_MARGIN = 0.05


@dataclass(frozen=True, slots=True)
class FrontierChart:
    """The drawing of some curves; classes ``c0``, ``c1``, ... give each its colour."""

    curves: Sequence[PolicyCurve]

    @property
    def highest(self) -> float:
        """Late minutes a day at the upper end of the axis."""
        return round_up((1 + _MARGIN) * max(one.late_minutes for curve in self.curves for one in curve.points))

    @property
    def ends(self) -> tuple[float, float]:
        """Slot-hours a day at both ends of the axis."""
        hours = [one.slot_hours for curve in self.curves for one in curve.points]
        return (1 - _MARGIN) * min(hours), (1 + _MARGIN) * max(hours) + 1e-9

    def ticks(self) -> list[str]:
        """Return the labels of five places on the axis of slot-hours."""
        low, high = self.ends
        return [f"{low + (high - low) * place / 4:,.{0 if high - low >= 10 else 1}f}" for place in range(5)]

    def draw(self) -> Markup:
        """Return the SVG."""
        body = [
            part
            for place, curve in enumerate(self.curves)
            for points in [[self._place(one) for one in sorted(curve.points, key=lambda one: one.slot_hours)]]
            for part in (
                f'<path class="line c{place}" vector-effect="non-scaling-stroke" d="M{"L".join(points)}"/>',
                f'<path class="dots c{place}" vector-effect="non-scaling-stroke" d="M{"h0.1M".join(points)}h0.1"/>',
            )
        ]
        return Markup(
            f'<svg viewBox="0 0 {WIDTH:.0f} {HEIGHT:.0f}" preserveAspectRatio="none" aria-hidden="true">'
            f"{''.join(body)}</svg>"
        )

    def _place(self, one: FrontierPoint) -> str:
        low, high = self.ends
        return (
            f"{WIDTH * (one.slot_hours - low) / (high - low):.1f} {HEIGHT * (1 - one.late_minutes / self.highest):.1f}"
        )
