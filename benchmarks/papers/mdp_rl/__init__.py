"""Decentralised auto-scaling by MDP and reinforcement learning (Russo Russo, ZEUS 2018): Table 1, Fig. 2a and 2b."""

from benchmarks.papers.mdp_rl.mdp_rl_tables import tables

__all__ = ["tables"]
