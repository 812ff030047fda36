"""The programme as a policy: the plan leaves the load that it expects, every evaluation decides anew."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from models.policies.immediate_change import hold
from models.policies.job_snapshot import Snapshot
from models.policies.protocol import Schedule, Situation
from models.policies.tidewise.full_operators import describe_stuck, find_stuck
from models.policies.tidewise.present_windows import read_present
from models.policies.tidewise.programme_choice import choose
from models.policies.tidewise.programme_memory import PlannedLoad, ProgrammeMemory
from models.policies.tidewise.reactive_controller import learn_windows
from models.policies.tidewise.step_loads import list_step_loads
from models.policies.tidewise.tidewise_memory import ReactiveDecision
from models.policies.tidewise.unseen import describe_load_unseen, describe_unseen
from models.programme.choice import describe_choice
from models.programme.law_state import LawState
from models.programme.load_law import observe

LEAST_STEPS: Final = 2


class Programme:
    """Decides at every evaluation by a small Markov decision process over size, load and age of the backlog."""

    def first_memory(self) -> ProgrammeMemory:
        """Return the memory of a job that was never evaluated."""
        return ProgrammeMemory()

    def decide(self, situation: Situation, memory: ProgrammeMemory) -> tuple[Schedule, ProgrammeMemory]:
        """Return no step, and the memory with the load that is expected: the evaluations decide."""
        known = replace(memory, planned=PlannedLoad.of(situation.forecast))
        return hold(situation, "decided at every evaluation, by the load and the backlog then"), known

    def evaluate(
        self, job: Snapshot, memory: ProgrammeMemory, left: ProgrammeMemory | None = None
    ) -> tuple[ReactiveDecision, ProgrammeMemory]:
        """Return what a job should run at from now on.

        Args:
            job: as it is now.
            memory: of the last evaluation.
            left: what a newer plan left; None to keep what is remembered of one.
        """
        planned = memory.planned if left is None else left.planned
        law = LawState.read(memory.law)
        for one in list_step_loads(job.graph, job.observations, law.newest):
            observe(law, one.at, one.load_per_s, planned.total, is_least=one.is_least)
        known = learn_windows(memory.controller, job.graph, job.observations)
        present, known = read_present(job, known)
        reading, unseen = present.reading, present.unseen
        memory = replace(memory, law=law.write(), controller=known, planned=planned)
        if not (job.up or job.restarting):
            return ReactiveDecision(None, "the job is not running"), memory
        if unseen.sources:
            why = describe_load_unseen(unseen)
            return ReactiveDecision(None, why, remark=why), memory
        if law.seen < LEAST_STEPS:
            return ReactiveDecision(None, "too little was seen of its load yet"), memory
        stuck = find_stuck(job, reading, known)
        # What is read again is what any later reader of the memory has.
        chosen = choose(job, memory, LawState.read(memory.law), left_out=unseen.busy_sources, is_stuck=bool(stuck))
        if chosen is None:
            return ReactiveDecision(None, "nothing tells yet what its sizes can process"), memory
        memory = replace(memory, belief=chosen.belief)
        why = "" if reading is None else describe_stuck(job, reading, known, stuck)
        why += describe_unseen(unseen)
        reason = describe_choice(chosen.choice, job.now_s) + why
        if chosen.choice.place == 0:
            return ReactiveDecision(None, reason, remark=why.removeprefix("; ")), memory
        configuration = chosen.sizes.configurations[chosen.choice.place].tolist()
        return ReactiveDecision(dict(zip(job.graph.names, configuration, strict=True)), reason), memory
