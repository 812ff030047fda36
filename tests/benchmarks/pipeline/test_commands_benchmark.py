"""The benchmark of the commands: what counts as their processor time, and what as no answer."""

import os
import sys

import pytest

from benchmarks.pipeline.commands import list_calls, time_call
from benchmarks.processes import CommandFailedError
from cli.console import VERBS

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


def test_every_call_is_a_verb_after_the_set_up():
    (_, setup), *calls = list_calls()
    assert setup == ["make", "--silent", "setup"]
    assert {call[1] for _, call in calls} <= VERBS.keys()
