"""The machine of test_controller_stateful with the Kubernetes operator between the controller and Flink."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import pytest
from controller_machine import COUNTS, EXAMPLES, ControllerMachine, settings_of
from hypothesis import strategies as st
from hypothesis.stateful import rule
from operator_model import AUTOSCALER, OperatorModel

from controller.log.control_log import LogEntry
from models.control.state import Origin


class OperatorMachine(ControllerMachine):
    model: ClassVar[type[OperatorModel]] = OperatorModel
    flink: OperatorModel

    def check_request(self, entry: LogEntry, target: dict[str, int], number: int) -> None:
        super().check_request(entry, target, number)
        assert self.flink.can_act, "a patch that is not carried out in place, or under another autoscaler"

    @rule(counts=COUNTS, manner=st.sampled_from(["conflict", "edit"]), count=st.integers(0, 3))
    def the_resource_changes_while_a_patch_is_sent(self, counts: list[int], manner: str, count: int) -> None:
        self.flink.advance(130.0)
        self._want(counts, Origin.PLAN, "")
        self.flink.manner = manner
        self.tick()
        self.flink.manner = "accept"
        self._go_on(count)

    @rule(
        key=st.sampled_from(["jobmanager.scheduler", AUTOSCALER, "taskmanager.numberOfTaskSlots"]),
        is_on=st.booleans(),
        is_up=st.booleans(),
        counts=COUNTS,
        is_healed=st.booleans(),
    )
    def a_person_changes_the_resource(
        self, key: str, is_on: bool, is_up: bool, counts: list[int], is_healed: bool
    ) -> None:
        if is_healed:
            self.all_is_well_for_hours(5.0, counts, "accept")
        values = {"jobmanager.scheduler": ("default", "adaptive"), AUTOSCALER: ("true", "false")}
        self.flink.change(key, values.get(key, ("1", "2"))[is_on], is_up=is_up)
        self.flink.advance(130.0)
        self._want(counts, Origin.PLAN, "")
        self._go_on(2)

    @rule(counts=COUNTS)
    def a_person_edits_the_map_while_the_operator_is_down(self, counts: list[int]) -> None:
        self._heal()
        self._go_on(1)
        self.flink.advance(130.0)
        self.flink.is_up = False
        self.flink.edit_map(counts)
        self._want([one + 1 for one in counts], Origin.PLAN, "")
        self._go_on(2)

    @rule(counts=COUNTS, is_held=st.sampled_from([False, False, True]))
    def flink_forgets_the_map(self, counts: list[int], is_held: bool) -> None:
        """The job is submitted again and comes back without what was asked for (FLINK-38770)."""
        self.all_is_well_for_hours(5.0, counts, "accept")
        self.flink.advance(130.0)
        self.limits = replace(self.limits, is_held=is_held)
        self.jobs += 1
        self.flink.redeploy(self.jobs, self.flink.graph, 2)
        self.desired = None
        self._go_on(4)

    def _heal(self) -> None:
        super()._heal()
        self.flink.change("jobmanager.scheduler", "adaptive", is_up=True)
        self.flink.change(AUTOSCALER, "false", is_up=True)


TestOperator = OperatorMachine.TestCase
TestOperator.settings = settings_of(EXAMPLES if EXAMPLES != 20 else 8)  # Flink's machine has run the shared rules
pytestmark = pytest.mark.timeout(3600)
