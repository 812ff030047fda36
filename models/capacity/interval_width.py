"""Wider intervals for models that are less certain than they say."""

from __future__ import annotations

from dataclasses import replace

from models.bundle.job_models import JobModels


def widen_intervals(models: JobModels, factor: float) -> JobModels:
    """Return a job's models with the standard deviation of every capacity multiplied; at 1 they are as they were."""
    if factor == 1.0:
        return models
    curves = {name: replace(curve, sd_per_s=factor * curve.sd_per_s) for name, curve in models.capacity.items()}
    return replace(models, capacity=curves)
