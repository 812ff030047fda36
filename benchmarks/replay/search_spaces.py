"""What the search may change of each rival, and of our own constants: about five values each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from optuna import Trial

from benchmarks.replay.rivals.rival_options import CandidateForm

Suggest = Callable[[Trial], CandidateForm]
_DELAYS_S = (0, 900, 1800, 3600, 7200)
_CADENCES_S = (0, 600, 900, 1800)


def _choose(trial: Trial, name: str, values: Sequence[int]) -> int:
    return int(trial.suggest_categorical(name, list(values)))  # type: ignore[arg-type]


def _form(
    trial: Trial, base: str, parameters: Mapping[str, object], *, headroom: bool = True, delays: bool = True
) -> CandidateForm:
    return CandidateForm(
        base,
        parameters,
        headroom=round(trial.suggest_float("headroom", 0.0, 0.4), 3) if headroom else 0.0,
        scale_down_delay_s=_choose(trial, "scale_down_delay_s", _DELAYS_S) if delays else 0,
        cadence_s=_choose(trial, "cadence_s", _CADENCES_S) if delays else 0,
    )


def _share(trial: Trial, name: str, low: float, high: float) -> float:
    return round(float(trial.suggest_float(name, low, high)), 3)


def _suggest_ds2(trial: Trial) -> CandidateForm:
    own = {
        "minor_down": trial.suggest_int("minor_down", 0, 3),
        "activation_intervals": trial.suggest_int("activation_intervals", 1, 3),
    }
    return _form(trial, "ds2", own)


def _suggest_conttune(base: str) -> Suggest:
    def suggest(trial: Trial) -> CandidateForm:
        thresholds = {
            "decision": _share(trial, "thresholds.decision", 0.0, 0.3),
            "core_min": _share(trial, "thresholds.core_min", 0.5, 0.85),
            "core_max": _share(trial, "thresholds.core_max", 0.85, 0.95),
        }
        return _form(trial, base, {"thresholds": thresholds})

    return suggest


def _suggest_autoscaler(trial: Trial) -> CandidateForm:
    own = {
        "utilization_target": _share(trial, "utilization_target", 0.55, 0.95),
        "target_utilization_boundary": _share(trial, "target_utilization_boundary", 0.02, 0.3),
        "scale_down_interval_s": _choose(trial, "scale_down_interval_s", _DELAYS_S),
        "metrics_window_s": _choose(trial, "metrics_window_s", (300, 600, 900, 1800)),
        "catch_up_duration_s": _choose(trial, "catch_up_duration_s", (600, 1800, 3600)),
        "restart_time_s": _choose(trial, "restart_time_s", (60, 300)),
    }
    return CandidateForm("flink_autoscaler", own, cadence_s=_choose(trial, "cadence_s", _CADENCES_S))


def _suggest_reactive(trial: Trial) -> CandidateForm:
    own = {
        "target": _share(trial, "target", 0.35, 0.95),
        "tolerance": _share(trial, "tolerance", 0.02, 0.2),
        "stabilisation_s": _choose(trial, "stabilisation_s", (300, 900, 1800, 3600, 7200)),
    }
    return CandidateForm("reactive", own, cadence_s=_choose(trial, "cadence_s", _CADENCES_S))


def _suggest_dhalion(trial: Trial) -> CandidateForm:
    own = {
        "idle_utilisation": _share(trial, "idle_utilisation", 0.3, 0.9),
        "shrink": _share(trial, "shrink", 0.5, 0.95),
        "wait_s": float(_choose(trial, "wait_s", (300, 900, 1800, 3600))),
    }
    return _form(trial, "dhalion", own, headroom=False)


def _suggest_need_vector(trial: Trial) -> CandidateForm:
    own = {
        "min_step_s": _choose(trial, "min_step_s", (1800, 3600, 7200, 14_400)),
        "rescale_cost_slot_s": round(trial.suggest_float("rescale_cost_slot_s", 2000.0, 60_000.0, log=True)),
    }
    return _form(trial, "need_vector", own, delays=False)


def _suggest_phoebe(trial: Trial) -> CandidateForm:
    own = {
        "recovery_target_s": round(trial.suggest_float("recovery_target_s", 120.0, 3600.0, log=True)),
        "evaluation_interval_s": _choose(trial, "evaluation_interval_s", (600, 1800, 3600)),
        "rule": trial.suggest_categorical("rule", ["logged", "algorithm 1"]),
    }
    return _form(trial, "phoebe", own, delays=False)


def _suggest_twres(trial: Trial) -> CandidateForm:
    own = {
        "window_s": round(trial.suggest_float("window_s", 120.0, 1200.0)),
        "abnormal_latency_ms": round(trial.suggest_float("abnormal_latency_ms", 500.0, 30_000.0, log=True)),
    }
    return _form(trial, "twres", own, delays=False)


def _suggest_daedalus(trial: Trial) -> CandidateForm:
    own = {
        "recovery_max_s": round(trial.suggest_float("recovery_max_s", 120.0, 3600.0, log=True)),
        "forecast_s": _choose(trial, "forecast_s", (600, 900, 1800, 3600)),
        "desired_use": _share(trial, "desired_use", 0.6, 1.0),
        "scale_in_wait_s": _choose(trial, "scale_in_wait_s", (600, 1800, 3600, 7200)),
    }
    return _form(trial, "daedalus", own)


def _suggest_optscaler(trial: Trial) -> CandidateForm:
    own = {
        "target_use": _share(trial, "target_use", 0.5, 0.95),
        "confidence": _share(trial, "confidence", 0.5, 0.99),
        "feedback": _share(trial, "feedback", 0.0, 0.4),
        "interval_s": _choose(trial, "interval_s", (600, 900, 1800, 3600)),
        "horizon": _choose(trial, "horizon", (1, 3, 11)),
    }
    delay_s = _choose(trial, "scale_down_delay_s", _DELAYS_S)
    return CandidateForm("optscaler", own, scale_down_delay_s=delay_s)


def _suggest_dragster(trial: Trial) -> CandidateForm:
    own = {
        "headroom": _share(trial, "own_headroom", 0.0, 0.5),
        "slot_s": float(_choose(trial, "slot_s", (300, 600, 1800))),
        "prior_deviation": _share(trial, "prior_deviation", 0.05, 0.5),
    }
    return _form(trial, "dragster_saddle", own, headroom=False)


def _suggest_mdp(trial: Trial) -> CandidateForm:
    own = {
        "objective_utilisation": _share(trial, "objective_utilisation", 0.6, 0.95),
        "discount": _share(trial, "discount", 0.8, 0.99),
        "least_slots": _choose(trial, "least_slots", (12, 72, 288)),
    }
    return CandidateForm("mdp", own)


def _suggest_controller(trial: Trial) -> CandidateForm:
    target = _share(trial, "unplanned_utilisation_target", 0.7, 0.95)
    own = {
        "reactive.unplanned_utilisation_target": target,
        "reactive.unplanned_utilisation_max": round(min(target + trial.suggest_float("gap", 0.02, 0.2), 1.0), 3),
        "reactive.scale_down_margin": _share(trial, "scale_down_margin", 0.2, 3.0),
    }
    return CandidateForm("controller_alone", own)


def _suggest_schedule(trial: Trial) -> CandidateForm:
    own = {"headroom": _share(trial, "own_headroom", 0.0, 0.5)}
    return _form(trial, "weekly_schedule", own, headroom=False)


def _suggest_predictive(trial: Trial) -> CandidateForm:
    own = {
        "target_utilisation": _share(trial, "target_utilisation", 0.55, 0.95),
        "scale_in_wait_s": _choose(trial, "scale_in_wait_s", (900, 1800, 3600, 7200)),
        "buffer_s": _choose(trial, "buffer_s", (0, 300, 900)),
        "refresh_s": _choose(trial, "refresh_s", (3600, 21_600)),
    }
    return CandidateForm("predictive_scaling", own, cadence_s=_choose(trial, "cadence_s", _CADENCES_S))


def _suggest_cpu_steps(trial: Trial) -> CandidateForm:
    own = {
        "high": _share(trial, "high", 0.6, 0.95),
        "high_for_s": _choose(trial, "high_for_s", (300, 600, 900)),
        "low": _share(trial, "low", 0.05, 0.5),
        "low_for_s": _choose(trial, "low_for_s", (900, 3600, 7200, 21_600)),
    }
    return CandidateForm("cpu_steps", own)


def _suggest_planner(trial: Trial) -> CandidateForm:
    own = {
        "costs.rescale_margin": _share(trial, "rescale_margin", 1.0, 5.0),
        "costs.overload_late_share": _share(trial, "overload_late_share", 0.02, 0.15),
        "costs.overload_slots_share": _share(trial, "overload_slots_share", 0.05, 0.5),
        "costs.failure_margin": _share(trial, "failure_margin", 1.0, 3.0),
        "capacity.lower_bound_z": _share(trial, "lower_bound_z", 0.3, 1.6),
    }
    return CandidateForm("planner", own)


SPACES: Mapping[str, Suggest] = {
    "planner": _suggest_planner,
    "ds2": _suggest_ds2,
    "conttune_a3": _suggest_conttune("conttune_a3"),
    "flink_autoscaler": _suggest_autoscaler,
    "controller_alone": _suggest_controller,
    "weekly_schedule": _suggest_schedule,
    "predictive_scaling": _suggest_predictive,
    "cpu_steps": _suggest_cpu_steps,
    "reactive": _suggest_reactive,
    "need_vector": _suggest_need_vector,
    "twres": _suggest_twres,
    "big_ds2": _suggest_conttune("big_ds2"),
    "dhalion": _suggest_dhalion,
    "phoebe": _suggest_phoebe,
    "optscaler": _suggest_optscaler,
    "daedalus": _suggest_daedalus,
    "mdp": _suggest_mdp,
    "dragster_saddle": _suggest_dragster,
}
"""Candidate -> how a trial's form is drawn."""
