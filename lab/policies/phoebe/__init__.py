"""Phoebe: profiling, models of capacity, latency and recovery, and a scale-out that keeps recovery in its target.

The rule needs nothing heavy; the models of the profiling phase are in ``profile`` and the baseline TWRES in ``twres``.
"""
