"""What persons may do, and how far their answers reach."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from include.settings.section import Section, Text

Act = Literal["approve", "hold", "rescale", "limits"]
_WHO = "login names; empty: everyone who can write "


class ApprovalRules(Section):
    """How far a person's answer to a step reaches."""

    band: float = Field(
        0.25,
        ge=0,
        le=1,
        description="share of the slots by which another step may differ from an answered one",
    )


class Roles(Section):
    """Who may do what, by login name. Whoever can write below the lake gets round it: see docs/limits.md."""

    approve: tuple[Text, ...] = Field((), description=f"who may answer steps: {_WHO}the answers below the lake")
    hold: tuple[Text, ...] = Field((), description=f"who may hold and release: {_WHO}the holds below the lake")
    rescale: tuple[Text, ...] | None = Field(
        None, description="who may pin and undo, which needs no yes; unset: those of `approve`"
    )
    limits: tuple[Text, ...] = Field((), description=f"who may own the settings file, alone able to write it: {_WHO}it")
    admin: tuple[Text, ...] = Field((), description="who may do all of this, and lift a no of somebody else")

    def may(self, act: Act, login: str) -> bool:
        """Whether a person may do something; where nobody is named, everyone may."""
        named = self.named_for(act)
        return not named or login in named

    def named_for(self, act: Act) -> tuple[str, ...]:
        """Return who alone may do something, admins among them; empty: everyone may."""
        named: tuple[str, ...] | None = getattr(self, act)
        named = self.approve if named is None else named
        return (*named, *self.admin) if named else ()
