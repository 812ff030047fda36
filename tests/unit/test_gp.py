"""The batched Gaussian process: exact, independent of its batch, warm as good as cold, accurate as scikit-learn's."""

import warnings

import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

from benchmarks.pipeline.training import recent_means
from lab.policies.tuning.acquisition_functions import distance_to_observed, smallest_sufficient
from models.capacity.capacity_samples import CapacitySamples, pack
from models.capacity.fit import RATIOS, fit_kernel
from models.capacity.gp import kernel, predict, profile, whiten

GRID = np.arange(1, 65.0)

# Means per parallelism of the capacities that ContTune's README lists for its Q1 mapper (facts; records/s), and the
# posterior mean that its published hyperparameters give.
CONTTUNE_Q1 = {
    1: 529573.168,
    2: 966817.362,
    4: 1829695.58,
    6: 2535502.762,
    7: 2936888.579,
    8: 3118477.883,
    10: 3721099.184,
    13: 4624714.166,
    15: 4967828.259,
    20: 6350677.045,
    21: 6465249.805,
    25: 7089387.307,
    26: 7476391.84,
}
CONTTUNE_MU = """529573 966817 1482808 1829696 2114437 2535503 2936889 3118478 3294828 3721099 4212586 4487858 4624714
4811839 4967828 4936083 4869248 5118681 5747932 6350677 6465250 6130152 5912355 6299948 7089387 7476392"""


def synthetic(operators: int, points: int, repeats: int, seed: int = 0) -> tuple[np.ndarray, ...]:
    """Owner, parallelism, capacity and the true curve (B, 64) of operators that scale as g p / (1 + a (p - 1))."""
    random = np.random.default_rng(seed)
    g, a = random.uniform(1e3, 1e6, operators), random.uniform(0.005, 0.06, operators)
    truth = g[:, None] * GRID / (1 + a[:, None] * (GRID - 1))
    observed = np.array([np.sort(random.choice(np.arange(1, 65), points, replace=False)) for _ in range(operators)])
    owner, at = np.repeat(np.arange(operators), points * repeats), np.repeat(observed.ravel(), repeats)
    noise = random.uniform(0.01, 0.08, operators)[owner] * random.standard_normal(len(owner))
    return owner, at, truth[owner, at - 1] * (1 + noise), truth


def packed(owner: np.ndarray, at: np.ndarray, capacity: np.ndarray) -> CapacitySamples:
    return pack(*recent_means(owner, at, np.arange(len(at), dtype=float), capacity, keep=50))


def predictions(samples: CapacitySamples) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    result = fit_kernel(samples, samples.parallelism.max(axis=1))
    mean, sd = predict(
        samples,
        result.spectrum,
        GRID,
        ratio=result.ratio,
        slope=result.slope,
        noise_variance=result.noise_variance,
        slope_precision=result.slope_precision,
    )
    return mean, sd, result.spectrum.length_scale


def test_only_the_most_recent_samples_count() -> None:
    at, timestamp = np.array([2, 2, 2, 4, 2]), np.array([3.0, 1.0, 4.0, 0.0, 2.0])
    owner, p, count, mean, squares = recent_means(
        np.zeros(5, int), at, timestamp, np.array([30.0, 99, 20, 7, 10]), keep=3
    )
    assert (owner.tolist(), p.tolist(), count.tolist(), mean.tolist()) == ([0, 0], [2, 4], [3, 1], [20, 7])
    assert squares.tolist() == [200, 0]


def test_capacities_that_are_not_positive_are_refused() -> None:
    for mean in (0.0, -1.0, np.nan):
        with pytest.raises(ValueError, match="positive"):
            pack([0], [1], [1], [mean], [0.0])


def test_conttunes_published_posterior_and_choice() -> None:
    """Length scale 2.25, residual sd 492,133.45, jitter 1e-8 (absolute) and a zero mean, as its README has them."""
    at, mean = np.array(list(CONTTUNE_Q1)), np.array(list(CONTTUNE_Q1.values()))
    samples = pack(np.zeros(13, int), at, np.ones(13), mean, np.zeros(13))
    spectrum = whiten(samples, np.array([2.25]))
    # The module's noise grows with capacity; with noise as small as this jitter its shape does not matter.
    ratio = np.array([492133.45**2 / 1e-8])
    mu, _ = predict(samples, spectrum, np.arange(1, 27.0), ratio=ratio, slope=np.zeros(1), noise_variance=np.ones(1))
    np.testing.assert_allclose(mu[0], np.array(CONTTUNE_MU.split(), float), rtol=1e-3)
    chosen = smallest_sufficient(mu[0], 4e6)
    assert (int(chosen), int(distance_to_observed(chosen, at))) == (11, 1)
    assert smallest_sufficient(mu, [8e6]).tolist() == [0]


