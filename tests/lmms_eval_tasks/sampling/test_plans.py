"""Plans of sampled questions: unbiased, with intervals that cover, and never asked in vain."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from math import sqrt
from statistics import fmean, pstdev
from types import SimpleNamespace
from typing import Any, Final

import numpy as np
import pytest
from loguru import logger
from scipy import stats

from lmms_eval_captions.judges.errors import JudgeStoppedError
from lmms_eval_captions.judges.settings import read_settings
from lmms_eval_captions.lmms_eval_tasks.sampling.plans import FEW, PendingCaption, SamplingPlans
from lmms_eval_captions.lmms_eval_tasks.sampling.weights import Estimate, estimate, weighted_run
from lmms_eval_captions.lmms_eval_tasks.task_names import all_benchmarks

SETTINGS: Final = read_settings({"LMMS_CAPTIONS_PRECISION": "3", "LMMS_CAPTIONS_MAX_UNSCORED": "0"})
LABELS: Final = {
    "vdc": ("yes", "no"),
    "vcapsbench": ("positive", "negative", "unanswerable"),
}
"""Verdicts on a benchmark whose headline is a mean over videos, and on one of pooled questions."""


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    logger.disable("lmms_eval_captions")
    yield
    logger.enable("lmms_eval_captions")


@dataclass
class World:
    """Captions of two tasks, and all verdicts on them; ``None`` is unscored."""

    name: str
    verdicts: Sequence[Sequence[str | None]]

    def __post_init__(self) -> None:
        benchmark = all_benchmarks()[self.name]
        self.metric = benchmark.metrics[benchmark.headline]
        self.benchmark = benchmark.variant(metrics={benchmark.headline: self.metric})

    @property
    def truth(self) -> float:
        """The mean over tasks with all questions asked."""
        return fmean(self.metric.score(self.verdicts[task::2], []) for task in (0, 1))

    def answers(self, places: Sequence[tuple[int, int]]) -> Future[Any]:
        """Return the judgements on a caption's question each."""
        future: Future[Any] = Future()
        verdicts = [self.verdicts[index][question] for index, question in places]
        future.set_result(
            [[SimpleNamespace(verdict=v, reason=None if v else "unreadable")] for v in verdicts]
        )
        return future

    def sampled(
        self, seed: object, settings: Any = SETTINGS, cheap: World | None = None
    ) -> tuple[Estimate, set[tuple[int, int]]]:
        """Return the headline by a sample, and the asked questions, none of them twice."""
        asked: list[tuple[int, int]] = []

        def submit(chains: Sequence[Any]) -> Future[Any]:
            asked.extend(chains)
            return self.answers(chains)

        pending = []
        for index, of_caption in enumerate(self.verdicts):
            places: Any = [(index, question) for question in range(len(of_caption))]
            caption = PendingCaption[Any](
                task=f"task{index % 2}",
                video_id=f"{seed} {index}",
                names=[f"Q{question}" for _, question in places],
                n_runs=1,
                chains=places,
                submit=submit,
                cheap=None if cheap is None else cheap.answers(places),
            )
            pending.append(caption)
        plans = SamplingPlans()
        for wait in [plans.hold(self.benchmark, caption, settings) for caption in pending]:
            wait()
        captions = []
        for caption, said in zip(pending, self.verdicts, strict=True):
            sample = caption.sample
            assert sample is not None
            seen = [v if w else None for v, w in zip(said, sample.weights, strict=True)]
            runs = [weighted_run(self.metric, self.benchmark.headline, seen, sample)]
            task = int(caption.task[-1])
            captions.append((task, task, runs))
        assert len(set(asked)) == len(asked)
        return estimate(self.metric, captions), set(asked)


def world(name: str = "vdc", *, n_captions: int = 120, share: float = 0.0) -> World:
    """Captions with eight questions each; of poor captions, such a share is unscored."""
    rng, labels = np.random.default_rng(1), LABELS[name]
    verdicts = []
    for ease in rng.dirichlet(np.ones(len(labels)), n_captions):
        is_unscored = rng.random(8) < (share if ease[0] < 0.5 else 0.0)
        drawn = rng.choice(labels, 8, p=ease)
        verdicts.append([None if u else str(v) for u, v in zip(is_unscored, drawn, strict=True)])
    return World(name, verdicts)


