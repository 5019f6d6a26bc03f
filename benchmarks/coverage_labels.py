"""Coverage of the interval of a score that people's labels correct.

Benchmarks are simulated: each video has its own difficulty, so that its questions go together;
people grade them; a judge repeats people's verdict but for a share of pairs, more of some videos
than of others, on which it says anything at all, or what flatters the captioner. A sample of pairs
is drawn as ``lmms-eval-captions label`` does, and the score is corrected as ``labels`` does. The
truth is the score by people over all videos like these. Beside it: the interval of the labels alone
and that of the judge alone. Exit code 1 where the corrected interval does not cover 93.5 to 96.5%,
or, at the papers' sizes and kappa 0.8, is not 30% narrower than that of the labels alone.

    python benchmarks/coverage_labels.py [--simulations 2000]
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal

import numpy as np

from lmms_eval_captions.analysis.label.page import draw
from lmms_eval_captions.metrics.ppi import Pairs, ppi_mean

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Places = NDArray[np.intp]

COVER: Final = (0.935, 0.965)
_JUDGE_ALONE: Final = 10
"""Simulations of which one tells how often the interval of the judge alone holds the truth."""
NARROWER: Final = 0.3
_ADDS: Final = {
    "accuracy": np.array([[1.0, 1.0], [0.0, 1.0], [0.0, 1.0], [0.0, 1.0]]),
    "precision": np.array([[1.0, 1.0], [1.0, 1.0], [0.0, 0.0], [0.0, 1.0]]),
}
"""Numerator and denominator of correct, partial, neutral and wrong verdicts in acc and pre.
``accuracy`` weighed by video is VDC's mean over videos."""


@dataclass(frozen=True, kw_only=True)
class Setting:
    """One kind of benchmark, judge and sample."""

    n_videos: int
    n_questions: int
    """In the mean; videos have from half to one and a half times as many."""
    kappa: float = 0.8
    """Agreement of judge and people if the judge errs without a bias."""
    correlation: float = 0.3
    """Correlation of people's verdicts on two questions of a video."""
    shares: tuple[float, ...] = (0.4, 0.15, 0.25, 0.2)
    """Shares of people's verdicts: correct, partial, neutral, wrong."""
    lenient: bool = False
    """True if the judge says ``correct`` when it errs, False if it errs at random."""
    metric: Literal["accuracy", "precision"] = "accuracy"
    by_video: bool = False
    """True if the metric is a mean over videos of means."""
    n_tasks: int = 1
    """Tasks whose plain mean the metric is; questions are of one of them each."""
    n_labels: int = 200
    must_be_narrower: bool = False


SETTINGS: Final = (
    Setting(n_videos=643, n_questions=16, must_be_narrower=True),
    Setting(n_videos=643, n_questions=16, metric="precision", must_be_narrower=True),
    Setting(n_videos=643, n_questions=16, lenient=True),
    Setting(n_videos=1027, n_questions=19, by_video=True, must_be_narrower=True),
    Setting(n_videos=1027, n_questions=19, by_video=True, n_tasks=5, must_be_narrower=True),
    Setting(n_videos=1027, n_questions=19, by_video=True, shares=(0.15, 0, 0.85, 0)),
    Setting(n_videos=1027, n_questions=19, correlation=0.0, must_be_narrower=True),
    Setting(n_videos=2000, n_questions=18, correlation=0.5, must_be_narrower=True),
    Setting(n_videos=643, n_questions=16, kappa=0.5),
    Setting(n_videos=643, n_questions=16, kappa=0.95),
    Setting(n_videos=200, n_questions=10),
    Setting(n_videos=643, n_questions=16, n_labels=50),
    Setting(n_videos=643, n_questions=16, kappa=0.9),
    # Its verdicts agree with people's to kappa 0.57.
    Setting(
        n_videos=1027, n_questions=19, by_video=True, shares=(0.4, 0, 0.6, 0), kappa=0.62,
        lenient=True,
    ),
)  # fmt: skip

_HEAD: Final = (
    "videos x questions", "metric", "kappa", "correlation", "labels", "cover",
    "labels alone", "judge alone", "narrower",
)  # fmt: skip


@dataclass(frozen=True)
class Measured:
    """Result of many simulations of a setting."""

    cover: float
    cover_of_labels: float
    cover_of_judge: float
    narrower: float
    """Share of the width of the labels' own interval that the corrected one saves, in the mean."""


def measure(setting: Setting, *, n_simulations: int, rng: np.random.Generator) -> Measured:
    """Simulate benchmarks of a setting."""
    truth = _truth(setting)
    hits, widths = np.zeros(2), np.zeros(2)
    judged = []
    for place in range(n_simulations):
        terms = _tasks(setting, _simulate(setting, rng), rng)
        found = [ppi_mean(*terms, scale=100.0, bounds=(0.0, 100.0), lam=k) for k in (None, 0.0)]
        ends = np.array([(one.low, one.high) for one in found], dtype=np.float64)
        hits += (ends[:, 0] <= truth) & (truth <= ends[:, 1])
        widths += np.diff(ends).ravel()
        if place % _JUDGE_ALONE == 0:
            by_judge = map(_all_by_judge, terms)
            alone = ppi_mean(*by_judge, scale=100.0, bounds=(0.0, 100.0), lam=0.0)
            judged.append(alone.low is not None and alone.low <= truth <= (alone.high or 0.0))
    cover = hits / n_simulations
    return Measured(cover[0], cover[1], float(np.mean(judged)), 1 - widths[0] / widths[1])


