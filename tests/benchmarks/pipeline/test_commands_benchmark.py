"""The benchmark of the commands: what counts as their processor time, and what as no answer."""

import os
import re
import sys

import pytest

from benchmarks.pipeline.commands import list_calls, time_call
from benchmarks.processes import CommandFailedError
from include.settings import PROJECT

BURN = "import time\nwhile time.process_time() < 0.3: pass\nprint('done')"


def test_processor_seconds_are_those_of_a_call_and_of_what_it_starts():
    child = f"import subprocess, sys; subprocess.run([sys.executable, '-S', '-c', {BURN!r}])"
    asleep = "import time; time.sleep(0.5); print('done')"
    burnt, slept = (time_call([sys.executable, "-S", "-c", code], dict(os.environ)) for code in (child, asleep))
    assert 0.3 <= burnt < 1.0
    assert slept < 0.25


@pytest.mark.parametrize("code", ["raise KeyError('broken')", "pass"])
def test_a_command_without_an_answer_is_no_figure(code):
    with pytest.raises(CommandFailedError):
        time_call([sys.executable, "-S", "-c", code], dict(os.environ))


def test_every_call_is_a_target_of_make():
    targets = set(re.findall(r"^([a-z-]+):", (PROJECT / "Makefile").read_text(), re.MULTILINE))
    assert {call[2] for _, call in list_calls()} <= targets
