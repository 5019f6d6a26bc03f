"""Is the stated error of keeping the best clips the actual one?

Clips are drawn whose true scores are known, judged by a few questions each, and the best of them
are kept. Stated is what :func:`keep_error` makes of the scores and of their halves; actual, how
many of the kept are not among the truly best.

    python benchmarks/keep_error.py                       # 100,000 clips of each case
    python benchmarks/keep_error.py --clips 20000 --runs 100

The first table has the mean over the clips of a case, the second how often intervals of few clips
cover. Where the stated share is off by more than 2 percentage points, the table has a mark. Exit
code 1 where it is off by more than :func:`model_error` in a case that is not named as one, or an
interval covers too seldom.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from scipy.special import expit, ndtr

from lmms_eval_captions.metrics.keep_error import keep_error, model_error
from lmms_eval_captions.metrics.kept_clips import kept_clips
from lmms_eval_captions.metrics.score_reliability import score_reliability

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lmms_eval_captions.metrics.interval import Interval
    from lmms_eval_captions.metrics.keep_error import KeepError

    Floats = NDArray[np.float64]
    Right = NDArray[np.bool_]

KEEPS: Final = (0.2, 0.5, 0.8, 0.9, 0.95)
MARKED: Final = 0.02
"""What the stated share is off by, of the kept clips, where it has a mark."""
COVERED: Final = 0.93
"""Share of intervals of the error that cover at least."""
RELIABILITY_COVERED: Final = 0.91
"""The same of the reliability's, from 30 clips on."""
FEW: Final = (30, 100, 1000)
"""Clips in the sets of the second table."""


class Drawn(NamedTuple):
    """Clips, in arrays of shape (n_clips,)."""

    true: Floats
    """What endlessly many such questions would give."""
    scores: Floats
    first: Floats
    """The score by half of the questions."""
    second: Floats


Draw = Callable[[np.random.Generator, int], Drawn]
"""Draws so many clips."""


@dataclass(frozen=True, slots=True)
class Case:
    """Clips and how they are judged."""

    name: str
    draw: Draw
    first_share: float = 0.5
    most_off: Mapping[float, float] = field(default_factory=lambda: MappingProxyType({}))
    """Share that is kept to what the stated error may be off by, where that is more than
    :func:`model_error`."""


def _true_scores(shape: str, rng: np.random.Generator, n: int) -> Floats:
    """True scores whose distribution has such a shape."""
    is_other = rng.random(n) < _OTHERS.get(shape, 0.0)
    (a, b), (other_a, other_b) = _BETAS[shape]
    found: Floats = np.where(is_other, rng.beta(other_a, other_b, n), rng.beta(a, b, n))
    return np.where(is_other, 1.0, found) if shape == "many perfect" else found


_BETAS: Final = {
    "U": ((0.5, 0.5), (1, 1)),
    "flat": ((1, 1), (1, 1)),
    "bell": ((6, 6), (1, 1)),
    "mean 0.8": ((4, 1), (1, 1)),
    "narrow, mean 0.8": ((20, 5), (1, 1)),
    "a fifth bad": ((18, 2), (3, 9)),
    "half near 1": ((6, 6), (30, 2)),
    "many perfect": ((5, 2), (1, 1)),
}
"""Shape to the parameters of its beta distribution, and to those of the other clips'."""
_OTHERS: Final = {"a fifth bad": 0.2, "half near 1": 0.5, "many perfect": 0.3}
"""Shape to the share of the other clips."""


def _judged(true: Floats, right: Right) -> Drawn:
    """By the share of the questions, shape (n_clips, n_questions), that are right."""
    return Drawn(true, right.mean(axis=1), right[:, 0::2].mean(axis=1), right[:, 1::2].mean(axis=1))


def questions(shape: str, n_questions: int) -> Draw:
    """Independent questions of one difficulty."""

    def draw(rng: np.random.Generator, n: int) -> Drawn:
        true = _true_scores(shape, rng, n)
        return _judged(true, rng.random((n, n_questions)) < true[:, None])

    return draw


def same_questions(n_questions: int) -> Draw:
    """The same questions of all clips, some hard, some easy."""

    def draw(rng: np.random.Generator, n: int) -> Drawn:
        difficulties = 1.5 * np.linspace(-1.2, 1.2, n_questions)[_mixed(n_questions)]
        chances = expit(rng.normal(1.6, 1.2, n)[:, None] + difficulties)
        return _judged(chances.mean(axis=1), rng.random(chances.shape) < chances)

    return draw