def _all_by_judge(pairs: Pairs) -> Pairs:
    """The pairs as if the judge were the people, who labelled everything."""
    return replace(pairs, people=pairs.judge, is_labelled=np.ones_like(pairs.is_labelled))


def _truth(setting: Setting) -> float:
    top, bottom = np.array(setting.shares) @ _ADDS[setting.metric]
    return float(100 * top / bottom)


def _simulate(setting: Setting, rng: np.random.Generator) -> Pairs:
    half = setting.n_questions // 2
    sizes = rng.integers(
        setting.n_questions - half, setting.n_questions + half + 1, setting.n_videos
    )
    videos = np.repeat(np.arange(setting.n_videos), sizes)
    people = _people(setting, videos, rng)
    judge = _judge(setting, videos, people, rng)
    is_labelled = np.zeros(len(videos), dtype=bool)
    is_labelled[draw(len(videos), setting.n_labels, int(rng.integers(2**31)))] = True
    adds = _ADDS[setting.metric]
    weights = 1 / sizes[videos] if setting.by_video else np.ones(len(videos))
    return Pairs(
        judge=adds[judge], people=adds[people], is_labelled=is_labelled, videos=videos,
        strata=np.zeros_like(videos), weights=weights,
    )  # fmt: skip


def _tasks(setting: Setting, pairs: Pairs, rng: np.random.Generator) -> list[Pairs]:
    """The pairs of each task, in which every video counts alike."""
    if setting.n_tasks == 1:
        return [pairs]
    task = rng.integers(setting.n_tasks, size=len(pairs.videos))
    terms = []
    for place in range(setting.n_tasks):
        here = task == place
        videos = pairs.videos[here]
        terms.append(
            Pairs(
                judge=pairs.judge[here], people=pairs.people[here],
                is_labelled=pairs.is_labelled[here], videos=videos, strata=pairs.strata[here],
                weights=1 / np.bincount(videos)[videos],
            )
        )  # fmt: skip
    return terms


def _people(setting: Setting, videos: Places, rng: np.random.Generator) -> Places:
    """Verdicts, whose shares differ from video to video."""
    shares = np.array(setting.shares)
    if setting.correlation:
        spread = 1 / setting.correlation - 1
        given = shares > 0
        of_videos = np.zeros((setting.n_videos, len(shares)))
        of_videos[:, given] = rng.dirichlet(shares[given] * spread, size=setting.n_videos)
    else:
        of_videos = np.tile(shares, (setting.n_videos, 1))
    bounds = of_videos.cumsum(axis=1)[videos, :-1]
    places: Places = (rng.random(len(videos))[:, None] > bounds).sum(axis=1)
    return places


def _judge(setting: Setting, videos: Places, people: Places, rng: np.random.Generator) -> Places:
    """The judge errs on a share of pairs that differs from video to video."""
    share = 1 - setting.kappa
    errs = rng.random(len(videos)) < rng.beta(2 * share, 2 * (1 - share), setting.n_videos)[videos]
    says = (1.0, 0.0, 0.0, 0.0) if setting.lenient else setting.shares
    judge: Places = people.copy()
    judge[errs] = rng.choice(len(says), size=int(errs.sum()), p=says)
    return judge


def _row(setting: Setting, measured: Measured) -> tuple[str, ...]:
    what: str = "vdc_acc" if setting.by_video else setting.metric
    if setting.n_tasks > 1:
        what = f"{what} of {setting.n_tasks} tasks"
    return (
        f"{setting.n_videos:,} x {setting.n_questions}",
        f"{what}, {setting.shares[0]:.0%} right",
        f"{setting.kappa:g}{' lenient' if setting.lenient else ''}",
        f"{setting.correlation:g}",
        str(setting.n_labels),
        f"{measured.cover:.1%}",
        f"{measured.cover_of_labels:.1%}",
        f"{measured.cover_of_judge:.1%}",
        f"{measured.narrower:.0%}",
    )


def problems_of(setting: Setting, measured: Measured) -> list[str]:
    """Return the bounds that a setting misses."""
    problems = []
    if not COVER[0] <= measured.cover <= COVER[1]:
        problems.append(f"covers {measured.cover:.1%}")
    if setting.must_be_narrower and measured.narrower < NARROWER:
        problems.append(f"is only {measured.narrower:.0%} narrower")
    return [f"{setting}: {problem}" for problem in problems]


def main() -> int:
    """Measure all settings and print them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--simulations", type=int, default=2000, metavar="N")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    rng = np.random.default_rng(arguments.seed)
    problems: list[str] = []
    _print(_HEAD)
    for setting in SETTINGS:
        measured = measure(setting, n_simulations=arguments.simulations, rng=rng)
        _print(_row(setting, measured))
        problems += problems_of(setting, measured)
    for problem in problems:
        print(f"problem: {problem}", file=sys.stderr)
    return 1 if problems else 0


def _print(row: tuple[str, ...]) -> None:
    """A row as soon as it is there."""
    widths = [max(len(name), 20 if index < 2 else 11) for index, name in enumerate(_HEAD)]
    cells = zip(row, "<<<<" + ">" * len(row), widths, strict=False)
    print("  ".join(f"{cell:{side}{width}}" for cell, side, width in cells), flush=True)


if __name__ == "__main__":
    sys.exit(main())
