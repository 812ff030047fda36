"""Slot-hours in money, where somebody has said what they cost."""

from __future__ import annotations

from dataclasses import dataclass

from include.settings import Settings


@dataclass(frozen=True, slots=True)
class Price:
    """What a slot-hour costs."""

    per_slot_hour: float
    currency: str

    def show(self, slot_hours: float) -> str:
        """Return an amount.

        >>> Price(0.05, "USD").show(443.0)
        '22 USD'
        """
        amount = self.per_slot_hour * slot_hours
        return f"{amount:,.2f} {self.currency}" if abs(amount) < 10 else f"{amount:,.0f} {self.currency}"


def price_of(settings: Settings) -> Price | None:
    """Return the price that the settings name; None where they leave it at its default: nobody has said it."""
    if "price_per_slot_hour" not in settings.advise.model_fields_set:
        return None
    return Price(settings.advise.price_per_slot_hour, settings.advise.currency)
