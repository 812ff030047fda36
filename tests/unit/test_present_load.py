"""A load that moves within the five minutes of a step, in short windows: no fall is based on what was before."""

from __future__ import annotations

import numpy as np
import pytest
from programme_line import PER_SUBTASK, START_S, snapshot, window

from models.policies.tidewise.programme_memory import ProgrammeMemory
from models.policies.tidewise.programme_policy import Programme

WINDOW_S, MINUTE = 10, 6
# Records/s in windows of 10 s, as a Flink job of `make demo` counted them: from noon over a night to the next noon.
LOADS = """
3081 3163 3127 2949 2643 2358 2177 2136 2171 2191 2183 2009 1773 1528 1375 1295 1268 1247 1177 1069 928 791 688 632 572
567 492 378 451 301 260 311 303 344 264 321 347 371 399 504 427 568 761 763 830 751 907 965 1232 1270 1258 1605 1698
1715 1740 1935 1890 1887 2681 2336 3012 2660 2298 2261 2635 3188 3256 3488 3199 3444 2880 3211 3243 3149 3658 3917 3736
3794
"""


def decide(loads: list[float], every: int) -> list[tuple[float, int]]:
    """Return the load of the last minute and the subtasks of map that are wanted, of a job of 8, at each evaluation."""
    memory, result, running = ProgrammeMemory(), list[tuple[float, int]](), (8, 8, 8)
    rows = [window(0, load, running, window_start_s=START_S + WINDOW_S * at) for at, load in enumerate(loads)]
    for until in range(MINUTE, len(rows) + 1, every):
        job = snapshot(rows[max(until - 60, 0) : until], running, WINDOW_S)
        decision, memory = Programme().evaluate(job, memory)
        result.append((float(np.mean(loads[until - MINUTE : until])), (decision.wanted or job.running)["map"]))
    return result


@pytest.mark.parametrize("every", [3, MINUTE, 5 * MINUTE])
def test_a_job_falls_to_no_size_that_carries_less_than_arrives(every: int) -> None:
    decided = decide([float(one) for one in LOADS.split()], every)
    assert all(wanted * PER_SUBTASK[1] > arrives for arrives, wanted in decided)


def test_it_falls_once_a_step_has_ended_and_not_for_a_dip_of_a_minute() -> None:
    """After ten minutes of 6,500/s, a minute of 2,000/s in the third step, and all of the fourth."""
    high, low = [6500.0] * MINUTE, [2000.0] * MINUTE
    wanted = [slots for _, slots in decide([*high * 12, *low, *high * 2, *low * 5], 3)]
    assert min(wanted[:-1]) >= 7
    assert wanted[-1] < 7
