"""The fleet's capacity curves as an MLflow model from code; it needs numpy and pandas, nothing of this project.

Input: columns cluster, job, operator, parallelism.  Output: mean_per_s and sd_per_s of each row, NaN where not known.
"""

from __future__ import annotations

import json
from typing import Any

import mlflow
import numpy as np
import pandas as pd


class FleetCapacity(mlflow.pyfunc.PythonModel):  # type: ignore[misc]
    """Reads capacities from the bundle's flat arrays (layout: models/bundle.py)."""

    def load_context(self, context: Any) -> None:
        """Read the arrays; nothing is unpickled."""
        with np.load(context.artifacts["bundle"], allow_pickle=False) as archive:
            header = json.loads(archive["header"].tobytes().decode())
            self.grid_count, self.mean, self.sd = archive["grid_count"], archive["mean_per_s"], archive["sd_per_s"]
        names = [(cluster, job, name) for cluster, job, result in header["index"] for name in result]
        self.rows = {name: row for row, name in enumerate(names)}

    # Without type hints on purpose: MLflow refuses those of frames; the signature is given where the model is logged.
    def predict(self, context, model_input, params=None):  # type: ignore[no-untyped-def]  # noqa: ARG002
        """Return capacity in records/s per input row."""
        keys = model_input[["cluster", "job", "operator"]].itertuples(index=False, name=None)
        row = np.array([self.rows.get(key, -1) for key in keys], np.int64)
        parallelism = model_input["parallelism"].to_numpy(np.int64)
        begin = np.cumsum(self.grid_count) - self.grid_count
        known = (row >= 0) & (parallelism >= 1) & (parallelism <= self.grid_count[row])
        result = pd.DataFrame({"mean_per_s": np.nan, "sd_per_s": np.nan}, index=model_input.index)
        at = begin[row[known]] + parallelism[known] - 1
        result.loc[known, "mean_per_s"], result.loc[known, "sd_per_s"] = self.mean[at], self.sd[at]
        return result


mlflow.models.set_model(FleetCapacity())
