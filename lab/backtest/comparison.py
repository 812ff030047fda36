"""Policies replayed on a job's own history, each learning from a cold start before the days that are scored."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from include.policy_catalogue import catalogue
from include.settings import Settings
from lab.backtest.stretch import Stretch
from lab.backtest.subject import BIN_S, DAY_BINS, HOUR_BINS, HistoryError, Subject
from lab.replay.scores import Score, compute_score

FLOOR = "clairvoyant"
# What every job is compared with: no policies that one could choose.
REFERENCES = ("static_max", FLOOR)


@dataclass(frozen=True, slots=True)
class Spans:
    """How a history of T bins is used, in bins: ``before`` is only known to forecasts, then comes the replay.

    Attributes:
        before: what forecasts know when the replay begins.
        learning: replayed, not scored.
        scored: replayed and scored, to the end of the history.
    """

    before: int
    learning: int
    scored: int

    @classmethod
    def of(cls, start_s: int, bins: int, settings: Settings, days: int | None = None) -> Spans:
        """Divide a history; a short one gives a third of itself to learning, and scores the rest.

        The replay begins on a full hour, and ``days``, by default ``backtest.days``, are scored.

        Raises:
            HistoryError: it is shorter than ``backtest.history_days_min``.
        """
        options = settings.backtest
        if bins < options.history_days_min * DAY_BINS:
            raise HistoryError(
                f"{bins / DAY_BINS:.1f} days of history are too short to compare policies: "
                f"{options.history_days_min:g} are needed (backtest.history_days_min)"
            )
        learning = min(round(options.learning_days * DAY_BINS), bins // 3)
        replayed = min(bins, learning + (days or options.days) * DAY_BINS)
        before = bins - replayed
        before += -(start_s // BIN_S + before) % HOUR_BINS
        return cls(before, learning, bins - before - learning)

    @property
    def days(self) -> int:
        """Whole days that are scored."""
        return self.scored // DAY_BINS

    @property
    def whole_days(self) -> slice:
        """Bins of the replay that are of these days: the last ones."""
        last = self.learning + self.scored
        return slice(last - self.days * DAY_BINS, last)


@dataclass(frozen=True, slots=True)
class Result:
    """What the scored days would have cost under one policy; no score where it failed."""

    policy: str
    score: Score | None
    error: str | None = None


def compare(subject: Subject, policies: Sequence[str], settings: Settings) -> tuple[Spans, list[Result]]:
    """Replay policies on a job's history; a policy that fails has a result with its error.

    All of them meet the same failures and noise, drawn from a seed of the job's name.

    Args:
        subject: the job.
        policies: names of candidate policies.
        settings: of the pipeline.

    Raises:
        HistoryError: the history is too short.
        SpecError: the replica cannot be built, since no operator has a capacity model.
        ConditionsError: the settings' cadence cannot be replayed.
    """
    spans = Spans.of(subject.start_s, len(subject.rates_per_s), settings)
    stretch = Stretch.of(subject, spans.before, settings)
    run = stretch.replay({name: stretch.isolate(name) for name in policies}, [subject.seed()])
    scored, prices = slice(spans.learning, spans.learning + spans.scored), stretch.conditions.prices

    def score(name: str) -> Score:
        row = run.rows[name].start
        return compute_score(run.ledger, row, scored, window_s=BIN_S, slots_max=subject.slots_max, prices=prices)

    return spans, [Result(name, None if name in run.errors else score(name), run.errors.get(name)) for name in policies]


def recommend(results: Sequence[Result], in_use: str, margin: float) -> str | None:
    """Return the cheapest policy; one in use keeps its place unless another is cheaper by more than a margin.

    Args:
        results: of one job; what no job can have and policies that failed are no candidates.
        in_use: name of the job's policy.
        margin: share of the cost in use that another must save.
    """
    costs = {one.policy: one.score.cost for one in results if one.score is not None and one.policy in catalogue()}
    if not costs:
        return None
    cheapest = min(costs, key=lambda name: costs[name])
    if in_use in costs and costs[cheapest] >= (1.0 - margin) * costs[in_use]:
        return in_use
    return cheapest
