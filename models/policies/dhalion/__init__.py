"""Dhalion, the baseline of DS2's and Dragster's evaluations: rules that scale one operator at a time."""

from models.policies.dhalion.dhalion_policy import Dhalion, Memory
from models.policies.dhalion.rules import Action, Change, Options, Reading, Symptom, resolve

__all__ = ["Action", "Change", "Dhalion", "Memory", "Options", "Reading", "Symptom", "resolve"]