def other_judge(judged: World, agreement: float) -> World:
    """Return a judge that says the same of so many questions, and else anything."""
    rng, labels = np.random.default_rng(5), LABELS[judged.name]
    verdicts = [
        [v if rng.random() < agreement else str(rng.choice(labels)) for v in caption]
        for caption in judged.verdicts
    ]
    return World(judged.name, verdicts)


@pytest.mark.parametrize(
    ("name", "agreement"), [("vdc", None), ("vcapsbench", None), ("vdc", 0.0), ("vcapsbench", 0.8)]
)
def test_it_is_unbiased_and_covers(name: str, agreement: float | None) -> None:
    """Over 150 draws the mean is that of all verdicts, and 95% of the intervals hold it."""
    judged = world(name)
    cheap = None if agreement is None else other_judge(judged, agreement)
    runs = [judged.sampled(seed, cheap=cheap) for seed in range(150)]
    scores = [headline.score for headline, _ in runs]
    covers = [abs(h.score - judged.truth) <= h.half_width for h, _ in runs]
    assert all(0 < h.half_width <= 3.0 and len(asked) < 960 for h, asked in runs)
    assert abs(fmean(scores) - judged.truth) < 4 * pstdev(scores) / sqrt(len(scores))
    assert stats.binomtest(sum(covers), len(covers), 0.95).pvalue > 1e-3


def test_a_cheap_judge_that_differs_rarely_is_not_taken_for_the_same() -> None:
    """With 1 in 200 verdicts other than the judge's, intervals still cover."""
    judged = world()
    cheap, settings = other_judge(judged, 0.99), replace(SETTINGS, precision=1.0)
    headlines = [judged.sampled(seed, settings, cheap)[0] for seed in range(100)]
    covers = [abs(h.score - judged.truth) <= h.half_width for h in headlines]
    assert stats.binomtest(sum(covers), 100, 0.95, alternative="less").pvalue > 1e-3


def test_a_useful_cheap_judge_saves_questions_and_a_useless_one_costs_none() -> None:
    """Fewer questions are asked, the more the two judges agree."""
    judged, settings = world(), replace(SETTINGS, precision=2.0)

    def mean_asked(cheap: World | None) -> float:
        return fmean(len(judged.sampled(seed, settings, cheap)[1]) for seed in range(10))

    alone = mean_asked(None)
    assert mean_asked(other_judge(judged, 0.9)) < 0.8 * alone
    assert mean_asked(other_judge(judged, 0.0)) == pytest.approx(alone, rel=0.03)


@pytest.mark.parametrize(("n_captions", "precision"), [(FEW // 8, 30.0), (120, 0.05)])
def test_few_questions_and_a_precision_out_of_reach_ask_all(
    n_captions: int, precision: float
) -> None:
    """The score is then exact, with or without a cheap judge."""
    judged, settings = world(n_captions=n_captions), replace(SETTINGS, precision=precision)
    for cheap in (None, other_judge(judged, 0.9)):
        headline, asked = judged.sampled(0, settings, cheap)
        assert (len(asked), headline.half_width) == (8 * n_captions, 0)
        assert headline.score == pytest.approx(judged.truth)


def test_a_larger_sample_contains_the_smaller_one() -> None:
    """One of two processes asks for less, as the mean over both has a narrower interval."""
    judged = world()
    _, small = judged.sampled(0)
    _, large = judged.sampled(0, replace(SETTINGS, precision=2.0))
    headline, fewer = judged.sampled(0, replace(SETTINGS, precision=2.5, world_size=2))
    assert fewer <= small < large
    assert 2.5 < headline.half_width <= 2.5 * sqrt(2)


@pytest.mark.parametrize("name", LABELS)
def test_unscored_questions_are_left_out(name: str) -> None:
    """The score is that of the questions with a verdict, each caption counting as much."""
    judged = world(name, share=0.2)
    scores = [judged.sampled(seed)[0].score for seed in range(60)]
    assert abs(fmean(scores) - judged.truth) < 4 * pstdev(scores) / sqrt(len(scores))


def test_a_judge_without_verdicts_is_asked_the_first_sample_alone() -> None:
    """With a fifth unscored there will be no score, and no more is paid for."""
    for share in (1.0, 0.6):
        assert len(world(share=share).sampled(0)[1]) == FEW


def test_a_cheap_judge_without_verdicts_stops_before_the_judge_is_asked() -> None:
    """The message names the setting."""
    judged = world()
    with pytest.raises(JudgeStoppedError, match=r"CHEAP_JUDGE.*asked none"):
        judged.sampled(0, cheap=world(share=0.6))
