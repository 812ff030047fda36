"""Models of Phoebe's profiling phase: capacity, latency and which latencies are normal (Section III-B)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from sklearn.cluster import Birch
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.linear_model import RidgeCV
from sklearn.preprocessing import RobustScaler, StandardScaler

from models.arrays import Floats, Ints

_ALPHAS = (0.1, 1.0, 10.0)
_MAX_DEPTH = 10
_TREES_PER_ROW = 3
# Scaling by the range from the minimum to the 1st percentile makes the normal latencies a narrow band.
_QUANTILE_RANGE = (0.0, 1.0)


@dataclass(frozen=True, slots=True)
class CapacityRegression:
    """T_max over the scale-out, a ridge regression: slope_per_s * s + intercept_per_s; alpha by cross-validation."""

    slope_per_s: float
    intercept_per_s: float
    alpha: float

    @classmethod
    def fit(cls, scale_out: npt.ArrayLike, capacity_per_s: npt.ArrayLike) -> CapacityRegression:
        """Fit on profiled scale-outs.

        Args:
            scale_out: (n,) workers.
            capacity_per_s: (n,) throughput under permanent backlog, records/s.
        """
        ridge = RidgeCV(alphas=_ALPHAS).fit(np.asarray(scale_out, float).reshape(-1, 1), np.asarray(capacity_per_s))
        return cls(float(ridge.coef_[0]), float(ridge.intercept_), float(ridge.alpha_))

    def per_s(self, scale_out: npt.ArrayLike) -> Floats:
        """Return (...) records/s for (...) workers."""
        return np.asarray(self.slope_per_s * np.asarray(scale_out, float) + self.intercept_per_s, float)


class LatencyClasses:
    """Two clusters of latencies, class 0 (normal) being the one with the smaller centroid."""

    def __init__(self, scaler: RobustScaler, birch: Birch, normal_label: int) -> None:
        self._scaler = scaler
        self._birch = birch
        self._normal_label = normal_label

    @classmethod
    def fit(cls, latency_ms: npt.ArrayLike) -> LatencyClasses:
        """Cluster (n,) measured latencies."""
        measured = np.asarray(latency_ms, float)
        scaler = RobustScaler(quantile_range=_QUANTILE_RANGE).fit(measured.reshape(-1, 1))
        birch = Birch(n_clusters=2).fit(_log_scale(scaler, measured))
        labels = np.asarray(birch.labels_)
        centroids = {int(label): float(measured[labels == label].mean()) for label in np.unique(labels)}
        return cls(scaler, birch, min(centroids, key=lambda label: centroids[label]))

    def classify(self, latency_ms: npt.ArrayLike) -> Ints:
        """Return (n,) classes of (n,) latencies, 0 normal and 1 abnormal."""
        labels = self._birch.predict(_log_scale(self._scaler, np.asarray(latency_ms, float)))
        return np.asarray(labels != self._normal_label, dtype=np.int64)


class ProfiledLatency:
    """Latency over scale-out and throughput, M_L: gradient boosted trees on standardised features."""

    def __init__(self, scaler: StandardScaler, trees: GradientBoostingRegressor) -> None:
        self._scaler = scaler
        self._trees = trees

    @classmethod
    def fit(
        cls, scale_out: npt.ArrayLike, throughput_per_s: npt.ArrayLike, latency_ms: npt.ArrayLike, *, seed: int = 0
    ) -> ProfiledLatency:
        """Fit on (n,) rows of the profile."""
        features = _pairs(scale_out, throughput_per_s)
        scaler = StandardScaler().fit(features)
        count = _TREES_PER_ROW * len(features)
        trees = GradientBoostingRegressor(max_depth=_MAX_DEPTH, n_estimators=count, random_state=seed)
        return cls(scaler, trees.fit(scaler.transform(features), np.asarray(latency_ms, float)))

    def latency_ms(self, scale_out: npt.ArrayLike, throughput_per_s: npt.ArrayLike) -> Floats:
        """Return (n,) latencies for (n,) scale-outs at (n,) or one throughput."""
        return np.asarray(self._trees.predict(self._scaler.transform(_pairs(scale_out, throughput_per_s))), float)


def _log_scale(scaler: RobustScaler, latency_ms: Floats) -> Floats:
    return np.asarray(np.log(np.maximum(1.0, scaler.transform(latency_ms.reshape(-1, 1)))), float)


def _pairs(scale_out: npt.ArrayLike, throughput_per_s: npt.ArrayLike) -> Floats:
    return np.stack(np.broadcast_arrays(np.asarray(scale_out, float), np.asarray(throughput_per_s, float)), axis=-1)
