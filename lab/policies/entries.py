"""What is known of each policy of the laboratory before it is imported; entry points in pyproject.toml name these."""

from __future__ import annotations

from include.policy_catalogue import Decides, PolicyEntry

_P = "lab.policies"
_CONTTUNE = f"{_P}.conttune.conttune_options:ContTuneOptions"
_DRAGSTER = f"{_P}.dragster.dragster_options:DragsterOptions"
_DS2 = f"{_P}.ds2.ds2_options:ManagerOptions"
# The window after a restart still holds the catching up; the ratio is that of the paper's experiments.
_DS2_PRESET = {"warm_up_intervals": 1, "target_rate_ratio": 1.0}
_AUTOSCALER = f"{_P}.flink_autoscaler.config:AutoscalerConfig"


def _learning_agent(kind: str, title: str, options: str) -> PolicyEntry:
    return PolicyEntry(
        f"{_P}.mdp_rl.mdp_rl_policy:{kind}",
        title,
        Decides.WITH_PLANS,
        reads_models=True,
        learns_nightly=True,
        parameters=f"{_P}.mdp_rl.mdp_rl_options:{options}",
    )


PLANNER = PolicyEntry(
    f"{_P}.planner.planner_policy:PlannerPolicy",
    "Tidewise before: schedule by optimisation",
    Decides.REPLANS,
    slot_problem=f"{_P}.planner.planner_policy:price_slots",
)
CONTROLLER_ALONE = PolicyEntry(
    f"{_P}.planner.controller_alone:ControllerAlone",
    "Tidewise before: the reactive controller without plans",
    Decides.REPLANS,
)
NEED_VECTOR = PolicyEntry(
    f"{_P}.need_vector.need_vector_policy:NeedVector",
    "schedule that covers a forecast quantile",
    Decides.AHEAD,
    observes=False,
    parameters=f"{_P}.need_vector.need_vector_options:NeedVectorOptions",
)
DS2 = PolicyEntry(f"{_P}.ds2.ds2_policy:Ds2", "DS2", parameters=_DS2, preset=_DS2_PRESET)
DS2_TIMELY = PolicyEntry(
    f"{_P}.ds2.ds2_policy:Ds2",
    "DS2, one number of workers per job",
    parameters=_DS2,
    preset={**_DS2_PRESET, "shared_workers": True},
)
CONTTUNE_A3 = PolicyEntry(f"{_P}.conttune.conttune_policy:ContTune", "ContTune, alpha 3", parameters=_CONTTUNE)
CONTTUNE_A0 = PolicyEntry(
    f"{_P}.conttune.conttune_policy:ContTuneAlpha0", "ContTune, alpha 0", parameters=_CONTTUNE, preset={"alpha": 0}
)
BIG_DS2 = PolicyEntry(
    f"{_P}.conttune.conttune_policy:BigDs2",
    "Big phase, then DS2",
    parameters=_CONTTUNE,
    preset={"acquisition": "linear", "always_big": True},
)
RANDOM_SEARCH = PolicyEntry(
    f"{_P}.baselines.random_search:RandomSearch",
    "random search",
    parameters=f"{_P}.baselines.baseline_options:RandomSearchOptions",
)
DRAGSTER_SADDLE = PolicyEntry(
    f"{_P}.dragster.dragster_policy:Dragster",
    "Dragster, online saddle point",
    reads_models=True,
    parameters=_DRAGSTER,
    preset={"target": "saddle"},
)
DRAGSTER_GRADIENT = PolicyEntry(
    f"{_P}.dragster.dragster_policy:Dragster",
    "Dragster, online gradient descent",
    reads_models=True,
    parameters=_DRAGSTER,
    preset={"target": "gradient"},
)
DHALION = PolicyEntry(
    f"{_P}.dhalion.dhalion_policy:Dhalion", "Dhalion", parameters=f"{_P}.dhalion.dhalion_options:DhalionOptions"
)
MDP = _learning_agent("CentralisedMdp", "centralised MDP", "CentralisedOptions")
RL_PLUS = _learning_agent("CentralisedRlPlus", "centralised RL, response model known", "CentralisedOptions")
RL = _learning_agent("CentralisedRl", "centralised RL", "CentralisedOptions")
RL_DECENTRALISED = _learning_agent("DecentralisedRl", "decentralised RL", "DecentralisedOptions")
PHOEBE = PolicyEntry(
    f"{_P}.phoebe.phoebe_policy:Phoebe",
    "Phoebe",
    Decides.AHEAD,
    needs_profile=True,
    parameters=f"{_P}.phoebe.phoebe_options:PhoebeOptions",
)
TWRES = PolicyEntry(
    f"{_P}.phoebe.twres:Twres",
    "TWRES",
    Decides.AHEAD,
    needs_profile=True,
    parameters=f"{_P}.phoebe.phoebe_options:TwresOptions",
)
DAEDALUS = PolicyEntry(
    f"{_P}.daedalus.daedalus_policy:Daedalus",
    "Daedalus",
    reads_models=True,
    parameters=f"{_P}.daedalus.daedalus_options:DaedalusOptions",
)
OPTSCALER = PolicyEntry(
    f"{_P}.optscaler.optscaler_policy:OptScaler",
    "OptScaler",
    Decides.REPLANS,
    parameters=f"{_P}.optscaler.optscaler_options:OptScalerOptions",
)
FLINK_AUTOSCALER = PolicyEntry(
    f"{_P}.flink_autoscaler.autoscaler_policy:FlinkAutoscaler", "Flink autoscaler, defaults", parameters=_AUTOSCALER
)
FLINK_AUTOSCALER_TUNED = PolicyEntry(
    f"{_P}.flink_autoscaler.autoscaler_policy:FlinkAutoscaler",
    "Flink autoscaler, tuned",
    parameters=_AUTOSCALER,
    preset={"utilization_target": 0.8, "target_utilization_boundary": 0.1},
)
REACTIVE = PolicyEntry(
    f"{_P}.baselines.reactive:Reactive",
    "Flink reactive mode with a CPU rule",
    parameters=f"{_P}.baselines.baseline_options:ReactiveOptions",
)
STATIC = PolicyEntry(
    f"{_P}.baselines.static:Static",
    "no rescale at all",
    observes=False,
    parameters=f"{_P}.baselines.baseline_options:StaticOptions",
)
