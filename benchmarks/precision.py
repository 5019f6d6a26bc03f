"""Does a sampled score hold what it promises, and what does it ask?

All verdicts of a synthetic judge on VDC's real 96,825 questions are drawn once; then runs with
``LMMS_CAPTIONS_PRECISION`` are replayed over them, each with random numbers of its own. Counted is
how often the interval covers the score that all verdicts give, how many questions are asked, and
whether the scores are off on average.

    LMMS_CAPTIONS_DATA=DATA python benchmarks/precision.py            # 1,000 runs of each case
    LMMS_CAPTIONS_DATA=DATA python benchmarks/precision.py --runs 50

What is real are the questions: how many there are of each video in each aspect. Of the judge,
accuracies are AuroraCap-7B's (Table 7 of its paper), and two verdicts on one caption correlate by
0.1, a guess on the low side: the more a caption's questions go together, the fewer are needed. Of
each question there is a margin by which a caption answers it; the judge says yes above 0, the cheap
judge sees the margin with an error, and its grade (0-2 for no, 3-5 for yes) is the larger the
clearer it sees it: what VDC's second step asks for. Cases without grades are beside them: then all
verdicts of the cheap judge are as likely to be wrong.

Exit code 1 where an interval covers too often or too seldom, more is asked than promised, or the
mean is off.
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import dataclass
from math import sqrt
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from scipy.special import ndtri

from lmms_eval_captions.judges.settings import read_data_settings
from lmms_eval_captions.lmms_eval_tasks.sampling.design import sample
from lmms_eval_captions.lmms_eval_tasks.sampling.population import Population
from lmms_eval_captions.lmms_eval_tasks.vdc.data import read_questions
from lmms_eval_captions.model_wrappers.caption_files.columns import ASPECTS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Places = NDArray[np.intp]

ACCURACIES: Final = {
    "camera": 0.4350,
    "short": 0.3207,
    "background": 0.3592,
    "main_object": 0.3902,
    "detailed": 0.4130,
}
"""AuroraCap-7B's, AuroraCap (arXiv 2410.03051), Table 7."""
HALF_WIDTH: Final = 0.5
COVERED: Final = (0.935, 0.965)
_LATENT: Final = 0.16
"""Correlation of the margins of a caption's questions, which gives verdicts one of 0.1."""


@dataclass(frozen=True)
class Case:
    """A cheap judge, or none."""

    name: str
    correlation: float | None
    """Of the two judges' verdicts, ``None`` without a cheap judge."""
    has_grades: bool = False
    most_asked: float | None = None
    """Largest part of the questions that may be asked of the judge, ``None`` for any."""
    accuracy: float | None = None
    """Of all aspects, ``None`` for AuroraCap-7B's."""


CASES: Final = (
    Case("no cheap judge", None, most_asked=0.26),
    Case("cheap judge, correlation 0", 0.0, has_grades=True, most_asked=0.26),
    Case("cheap judge, correlation 0.7", 0.7, has_grades=True, most_asked=0.16),
    Case("cheap judge, correlation 0.9", 0.9, has_grades=True, most_asked=0.06),
    Case("the same without grades, 0.7", 0.7),
    Case("the same without grades, 0.9", 0.9),
    Case("no cheap judge, half are right", None, accuracy=0.5),
)


class Questions(NamedTuple):
    """Of all aspects, arrays of shape (n_questions,)."""

    aspects: Places
    captions: Places
    weights: Floats
    """One over the number of a caption's questions."""


class Verdicts(NamedTuple):
    """Of two judges, arrays of shape (n_questions,): 1 for yes, 0 for no."""

    judge: Floats
    cheap: Floats
    grades: Places
    """The cheap judge's, 0 to 5."""


class Replayed(NamedTuple):
    """One run."""

    score: float
    half_width: float
    asked: float
    """Part of the questions."""


def main(argv: list[str] | None = None) -> int:
    """Replay and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=1000, help="of each case")
    runs = parser.parse_args(argv).runs
    questions = real_questions()
    print(
        f"{len(questions.aspects):,} questions, {runs:,} runs of each case, within "
        f"{HALF_WIDTH:g} points\n\n"
        "| case | correlation | score of all | covers | asked | most asked | half width | mean off "
        "by (standard error) | as promised |\n|---|---|---|---|---|---|---|---|---|",
        flush=True,
    )
    started_s = time.monotonic()
    kept = [_row(case, questions, runs) for case in CASES]
    print(f"\n{time.monotonic() - started_s:.0f} s")
    return 0 if all(kept) else 1


def real_questions() -> Questions:
    """VDC's, from ``LMMS_CAPTIONS_DATA``."""
    settings, aspects, captions = read_data_settings(), list[int](), list[int]()
    for number, aspect in enumerate(ASPECTS):
        for pairs in read_questions(settings, aspect).values():
            caption = captions[-1] + 1 if captions else 0
            aspects += [number] * len(pairs)
            captions += [caption] * len(pairs)
    places = np.array(captions)
    return Questions(np.array(aspects), places, 1.0 / np.bincount(places)[places])