def test_count_mean_and_spread_give_the_posterior_of_all_single_samples() -> None:
    """Against the dense formulas over every sample, for fixed hyperparameters."""
    owner, at, capacity, _ = synthetic(1, 6, 4)
    samples = packed(owner, at, capacity)
    scale, noise = samples.scale_per_s[0], dict(zip(samples.parallelism[0], samples.noise_scale[0], strict=True))
    length, ratio, s2 = 4.0, 30.0, 0.002
    x, y = at.astype(float), capacity / scale
    covariance = s2 * (ratio * kernel(x[:, None] - x, np.array(length)) + np.diag([noise[p] ** 2 for p in x]))
    cross = s2 * ratio * kernel(GRID[:, None] - x, np.array(length))
    inverse = np.linalg.inv(covariance)
    slope = (x @ inverse @ y) / (x @ inverse @ x)
    mean = GRID * slope + cross @ inverse @ (y - slope * x)
    rest = GRID - cross @ inverse @ x
    variance = s2 * ratio - np.einsum("ij,jk,ik->i", cross, inverse, cross) + rest**2 / (x @ inverse @ x)

    spectrum = whiten(samples, np.array([length]))
    result = profile(samples, spectrum, np.array([[ratio]]))
    assert result.slope[0, 0] == pytest.approx(slope, rel=1e-9)
    ours, sd = predict(
        samples,
        spectrum,
        GRID,
        ratio=np.array([ratio]),
        slope=result.slope[:, 0],
        noise_variance=np.array([s2]),
        slope_precision=result.slope_precision[:, 0],
    )
    np.testing.assert_allclose(ours[0], mean * scale, rtol=1e-8)
    np.testing.assert_allclose(sd[0], np.sqrt(variance) * scale, rtol=1e-6)


def test_profile_is_the_restricted_likelihood_of_all_single_samples() -> None:
    """Differences of log likelihood over r, against the dense formula with the same prior of the noise."""
    owner, at, capacity, _ = synthetic(1, 7, 3, seed=3)
    samples = packed(owner, at, capacity)
    noise = dict(zip(samples.parallelism[0], samples.noise_scale[0], strict=True))
    x, y = at.astype(float), capacity / samples.scale_per_s[0]

    def dense(ratio: float) -> float:
        covariance = ratio * kernel(x[:, None] - x, np.array(5.0)) + np.diag([noise[p] ** 2 for p in x])
        inverse = np.linalg.inv(covariance)
        precision = x @ inverse @ x
        residual = y @ inverse @ y - (x @ inverse @ y) ** 2 / precision
        freedom = len(x) - 1 + 2
        return -0.5 * (
            freedom * np.log((residual + 2 * 0.03**2) / freedom) + np.linalg.slogdet(covariance)[1] + np.log(precision)
        )

    ratios = np.array([[0.1, 3.0, 500.0]])
    ours = profile(samples, whiten(samples, np.array([5.0])), ratios).log_likelihood[0]
    np.testing.assert_allclose(np.diff(ours), np.diff([dense(ratio) for ratio in ratios[0]]), rtol=1e-8)


def test_an_operator_fits_alike_alone_and_in_a_batch_with_padding() -> None:
    owner, at, capacity, _ = synthetic(6, 9, 2, seed=1)
    keep = (owner % 2 == 0) | (at < 40)  # odd operators have fewer points: padding
    together = packed(owner[keep], at[keep], capacity[keep])
    mean, sd, _ = predictions(together)
    for b in range(6):
        mine = keep & (owner == b)
        alone_mean, alone_sd, _ = predictions(packed(np.zeros(mine.sum(), int), at[mine], capacity[mine]))
        np.testing.assert_allclose(mean[b], alone_mean[0], rtol=1e-7)
        np.testing.assert_allclose(sd[b], alone_sd[0], rtol=1e-6)


def test_one_parallelism_gives_the_line_through_it() -> None:
    mean, sd, _ = predictions(pack([0], [4], [5], [400.0], [80.0]))
    np.testing.assert_allclose(mean[0], 100 * GRID)
    assert (np.diff(sd[0]) > 0).all()


def test_length_scale_stays_in_its_bounds() -> None:
    owner, at, capacity, _ = synthetic(40, 5, 1, seed=2)
    samples = packed(owner, at, capacity)
    _, _, length = predictions(samples)
    assert (length >= 1.5).all()
    assert (length <= np.maximum(1.5, samples.parallelism.max(axis=1) / 2) + 1e-9).all()


def test_ratios_stay_in_their_bounds() -> None:
    owner, at, capacity, _ = synthetic(60, 10, 5, seed=4)
    samples = packed(owner, at, capacity)
    result = fit_kernel(samples, samples.parallelism.max(axis=1))
    assert ((result.ratio >= RATIOS[0]) & (result.ratio <= RATIOS[-1])).all()


def sklearn_means(owner: np.ndarray, at: np.ndarray, capacity: np.ndarray, operators: int) -> np.ndarray:
    """The plain loop: one GaussianProcessRegressor per operator on the residual of its least-squares line."""
    result = []
    for b in range(operators):
        x, y = at[owner == b].astype(float), capacity[owner == b]
        slope, scale = (x @ y) / (x @ x), y.max()
        model = GaussianProcessRegressor(
            ConstantKernel(0.01, (1e-6, 1e2)) * RBF(4.0, (1.5, x.max() / 2)) + WhiteKernel(1e-3, (1e-7, 1.0))
        )
        model.fit(x[:, None], (y - slope * x) / scale)
        result.append(model.predict(GRID[:, None]) * scale + slope * GRID)
    return np.array(result)


def test_as_accurate_as_sklearn() -> None:
    owner, at, capacity, truth = synthetic(600, 10, 5, seed=5)
    mean, _, _ = predictions(packed(owner, at, capacity))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = sklearn_means(owner, at, capacity, 12)
    inside = np.zeros((12, 64), bool)
    for b in range(12):
        inside[b, at[owner == b].min() - 1 : at[owner == b].max()] = True
    error = [np.mean((np.abs(result[:12] - truth[:12]) / truth[:12])[inside]) for result in (mean, theirs)]
    assert error[0] <= error[1] * 1.02
