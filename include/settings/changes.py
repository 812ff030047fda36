"""How a controller takes over settings that change while it runs."""

from __future__ import annotations

from pydantic import Field

from include.settings.section import Section
from include.utc import HOUR_S


class SettingsChanges(Section):
    """When a change of the settings counts for a controller that runs; what tightens counts at once."""

    loosen_after_s: float = Field(
        60.0, ge=0, le=HOUR_S, description="s; what loosens counts when the file has been as it is for so long"
    )