def drawn_verdicts(case: Case, questions: Questions, rng: np.random.Generator) -> Verdicts:
    """All verdicts of both judges, once."""
    n, n_captions = len(questions.captions), int(questions.captions.max()) + 1
    margins = sqrt(_LATENT) * rng.normal(size=n_captions)[questions.captions]
    margins += sqrt(1 - _LATENT) * rng.normal(size=n)
    shares = np.array([case.accuracy or ACCURACIES[aspect] for aspect in ASPECTS])
    bounds = ndtri(1 - shares)[questions.aspects]
    errors = rng.normal(size=n)
    judge = margins > bounds
    low, high = 0.0, 1.0
    seen = margins
    for _ in range(40):
        truth = (low + high) / 2
        seen = sqrt(truth) * margins + sqrt(1 - truth) * errors - bounds
        is_more = np.corrcoef(judge, seen > 0)[0, 1] > (case.correlation or 0.0)
        low, high = (low, truth) if is_more else (truth, high)
    grades = np.zeros(n, dtype=np.intp)
    for side in (False, True):
        is_in = (seen > 0) == side
        clear = np.abs(seen[is_in])
        steps = np.searchsorted(np.quantile(clear, (1 / 3, 2 / 3)), clear)
        grades[is_in] = 3 + steps if side else 2 - steps
    return Verdicts(judge.astype(np.float64), (seen > 0).astype(np.float64), grades)


def replay(
    case: Case, questions: Questions, verdicts: Verdicts, rng: np.random.Generator
) -> Replayed:
    """One run over verdicts that are there."""
    n = len(verdicts.judge)
    ones = np.ones(n)
    pairs = np.stack([verdicts.judge, ones], axis=-1)[:, None]
    groups, control = questions.aspects, None
    if case.correlation is not None:
        groups = verdicts.grades if case.has_grades else verdicts.cheap.astype(np.intp)
        control = np.stack([verdicts.cheap, ones], axis=-1)
    population = Population(
        terms=questions.aspects,
        tasks=questions.aspects,
        has_means=True,
        captions=questions.captions,
        groups=groups,
        weights=questions.weights,
        control=control,
        pilot_keys=rng.random(n),
        main_keys=rng.random(n),
        scale=100.0,
        reach=1.0,
    )
    found = sample(population, lambda places: pairs[places], half_width=HALF_WIDTH)
    return Replayed(found.score, found.error.half_width(), found.drawn.n_asked / n)


def score_of_all(questions: Questions, judge: Floats) -> float:
    """What every verdict together gives: the mean over aspects of means over captions of means."""
    n_captions = int(questions.captions.max()) + 1
    of_captions = np.bincount(questions.captions, judge * questions.weights, n_captions)
    firsts = np.unique(questions.captions, return_index=True)[1]
    aspects = questions.aspects[firsts]
    return 100.0 * float((np.bincount(aspects, of_captions) / np.bincount(aspects)).mean())


def _row(case: Case, questions: Questions, runs: int) -> bool:
    """Replay a case and print it; whether it is as promised."""
    verdicts = drawn_verdicts(case, questions, np.random.default_rng(1))
    truth = score_of_all(questions, verdicts.judge)
    replayed = [
        replay(case, questions, verdicts, np.random.default_rng([2, run])) for run in range(runs)
    ]
    scores, half_widths, asked = (np.array(column) for column in zip(*replayed, strict=True))
    covers = float((np.abs(scores - truth) <= half_widths).mean())
    off, error = float(scores.mean()) - truth, float(scores.std(ddof=1)) / sqrt(runs)
    # Of few runs the share says little.
    chance = 2.6 * sqrt(0.05 * 0.95 / runs) if runs < 1000 else 0.0
    is_kept = (
        COVERED[0] - chance <= covers <= COVERED[1] + chance
        and (case.most_asked is None or float(asked.mean()) <= case.most_asked)
        and abs(off) <= 3.3 * error
        and float(half_widths.max()) <= HALF_WIDTH
    )
    both = "-"
    if case.correlation is not None:
        both = f"{np.corrcoef(verdicts.judge, verdicts.cheap)[0, 1]:.2f}"
    print(
        f"| {case.name} | {both} | {truth:.2f} | {covers:.1%} | {asked.mean():.1%} | "
        f"{asked.max():.1%} | {half_widths.mean():.3f} | {off:+.4f} ({error:.4f}) | "
        f"{'yes' if is_kept else 'NO'} |",
        flush=True,
    )
    return is_kept


if __name__ == "__main__":
    sys.exit(main())
