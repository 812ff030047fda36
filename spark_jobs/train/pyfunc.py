"""The fleet's models as an MLflow model from code; it needs numpy and pandas, nothing of this project.

A row asks about an operator at a parallelism, and about a load of it.  The answer has what plans use:

| column | meaning |
| --- | --- |
| mean_per_s, sd_per_s | expected capacity and its calibrated standard deviation, records/s |
| low_80_per_s, high_80_per_s, low_95_per_s, high_95_per_s | intervals of the capacity, records/s |
| place | where the parallelism lies: seen, between or beyond those at which the operator was observed |
| utilisation | load / expected capacity |
| latency_ms | of the job, were this its busiest operator; not known without a load |
| downtime_rescale_s, downtime_restart_s | expected downtime of the job, for the usual size of its state |
| recovery_rescale_s, recovery_restart_s | until the backlog of a stop is worked off, at this load and capacity |
| models_from | version of the training that made the job's models |
"""

from __future__ import annotations

import json
from typing import Any

import mlflow
import numpy as np
import pandas as pd

PLACES = np.array(["seen", "between", "beyond"])
Z = (1.2815515655446004, 1.959963984540054)  # half-widths of a normal distribution's intervals of 80% and 95%
SHOWN = 3


class FleetModels(mlflow.pyfunc.PythonModel):  # type: ignore[misc]
    """Reads models from the bundle's flat arrays (layout: models/bundle/fleet_bundle.py)."""

    def load_context(self, context: Any) -> None:
        """Read the arrays; nothing is unpickled."""
        with np.load(context.artifacts["bundle"], allow_pickle=False) as archive:
            self.arrays = {name: archive[name] for name in archive.files if name != "header"}
            header = json.loads(archive["header"].tobytes().decode())
        self.version = header["model_version"]
        names = [(cluster, job, name) for cluster, job, result in header["index"] for name in result]
        self.rows = {name: row for row, name in enumerate(names)}
        self.jobs = {(cluster, job) for cluster, job, _ in header["index"]}
        self.job_of = np.repeat(np.arange(len(header["index"])), self.arrays["operator_count"])

    def predict(
        self,
        context: Any,  # noqa: ARG002 - MLflow's
        model_input: pd.DataFrame,
        params: dict[str, Any] | None = None,
    ) -> pd.DataFrame:
        """Return one row per input row.

        Args:
            context: of MLflow.
            model_input: cluster, job, operator, parallelism; the operator's load_per_s, NaN or absent: not asked for.
            params: ``unknown``: "error" (default), or "null" for rows of nulls where something is not known.

        Raises:
            ValueError: a row names what the models do not know; the message says which and why.
        """
        keys = list(model_input[["cluster", "job", "operator"]].itertuples(index=False, name=None))
        row = np.array([self.rows.get(key, -1) for key in keys], np.int64)
        parallelism = model_input["parallelism"].to_numpy(np.int64)
        grid = np.append(self.arrays["grid_count"], 0)[row]  # -1 finds the zero at the end
        known = (row >= 0) & (parallelism >= 1) & (parallelism <= grid)
        if not known.all() and (params or {}).get("unknown", "error") != "null":
            raise ValueError(self._explain(keys, parallelism, grid, np.flatnonzero(~known)))
        if "load_per_s" in model_input:
            load_per_s = model_input["load_per_s"].to_numpy(float)
        else:
            load_per_s = np.full(len(row), np.nan)
        answered = self._answer(row[known], parallelism[known], load_per_s[known])
        return pd.DataFrame(answered, index=model_input.index[known]).reindex(model_input.index)

    def _explain(self, keys: list[tuple[str, str, str]], parallelism: Any, grid: Any, rows: Any) -> str:
        reasons = []
        for at in rows[:SHOWN].tolist():
            cluster, job, operator = keys[at]
            if (cluster, job) not in self.jobs:
                why = "the job is in no training"
            elif keys[at] not in self.rows:
                known = sorted(name for c, j, name in self.rows if (c, j) == (cluster, job))
                why = f"the job has no such operator; it has {', '.join(known)}"
            elif not grid[at]:
                why = "its capacity was never measured"
            else:
                why = f"parallelism {parallelism[at]} is not in 1..{grid[at]}"
            reasons.append(f"{cluster}/{job}, {operator}: {why}")
        more = f"; and {len(rows) - SHOWN} more" if len(rows) > SHOWN else ""
        text = f"{len(rows)} of {len(keys)} rows are not known to model {self.version}: {'; '.join(reasons)}{more}"
        return f'{text} (params={{"unknown": "null"}} gives nulls for them)'

    def _answer(self, row: Any, parallelism: Any, load_per_s: Any) -> dict[str, Any]:
        """Return the columns of rows that are known."""
        arrays = self.arrays
        at = (np.cumsum(arrays["grid_count"]) - arrays["grid_count"])[row] + parallelism - 1
        place = self._place(row, parallelism)
        scale = self._scale(row, place)
        mean, deviation = arrays["mean_per_s"][at], arrays["sd_per_s"][at]
        half = [deviation * scale[:, level] * Z[level] for level in range(2)]
        job = self.job_of[row]
        downtime = [arrays["recovery"][job, column] for column in (0, 2)]
        replay = [np.zeros(len(row)), arrays["recovery"][job, 4]]
        recovery = [_recover(*each, load_per_s, mean) for each in zip(downtime, replay, strict=True)]
        made_by = arrays.get("taken_from", np.full(len(arrays["operator_count"]), ""))[job]
        return {
            "mean_per_s": mean,
            "sd_per_s": deviation * scale[:, 0],
            "low_80_per_s": mean - half[0],
            "high_80_per_s": mean + half[0],
            "low_95_per_s": mean - half[1],
            "high_95_per_s": mean + half[1],
            "place": PLACES[place],
            "utilisation": load_per_s / mean,
            "latency_ms": self._latency_ms(job, load_per_s / mean),
            "downtime_rescale_s": downtime[0],
            "downtime_restart_s": downtime[1],
            "recovery_rescale_s": recovery[0],
            "recovery_restart_s": recovery[1],
            "models_from": [text or self.version for text in made_by.tolist()],
        }

    def _place(self, row: Any, parallelism: Any) -> Any:
        """Return (n,) places of PLACES."""
        ends = np.cumsum(self.arrays["observed_count"])
        result = np.full(len(row), 2)
        for at, (operator, wanted) in enumerate(zip(row.tolist(), parallelism.tolist(), strict=True)):
            observed = self.arrays["observed"][
                ends[operator] - self.arrays["observed_count"][operator] : ends[operator]
            ]
            if wanted in observed:
                result[at] = 0
            elif len(observed) and observed.min() <= wanted <= observed.max():
                result[at] = 1
        return result

    def _scale(self, row: Any, place: Any) -> Any:
        """Return (n, levels) factors of the intervals."""
        own = self.arrays.get("interval_scale", np.ones((3, 2)))
        if "taken_set" not in self.arrays:
            return own[place]
        return np.concatenate([own[None], self.arrays["taken_scale"]])[self.arrays["taken_set"][row] + 1, place]

    def _latency_ms(self, job: Any, utilisation: Any) -> Any:
        count = self.arrays["knot_count"]
        ends, result = np.cumsum(count), np.full(len(job), np.nan)
        for one in np.unique(job[np.isfinite(utilisation)]).tolist():
            span, mine = slice(ends[one] - count[one], ends[one]), (job == one) & np.isfinite(utilisation)
            if count[one]:
                at = self.arrays["knots"][span], self.arrays["latency_at_knots_ms"][span]
                result[mine] = np.interp(utilisation[mine], *at)
        return result


def _recover(downtime_s: Any, replay_s: Any, load_per_s: Any, capacity_per_s: Any) -> Any:
    """Return R = D + load (I + D) / (capacity - load) of Phoebe, infinite where the load is not below the capacity."""
    with np.errstate(divide="ignore", invalid="ignore"):
        caught_up_s = downtime_s + load_per_s * (replay_s + downtime_s) / (capacity_per_s - load_per_s)
    result = np.where(capacity_per_s > load_per_s, caught_up_s, np.inf)
    return np.where(np.isfinite(load_per_s), result, np.nan)


mlflow.models.set_model(FleetModels())