def _mixed(n: int) -> NDArray[np.intp]:
    """Places in an order that gives both halves easy and hard ones."""
    return np.argsort(np.arange(n) // 2 % 2 * n + np.arange(n), kind="stable")


def aspects(n_questions: int) -> Draw:
    """A question about each aspect; clips differ in what they are good at."""

    def draw(rng: np.random.Generator, n: int) -> Drawn:
        margins = rng.normal(1.6, 1.0, n)[:, None] + rng.normal(0, 1.5, (n, n_questions))
        chances = expit(margins)
        return _judged(chances.mean(axis=1), rng.random(chances.shape) < chances)

    return draw


def varied(shape: str, fewest: int, most: int) -> Draw:
    """Clips with different numbers of questions."""

    def draw(rng: np.random.Generator, n: int) -> Drawn:
        true = _true_scores(shape, rng, n)
        is_asked = np.arange(most) < rng.integers(fewest, most + 1, n)[:, None]
        right = is_asked & (rng.random((n, most)) < true[:, None])
        shares = [
            right[:, part].sum(axis=1) / is_asked[:, part].sum(axis=1)
            for part in (slice(None), slice(0, None, 2), slice(1, None, 2))
        ]
        return Drawn(true, *shares)

    return draw


def quiz(shape: str, n_questions: int) -> Draw:
    """The F1 of answers: clips differ in how many questions they answer and how many rightly."""

    def draw(rng: np.random.Generator, n: int) -> Drawn:
        right_of_answered = _true_scores(shape, rng, n)
        answered = 0.6 + 0.4 * rng.beta(4, 1, n)
        is_answered = rng.random((n, n_questions)) < answered[:, None]
        is_right = is_answered & (rng.random((n, n_questions)) < right_of_answered[:, None])
        f1s = [
            2 * is_right[:, part].sum(axis=1) / (is_answered[:, part] + 1.0).sum(axis=1)
            for part in (slice(None), slice(0, None, 2), slice(1, None, 2))
        ]
        return Drawn(2 * answered * right_of_answered / (answered + 1), *f1s)

    return draw


def ratings(shape: str, *, runs: int, steps: int, noise: float) -> Draw:
    """The mean of judge runs, each a rating of ``steps`` + 1 values; the halves are of runs."""

    def draw(rng: np.random.Generator, n: int) -> Drawn:
        quality, errors = _true_scores(shape, rng, n), noise * (0.5 + rng.random(n))
        seen = quality[:, None] + errors[:, None] * rng.normal(size=(n, runs))
        given = np.clip(np.round(seen * steps), 0, steps) / steps
        bounds = (np.arange(steps) + 0.5) / steps
        true = sum(1 - ndtr((bound - quality) / errors) for bound in bounds) / steps
        halves = given[:, : runs // 2].mean(axis=1), given[:, runs // 2 :].mean(axis=1)
        return Drawn(np.asarray(true), given.mean(axis=1), *halves)

    return draw


def _cases() -> tuple[Case, ...]:
    # Of clips that are all perfect, which are kept makes no difference.
    ties, too_low = {"many perfect": {0.2: 0.35}}, {0.8: 0.03}
    shares = [
        Case(f"{shape}, {n} questions", questions(shape, n), most_off=ties.get(shape, {}))
        for shape in _BETAS
        for n in (5, 10, 20)
    ]
    others = [
        *(Case(f"same {n} questions of all", same_questions(n)) for n in (5, 10, 20)),
        *(
            Case(f"{n} questions, each another aspect", aspects(n), most_off=too_low)
            for n in (5, 10)
        ),
        Case("mean 0.8, 2 to 10 questions", varied("mean 0.8", 2, 10)),
        Case("mean 0.8, 4 to 20 questions", varied("mean 0.8", 4, 20)),
        Case("a fifth bad, 3 to 30 questions", varied("a fifth bad", 3, 30)),
        *(Case(f"mean 0.8, F1 of {n}", quiz("mean 0.8", n)) for n in (5, 10, 20)),
        Case("a fifth bad, F1 of 10", quiz("a fifth bad", 10)),
    ]
    rated = [
        Case(
            f"{shape}, {runs} ratings {values}, noise {noise:g}",
            ratings(shape, runs=runs, steps=steps, noise=noise),
            first_share=runs // 2 / runs,
        )
        for shape in ("flat", "mean 0.8", "a fifth bad")
        for runs in (2, 3)
        for values, steps in (("1-5", 4), ("0-100", 100))
        for noise in (0.05, 0.15)
    ]
    return (*shares, *others, *rated)


CASES: Final = _cases()


def reliability_of(case: Case, drawn: Drawn) -> Interval:
    """As it is stated."""
    return score_reliability(drawn.first, drawn.second, first_share=case.first_share)


def stated(case: Case, drawn: Drawn, keep: float) -> KeepError:
    """What is said without the truth."""
    return keep_error(drawn.scores, reliability_of(case, drawn), keep=keep)


def actual(drawn: Drawn, keep: float) -> float:
    """The share of the kept clips whose true score is below the lowest of the truly best."""
    ids = [str(place) for place in range(len(drawn.scores))]
    kept = kept_clips(ids, drawn.scores, keep=keep).mask
    n_kept = int(kept.sum())
    lowest = np.partition(drawn.true, -n_kept)[-n_kept]
    return float((drawn.true[kept] < lowest).mean())


def main(argv: Sequence[str] | None = None) -> int:
    """Draw and print both tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--clips", type=int, default=100_000, help="of each case")
    parser.add_argument("--runs", type=int, default=400, help="sets of few clips")
    chosen = parser.parse_args(argv)
    started_s = time.monotonic()
    columns = " | ".join(f"keep {keep:g}" for keep in KEEPS) + " | as promised |"
    print(
        f"{chosen.clips:,} clips of each case: stated % (actual %)\n\n| case | reliability (true) "
        f"| {columns}\n{'|---' * (3 + len(KEEPS))}|",
        flush=True,
    )
    kept = [_row(case, chosen.clips) for case in CASES]
    print(
        f"\n{chosen.runs} sets of few clips: how often the interval covers\n\n| case | clips | "
        f"reliability | {columns}\n{'|---' * (4 + len(KEEPS))}|",
        flush=True,
    )
    kept += [_row_of_few(case, n, chosen.runs) for case in CASES[::7] for n in FEW]
    print(f"\n{time.monotonic() - started_s:.0f} s")
    return 0 if all(kept) else 1


def _row(case: Case, n_clips: int) -> bool:
    """Print a case; whether it is as promised."""
    drawn = case.draw(np.random.default_rng(1), n_clips)
    reliability = reliability_of(case, drawn)
    cells, is_kept = list[str](), True
    for keep in KEEPS:
        said, is_so = stated(case, drawn, keep).share, actual(drawn, keep)
        is_marked = abs(said - is_so) > MARKED
        cells.append(f"{100 * said:.1f} ({100 * is_so:.1f})" + " !" * is_marked)
        is_kept &= abs(said - is_so) <= case.most_off.get(keep, model_error(keep))
    print(
        f"| {case.name} | {reliability.value:.3f} ({true_reliability(drawn):.3f}) | "
        f"{' | '.join(cells)} | {'yes' if is_kept else 'NO'} |",
        flush=True,
    )
    return is_kept


def true_reliability(drawn: Drawn) -> float:
    """The squared correlation of scores and true scores."""
    return float(np.corrcoef(drawn.true, drawn.scores)[0, 1] ** 2)


def _row_of_few(case: Case, n_clips: int, runs: int) -> bool:
    """Print how often intervals cover; whether they do often enough."""
    whole = reliability_of(case, case.draw(np.random.default_rng(1), 200_000)).value
    covers = np.zeros((runs, 1 + len(KEEPS)))
    for run in range(runs):
        drawn = case.draw(np.random.default_rng([2, run]), n_clips)
        found = reliability_of(case, drawn)
        covers[run, 0] = found.low is not None and found.low <= whole <= (found.high or 0.0)
        for place, keep in enumerate(KEEPS, start=1):
            error = keep_error(drawn.scores, found, keep=keep)
            covers[run, place] = error.low <= actual(drawn, keep) <= error.high
    shares = covers.mean(axis=0)
    # Of few runs the share says little.
    chance = 2.6 * np.sqrt(0.05 * 0.95 / runs)
    is_promised = np.array([True, *(keep not in case.most_off for keep in KEEPS)])
    least = np.array([RELIABILITY_COVERED, *(COVERED for _ in KEEPS)])
    is_kept = bool((shares >= least - chance)[is_promised].all())
    cells = " | ".join(f"{share:.1%}" for share in shares)
    print(f"| {case.name} | {n_clips:,} | {cells} | {'yes' if is_kept else 'NO'} |", flush=True)
    return is_kept


if __name__ == "__main__":
    sys.exit(main())
