"""Two controllers against a model of Flink that does everything a cluster may do, killed between any two effects."""

from __future__ import annotations

import pytest
from controller_machine import EXAMPLES, ControllerMachine, settings_of

TestController = ControllerMachine.TestCase
TestController.settings = settings_of(EXAMPLES)
pytestmark = pytest.mark.timeout(3600)
