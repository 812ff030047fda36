"""Typed replies to the history of each job: observations, graphs, restarts and rescales."""
