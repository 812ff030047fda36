"""ContTune: continuous tuning of parallelism by the Big-small algorithm and conservative Bayesian optimisation (CBO).

Source: Lian et al., "ContTune: Continuous Tuning by Conservative Bayesian Optimization for Distributed Stream Data
Processing Systems", PVLDB 16(13), 2023 [ContTune].  Its controller, acquisition code and thresholds are not public.
"""
