"""How a sample is drawn: until it is enough, without bias, and never in vain."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from lmms_eval_captions.lmms_eval_tasks.sampling.draw import FEW, Population, Sampled, sample

Floats = np.ndarray[Any, np.dtype[np.float64]]


def population(
    seed: int, *, n_captions: int = 200, n_each: int = 8, n_terms: int = 2
) -> Population:
    """Questions of captions of two tasks, with random numbers of their own."""
    n = n_captions * n_each
    captions = np.repeat(np.arange(n_captions), n_each)
    rng = np.random.default_rng(seed)
    return Population(
        terms=captions % n_terms,
        tasks=captions % n_terms,
        has_means=True,
        captions=captions,
        weights=np.full(n, 1 / n_each),
        control=None,
        keys=rng.random(n),
        scale=100.0,
        reach=1.0,
    )


def verdicts(questions: Population, *, unscored: float = 0.0) -> Floats:
    """Those of one judge run: of some captions more are right, some have none."""
    rng = np.random.default_rng(99)
    ease = rng.beta(1, 1, int(questions.captions.max()) + 1)[questions.captions]
    right = (rng.random(questions.n_questions) < ease).astype(float)
    pairs = np.stack([right, np.ones_like(right)], axis=-1)[:, None]
    pairs[rng.random(questions.n_questions) < unscored] = np.nan
    return pairs


def truth(questions: Population, pairs: Floats) -> float:
    """The mean over tasks of the weighed mean over all questions."""
    known = np.nan_to_num(pairs[:, 0])
    terms = [questions.terms == term for term in range(questions.n_terms)]
    sums = [(known[of] * questions.weights[of, None]).sum(axis=0) for of in terms]
    return 100 * float(np.mean([top / bottom for top, bottom in sums]))


def draw(
    questions: Population, pairs: Floats, half_width: float = 3.0, most_unscored: float = 0.0
) -> Sampled:
    """A sample of verdicts that are there; none is asked twice."""
    asked: set[int] = set()

    def ask(places: np.ndarray[Any, np.dtype[np.intp]]) -> Floats:
        assert not asked & set(places.tolist())
        asked.update(places.tolist())
        return np.asarray(pairs[places])

    found = sample(questions, ask, half_width=half_width, most_unscored=most_unscored)
    assert asked == set(np.flatnonzero(found.drawn.weights > 0).tolist())
    return found


def with_cheap(questions: Population, pairs: Floats, share: float) -> Population:
    """A cheap judge that says what the judge does of so many questions, and else anything."""
    rng = np.random.default_rng(5)
    same = rng.random(len(pairs)) < share
    said = np.where(same, pairs[:, 0, 0], rng.random(len(pairs)) < 0.5)
    return replace(questions, control=np.stack([said, np.ones(len(pairs))], axis=-1))


@pytest.mark.parametrize("share", [None, 0.0, 0.8], ids=["alone", "useless", "useful"])
def test_it_is_unbiased_and_covers(share: float | None) -> None:
    """Over 300 draws the mean is that of all verdicts, and 95% of the intervals hold it."""
    pairs = verdicts(population(0))
    scores, covers = [], []
    for seed in range(300):
        questions = population(seed)
        if share is not None:
            questions = with_cheap(questions, pairs, share)
        found = draw(questions, pairs)
        scores.append(found.score)
        covers.append(abs(found.score - truth(questions, pairs)) <= found.error.half_width())
        assert found.error.half_width() <= 3.0
        assert found.drawn.n_asked < questions.n_questions
    assert abs(np.mean(scores) - truth(population(0), pairs)) < 4 * np.std(scores) / np.sqrt(300)
    assert stats.binomtest(sum(covers), 300, 0.95).pvalue > 1e-3


def test_a_useful_cheap_judge_saves_questions_and_a_useless_one_costs_none() -> None:
    """What is asked falls with how much the two go together, and is the same where they do not."""
    pairs = verdicts(population(0))
    asked = {
        share: np.mean(
            [
                draw(
                    population(seed)
                    if share is None
                    else with_cheap(population(seed), pairs, share),
                    pairs,
                ).drawn.n_asked
                for seed in range(30)
            ]
        )
        for share in (None, 0.0, 0.9)
    }
    assert asked[0.9] < 0.75 * asked[None]
    assert asked[0.0] == pytest.approx(asked[None], rel=0.03)


def test_few_questions_are_all_asked() -> None:
    """Up to so many, nothing is left out, and nothing is left open."""
    questions = population(1, n_captions=FEW // 8)
    pairs = verdicts(questions)
    found = draw(questions, pairs)
    assert found.drawn.n_asked == questions.n_questions == FEW
    assert found.error.half_width() == 0
    assert found.score == pytest.approx(truth(questions, pairs))


def test_a_precision_out_of_reach_asks_all() -> None:
    """Where nearly all would be needed, all are asked: then the score is exact."""
    questions = population(1)
    pairs = verdicts(questions)
    found = draw(questions, pairs, half_width=0.05)
    assert (found.drawn.weights == 1).all()
    assert found.score == pytest.approx(truth(questions, pairs))


def test_a_cheap_judge_that_differs_rarely_is_not_taken_for_the_same() -> None:
    """With 1 in 200 verdicts other than the judge's, intervals still cover."""
    pairs = verdicts(population(0))
    covers = []
    for seed in range(200):
        questions = with_cheap(population(seed), pairs, 0.99)
        found = draw(questions, pairs, half_width=1.0)
        covers.append(abs(found.score - truth(questions, pairs)) <= found.error.half_width())
    assert stats.binomtest(sum(covers), 200, 0.95, alternative="less").pvalue > 1e-3


def test_unscored_questions_are_left_out() -> None:
    """The score is that of the questions with a verdict."""
    questions = population(3)
    pairs = verdicts(questions, unscored=0.05)
    scores = [draw(population(seed), pairs).score for seed in range(100)]
    error = np.std(scores) / 10
    assert abs(np.mean(scores) - truth(questions, pairs)) < 4 * error


def test_captions_whose_questions_lack_verdicts_count_as_much_as_others() -> None:
    """Where poor captions alone have unscored questions, their means stay in the mean of means."""
    questions = population(3, n_each=12)
    pairs = verdicts(questions)
    means = np.bincount(questions.captions, pairs[:, 0, 0]) / 12
    rng = np.random.default_rng(11)
    is_poor = (means < 0.3)[questions.captions]
    pairs[is_poor & (rng.random(questions.n_questions) < 0.4)] = np.nan
    scored = ~np.isnan(pairs[:, 0, 0])
    right = np.bincount(questions.captions, np.nan_to_num(pairs[:, 0, 0]))
    of_captions = right / np.bincount(questions.captions, scored)
    firsts = np.unique(questions.captions, return_index=True)[1]
    terms = questions.terms[firsts]
    full = 100 * float(np.mean([of_captions[terms == term].mean() for term in range(2)]))
    scores = [
        draw(replace(population(seed, n_each=12)), pairs, most_unscored=0.3).score
        for seed in range(60)
    ]
    assert abs(np.mean(scores) - full) < 4 * np.std(scores) / np.sqrt(60)


def test_a_judge_without_verdicts_is_asked_the_first_sample_alone() -> None:
    """Where a fifth has no verdict there will be no score, and no more is paid for."""
    questions = population(3)
    none = draw(questions, np.full((questions.n_questions, 1, 2), np.nan))
    some = draw(questions, verdicts(questions, unscored=0.5))
    for found in (none, some):
        assert np.isnan(found.score)
        assert found.drawn.n_asked == FEW
