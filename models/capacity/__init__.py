"""Capacity of an operator over its parallelism: a Gaussian process per operator, fitted in batches.

Source: Lian et al., "ContTune: continuous tuning by conservative Bayesian optimization for distributed stream data
processing systems", PVLDB 2023 [ContTune].
"""
