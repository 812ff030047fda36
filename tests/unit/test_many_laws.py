"""Many jobs learn together what each would have learnt alone, to the last bit."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest

from include.settings import load_settings
from models.hosting.memories import store
from models.policies.protocol import PastLoads
from models.policies.tidewise.past_law import learn_past_loads
from models.policies.tidewise.programme_memory import ProgrammeMemory
from models.programme.law_state import LawState
from models.programme.load_law import observe, observe_many
from spark_jobs.plan import new_jobs
from spark_jobs.plan.new_jobs import begin_states
from spark_jobs.plan_inputs.job_state import JobState

FIRST, JOBS, STEPS = 5_668_000, 5, 330


def made_loads() -> np.ndarray:
    """Return (JOBS, STEPS) loads of all kinds: waves, a walk, bursts, counts near zero, and one that grows tenfold."""
    generator, hours = np.random.default_rng(5), np.arange(STEPS) / 12
    wave = 1e4 * (1.5 + np.sin(2 * np.pi * hours / 24)) * np.exp(0.1 * generator.standard_normal(STEPS))
    walk = 3e3 * np.exp(np.cumsum(0.1 * generator.standard_normal(STEPS)))
    bursts = 500.0 + 1e5 * (generator.random(STEPS) < 0.03)
    counts = 100.0 * generator.poisson(0.3, STEPS)
    return np.array([wave, walk, bursts, counts, 100.0 + wave * (hours > 20)])


def learn_alone(at: np.ndarray, loads_per_s: np.ndarray) -> LawState:
    state = LawState.first()
    for step, load in zip(at.tolist(), loads_per_s.tolist(), strict=True):
        observe(state, step, load, lambda _: None)
    return state


STEADY = np.arange(STEPS)
HOLES = np.delete(STEADY, [20, 21, 100, 101, 102, 250])
LONG_GAP = np.delete(STEADY, np.arange(60, 110))  # before the day is known: it begins anew
LATE_GAP = np.concatenate([STEADY, [STEPS + 60]])  # after: the usual day is followed


@pytest.mark.parametrize("steps", [STEADY, HOLES, LONG_GAP, LATE_GAP])
def test_jobs_of_the_same_steps_learn_together_what_each_learns_alone(steps: np.ndarray) -> None:
    loads = made_loads()[:, np.minimum(steps, STEPS - 1)]
    states = LawState.first_of_many(JOBS)
    for at, each in zip((FIRST + steps).tolist(), loads.T, strict=True):
        observe_many(states, at, each)
    observe_many(states, FIRST, loads[:, 0])  # an old step is passed over
    for job in range(JOBS):
        alone, one = learn_alone(FIRST + steps, loads[job]), states.take(job)
        for name in (field.name for field in fields(LawState)):
            assert np.array_equal(getattr(one, name), getattr(alone, name), equal_nan=True), name


def test_the_memory_of_a_job_does_not_depend_on_the_others() -> None:
    loads, odd = made_loads(), made_loads()[0]
    odd[7] = np.inf
    pasts = [PastLoads(FIRST + steps, one[steps]) for one in loads for steps in (STEADY, HOLES)]
    pasts.insert(3, PastLoads(FIRST + STEADY, odd))
    with np.errstate(all="ignore"):
        together, alone = learn_past_loads(pasts), [learn_past_loads([past])[0] for past in pasts]
    assert together == alone
    assert together[0].law == learn_alone(FIRST + STEADY, loads[0]).write()
    assert learn_past_loads([]) == []


def state_of(job: str, past: PastLoads | None, memory: str | None = None) -> JobState:
    columns = None if past is None else {"at": past.at, "load_per_s": past.load_per_s}
    policy = None if memory is None else "ds2"
    return JobState("c", job, past_loads=columns, memory=memory, memory_policy=policy)


def test_a_new_job_begins_with_what_its_load_tells_and_others_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    past = PastLoads(FIRST + STEADY, made_loads()[0])
    states = [state_of("known", None, "left"), state_of("new", past), state_of("changed", past, "of ds2")]
    settings = load_settings()
    known, new, changed = begin_states(settings, states)
    learnt = store("programme", ProgrammeMemory(law=learn_alone(past.at, past.load_per_s).write()))
    assert (known.memory, known.memory_policy) == ("left", "ds2")
    assert (new.memory, new.memory_policy) == (changed.memory, changed.memory_policy) == (learnt, "programme")

    def fail(_: str) -> object:
        raise RuntimeError("not learnt")

    monkeypatch.setattr(new_jobs, "import_object", fail)  # the policy learns from them when the job is planned
    assert [one.memory for one in begin_states(settings, states)] == ["left", None, "of ds2"]
