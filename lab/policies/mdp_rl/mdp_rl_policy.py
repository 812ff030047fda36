"""The scaling policies of the paper on a real job: centralised MDP, RL+ and RL, and one RL agent per operator.

A slot is an observation window.  At every decision an agent learns from the windows that it has not seen and plans
with what it knows; by night it may learn from the whole history again.  Deviation: values are iterated until they are
exact, not one sweep per slot, because decisions are rare and values then need not be stored.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from include.domain.graph import JobGraph
from include.utc import DAY_S
from lab.policies.mdp_rl.agent_learning import estimate_ratios, learn_job, learn_operators
from lab.policies.mdp_rl.job_planning import (
    MdpSolution,
    bound_job,
    has_too_many,
    objective_response_s,
    plan_job,
    plan_operator,
    service_per_s,
)
from lab.policies.mdp_rl.mdp_rl_inputs import modelled_capacities, per_record, recent_load, recent_rates
from lab.policies.mdp_rl.mdp_rl_memory import JOB, AgentsMemory, Knowledge
from lab.policies.mdp_rl.mdp_rl_options import CentralisedOptions, DecentralisedOptions
from models.arrays import Floats, Ints
from models.policies.immediate_change import hold, rescale_now
from models.policies.protocol import History, Schedule, Situation
from models.scheduling.need import CapacityBounds


@dataclass(frozen=True, slots=True)
class CentralisedRl:
    """One agent for the whole job that has to learn which configurations violate.

    Attributes:
        knows_response: take the response time from M/D/1 and the capacity models instead ("RL+").
        nightly: plan once a day, from the whole history until then, and keep to it ("MDP").
        options: the settings.
    """

    knows_response: bool = False
    nightly: bool = False
    options: CentralisedOptions = field(default_factory=CentralisedOptions)

    def first_memory(self) -> AgentsMemory:
        """Return a memory without knowledge."""
        return AgentsMemory()

    def learn(self, history: History) -> AgentsMemory:
        """Return what the agent knows after a history, learnt from nothing; nothing without any capacity model."""
        bounds = modelled_capacities(history)
        return self._learn_new(history, bounds, self.first_memory()) if bounds else self.first_memory()

    def decide(self, situation: Situation, memory: AgentsMemory) -> tuple[Schedule, AgentsMemory]:
        """Return one change, each operator by at most one instance per window since the last decision, or none.

        Raises:
            DemandError: the forecast, from which the expectation is made, cannot be used.
        """
        bounds = modelled_capacities(situation)
        if not bounds:
            return hold(situation, "No operator has a capacity model, so there is nothing to decide on."), memory
        learned, options = _record_decision(self._learn_new(situation, bounds, memory)), self.options
        agents = learned.planned if self.nightly else learned.agents
        known, load = agents.get(JOB, Knowledge()), recent_load(situation, memory)
        if known.slots < options.least_slots or not load.size:
            return hold(situation, _missing_knowledge(known, load.size, options.least_slots)), learned
        shares = per_record(situation)
        limits = bound_job(known, bounds, shares, options.objective_utilisation)
        if has_too_many(limits):
            chosen = self._as_operators.choose(situation, bounds, agents, recent_rates(situation, memory))
            who = f"the operators' agents, as {math.prod(limits):,} configurations are too many for one"
            return _schedule(situation, chosen, who), learned
        plan = plan_job(
            known,
            bounds,
            situation.graph,
            per_record=shares,
            target_utilisation=options.objective_utilisation,
            objective_s=self._objective_s(bounds, situation.graph),
            knows_response=self.knows_response,
            options=options,
        )
        running = np.array([situation.parallelism[name] for name in bounds], np.int64)
        wanted = _walk(plan, running, load if self.knows_response else load[-1:])
        chosen = dict(zip(bounds, wanted.tolist(), strict=True))
        return _schedule(situation, chosen, f"the job's agent at {load[-1]:.4g} records/s"), learned

    @property
    def _as_operators(self) -> DecentralisedRl:
        """The agents that decide where the job has too many configurations for one."""
        options = self.options
        return DecentralisedRl(
            DecentralisedOptions(
                weights=options.weights,
                discount=options.discount,
                learning_rate=options.learning_rate,
                least_slots=options.least_slots,
                exploration=options.exploration,
                levels=options.levels,
                target_utilisation=options.objective_utilisation,
                knows_utilisation=self.knows_response,
            )
        )

    def _objective_s(self, bounds: Mapping[str, CapacityBounds], graph: JobGraph) -> float:
        if self.options.objective_s is not None:
            return self.options.objective_s
        return objective_response_s(bounds, graph, self.options.objective_utilisation)

    def _learn_new(
        self, job: Situation | History, bounds: Mapping[str, CapacityBounds], memory: AgentsMemory
    ) -> AgentsMemory:
        of_job = learn_job(
            job.observations,
            job.graph,
            estimate_ratios(job.graph, job.models, job.observations),
            memory,
            service_per_s=service_per_s(bounds),
            objective_s=self._objective_s(bounds, job.graph),
            measures_latency=self.options.objective_s is not None,
            options=self.options,
        )
        # What the operators' agents would decide by is learnt from the same windows, for when one agent is not enough.
        of_operators = self._as_operators.learn_new(job, memory)
        operators = {name: known for name, known in of_operators.agents.items() if name != JOB}
        learned = replace(of_job, agents={**of_job.agents, **operators})
        return _update_planned(learned, job.as_of_s, self.options.least_slots) if self.nightly else learned


@dataclass(frozen=True, slots=True)
class CentralisedRlPlus(CentralisedRl):
    """One agent for the whole job that knows the response model."""

    knows_response: bool = True


@dataclass(frozen=True, slots=True)
class CentralisedMdp(CentralisedRl):
    """The centralised MDP: known response model, transition probabilities as the history of the last night has them."""

    knows_response: bool = True
    nightly: bool = True


@dataclass(frozen=True, slots=True)
class DecentralisedRl:
    """One agent per operator, each with a utilisation target of its own rate only.

    Attributes:
        options: the settings.
    """

    options: DecentralisedOptions = field(default_factory=DecentralisedOptions)

    def first_memory(self) -> AgentsMemory:
        """Return a memory without knowledge."""
        return AgentsMemory()

    def decide(self, situation: Situation, memory: AgentsMemory) -> tuple[Schedule, AgentsMemory]:
        """Return one change, each operator by at most one instance per window since the last decision, or none.

        Raises:
            DemandError: the forecast, from which the expectation is made, cannot be used.
        """
        learned = _record_decision(self.learn_new(situation, memory))
        bounds = modelled_capacities(situation)
        chosen = self.choose(situation, bounds, learned.agents, recent_rates(situation, memory))
        if not chosen:
            most = max(learned.agents.values(), key=lambda known: known.slots, default=Knowledge())
            return hold(situation, _missing_knowledge(most, 0, self.options.least_slots)), learned
        return _schedule(
            situation, chosen, f"the operators' agents, target utilisation {self.options.target_utilisation:g}"
        ), learned

    def choose(
        self,
        situation: Situation,
        bounds: Mapping[str, CapacityBounds],
        agents: Mapping[str, Knowledge],
        rates: Mapping[str, Floats],
    ) -> dict[str, int]:
        """Return operator -> parallelism, of those whose agents know enough.

        Args:
            situation: of the job.
            bounds: capacities of the operators that are decided on.
            agents: operator -> what its agent knows.
            rates: operator -> rates offered to it since the last decision.
        """
        chosen = {}
        for name, capacity in bounds.items():
            known, observed = agents.get(name, Knowledge()), rates.get(name, np.zeros(0))
            if known.slots < self.options.least_slots or not observed.size:
                continue
            plan = plan_operator(
                known,
                capacity,
                target_utilisation=self.options.target_utilisation,
                knows_utilisation=self.options.knows_utilisation,
                options=self.options,
            )
            running = np.array([situation.parallelism[name]], np.int64)
            chosen[name] = int(_walk(plan, running, observed if self.options.knows_utilisation else observed[-1:])[0])
        return chosen

    def learn(self, history: History) -> AgentsMemory:
        """Return what the agents know after a history, learnt from nothing."""
        return self.learn_new(history, self.first_memory())

    def learn_new(self, job: Situation | History, memory: AgentsMemory) -> AgentsMemory:
        """Return the memory after the windows that it has not read."""
        return learn_operators(
            job.observations,
            job.graph,
            estimate_ratios(job.graph, job.models, job.observations),
            memory,
            target_utilisation=self.options.target_utilisation,
            options=self.options,
        )


def _update_planned(memory: AgentsMemory, as_of_s: int, least_slots: int) -> AgentsMemory:
    """Return the memory with the learnt counts used for the plan, if it is another day and there are enough of them."""
    day = as_of_s // DAY_S
    enough = memory.agents.get(JOB, Knowledge()).slots >= least_slots
    return replace(memory, planned=memory.agents, planned_day=day) if enough and day != memory.planned_day else memory


def _record_decision(memory: AgentsMemory) -> AgentsMemory:
    return replace(memory, decided_window_s=memory.last_window_s)


def _walk(plan: MdpSolution, running: Ints, rates: Floats) -> Ints:
    """Return the configuration, (N,), that the plan's actions lead to along the rates, one action per window.

    Deviation: the paper's agent acts in every slot.  Between two decisions it could not; what it would have done since
    is made up for at once.  An agent that must learn from what its actions cost takes one action per decision.
    """
    start = at = plan.nearest(running)
    for rate in rates.tolist():
        at = int(plan.following[plan.row(rate), at])
    wanted = np.minimum(running, plan.parallelism.max(axis=0)) if at == start else plan.parallelism[at]
    # from outside the plan's configurations, too, an operator moves by one instance per window
    return np.asarray(np.clip(wanted, running - len(rates), running + len(rates)), np.int64)


def _schedule(situation: Situation, chosen: Mapping[str, int], who: str) -> Schedule:
    changed = [name for name, parallelism in chosen.items() if parallelism != situation.parallelism[name]]
    if not changed:
        return hold(situation, f"No change costs less in the long run, say {who}.")
    parts = ", ".join(f"{name} from {situation.parallelism[name]} to {chosen[name]}" for name in changed)
    return rescale_now(situation, chosen, f"Least expected long-run cost takes {parts}, say {who}.")


def _missing_knowledge(known: Knowledge, windows: int, least_slots: int) -> str:
    if known.slots < least_slots:
        return f"Only {known.slots} changes of the rate were seen; {least_slots} are needed before an agent acts."
    return f"No rate is known since the last decision ({windows} windows)."
