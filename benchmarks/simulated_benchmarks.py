"""Benchmarks whose videos, questions and judge are drawn, so that the true scores are known.

Each video has shares of its own for what a judge may say of its questions, drawn around those of
the captioner (Dirichlet), so that two questions of a video go together with a given correlation.
A captioner's verdicts are drawn from these shares; then each is exchanged for another, any alike,
with the chance of a flip. The true score is the one expected over videos *and* flips. A second
captioner has the same videos and questions, and shares most of what makes a video hard.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from lmms_eval_captions.lmms_eval_tasks.records import CaptionRecord
from lmms_eval_captions.lmms_eval_tasks.task_names import all_benchmarks

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lmms_eval_captions.lmms_eval_tasks.benchmark import Metric
    from lmms_eval_captions.lmms_eval_tasks.ratios import Ratios

    Floats = NDArray[np.float64]
    Counts = NDArray[np.int64]

_SHARED_BY_TASKS: Final = 0.4
_SHARED_BY_CAPTIONERS: Final = 0.7
"""Parts of what makes a video hard that are the same in all tasks and for both captioners, and for
both captioners in a task."""
_MEAN_TOKENS: Final = 285.0
"""GPT-4o's captions, by its acc and con (VidCapBench, Table 3)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A benchmark with what a judge says of two captioners."""

    name: str
    benchmark: str
    metrics: tuple[str, ...]
    labels: tuple[Any, ...]
    """Verdicts on a question, the best first."""
    shares: tuple[float, ...]
    """Shares of the verdicts, before flips, as in the benchmark's paper."""
    others: tuple[float, ...]
    """The same of the other captioner."""
    questions: tuple[int, int] = (4, 36)
    """Fewest and most questions of a video."""
    n_tasks: int = 1
    """Tasks over the same videos whose plain mean is the score."""


CASES: Final = (
    Case(name="vdc task", benchmark="vdc", metrics=("vdc_acc",), labels=("yes", "no"),
         shares=(0.40, 0.60), others=(0.42, 0.58)),
    Case(name="vdc task, graded", benchmark="vdc", metrics=("vdc_score",),
         labels=(5.0, 4.0, 3.0, 2.0, 1.0, 0.0), shares=(0.20, 0.15, 0.10, 0.10, 0.10, 0.35),
         others=(0.22, 0.15, 0.10, 0.10, 0.10, 0.33)),
    Case(name="vdc, five tasks", benchmark="vdc", metrics=("vdc_acc",), labels=("yes", "no"),
         shares=(0.40, 0.60), others=(0.41, 0.59), n_tasks=5),
    Case(name="vdc_rouge task", benchmark="vdc_rouge", metrics=("vdc_rouge",),
         labels=(1.0, 0.5, 0.2, 0.0), shares=(0.15, 0.20, 0.20, 0.45),
         others=(0.17, 0.20, 0.20, 0.43)),
    Case(name="vdc_vdd task", benchmark="vdc_vdd", metrics=("vdd_acc",), labels=("yes", "no"),
         shares=(0.40, 0.60), others=(0.42, 0.58), questions=(1, 1)),
    Case(name="vdc_vdd task, graded", benchmark="vdc_vdd", metrics=("vdd_score",),
         labels=(5.0, 4.0, 3.0, 2.0, 1.0, 0.0), shares=(0.20, 0.15, 0.10, 0.10, 0.10, 0.35),
         others=(0.22, 0.15, 0.10, 0.10, 0.10, 0.33), questions=(1, 1)),
    Case(name="vidcapbench", benchmark="vidcapbench", metrics=("acc", "pre", "cov", "con"),
         labels=("correct", "partial", "neutral", "wrong"), shares=(0.168, 0.326, 0.140, 0.366),
         others=(0.171, 0.308, 0.126, 0.395)),
    Case(name="vcapsbench", benchmark="vcapsbench", metrics=("ar", "ir", "cr"),
         labels=("positive", "negative", "unanswerable"), shares=(0.665, 0.076, 0.259),
         others=(0.631, 0.078, 0.291)),
    Case(name="capquiz", benchmark="capquiz", metrics=("capf1", "capp", "capr"),
         labels=("true_positive", "false_positive", "false_negative"),
         shares=(0.672, 0.185, 0.143), others=(0.661, 0.189, 0.150)),
    Case(name="msvd_eval, a dimension", benchmark="msvd_eval", metrics=("accuracy",),
         labels=(100.0, 80.0, 60.0, 40.0, 20.0), shares=(0.30, 0.35, 0.20, 0.10, 0.05),
         others=(0.33, 0.35, 0.18, 0.09, 0.05), questions=(1, 1)),
    Case(name="msvd_eval", benchmark="msvd_eval", metrics=("avg",),
         labels=(100.0, 80.0, 60.0, 40.0, 20.0), shares=(0.30, 0.35, 0.20, 0.10, 0.05),
         others=(0.33, 0.35, 0.18, 0.09, 0.05), questions=(4, 4)),
    Case(name="own clips, rated 1 to 5", benchmark="own_rating", metrics=("overall",),
         labels=(5.0, 4.0, 3.0, 2.0, 1.0), shares=(0.30, 0.35, 0.20, 0.10, 0.05),
         others=(0.33, 0.35, 0.18, 0.09, 0.05), questions=(1, 1)),
)  # fmt: skip
"""Every metric that a judge decides; the dimensions of MSVD-Eval are one function, and so are those
of own clips."""


class Design(NamedTuple):
    """Design of simulated benchmarks."""

    n_videos: int
    correlation: float
    """Correlation of two verdicts on a video, before flips, in [0, 1)."""
    flips: float
    """Chance that the judge says something else, in [0, 1)."""
    n_runs: int = 1


class Drawn(NamedTuple):
    """Simulated benchmarks of two captioners; ``counts`` and ``tokens`` have one entry for each."""

    counts: tuple[Counts, Counts]
    """Verdicts by label, shape (n_samples, n_runs, n_videos, n_tasks, n_labels)."""
    tokens: tuple[Floats, Floats]
    """Tokens of each caption, shape (n_samples, n_videos)."""


def with_best(case: Case, share: float) -> Case:
    """The case where the best label has this share, the others what is left in proportion."""
    rest = (1 - share) / (1 - case.shares[0])
    shares = (share, *(rest * one for one in case.shares[1:]))
    return replace(case, name=f"{case.name}, best {share:.0%}", shares=shares, others=shares)


def flipped(shares: Floats, flips: float) -> Floats:
    """Shares of what the judge says, from those of what it would say without flips."""
    return np.asarray((1 - flips) * shares + flips * (1 - shares) / (shares.shape[-1] - 1))


def draw(case: Case, design: Design, n_samples: int, rng: np.random.Generator) -> Drawn:
    """Benchmarks of two captioners."""
    of_videos = _shares_of_videos(case, design, n_samples, rng)
    low, high = case.questions
    sizes = rng.integers(low, high + 1, size=(n_samples, design.n_videos, case.n_tasks))
    said = [_said(sizes, shares, design, rng) for shares in of_videos]
    tokens = []
    for shares, marginal in zip(of_videos, (case.shares, case.others), strict=True):
        # Longer captions are right more often.
        length = 0.5 + 0.5 * shares[..., 0, 0] / marginal[0]
        spread = rng.gamma(6.0, _MEAN_TOKENS / 6.0, size=length.shape)
        tokens.append(np.rint(spread * length))
    return Drawn((said[0], said[1]), (tokens[0], tokens[1]))


def parts_of(case: Case, metric: str, counts: Counts, tokens: Floats) -> Floats:
    """Return the videos' parts, shape (n_samples, n_runs, n_videos, n_tasks, n_factors, 2).

    The benchmark itself says what each label adds (:attr:`Metric.ratios`); that this comes to the
    same for whole videos is checked of some.
    """
    known = all_benchmarks()[case.benchmark].metrics[metric]
    adds, is_mean = _what_labels_add(known, case.labels)
    first = np.asarray(counts @ adds, np.float64)
    if is_mean:
        first /= counts.sum(axis=-1, keepdims=True)
    parts = first[..., None, :]
    if known.reads_fields:
        of_tokens = np.stack([np.ones_like(tokens), tokens], axis=-1)[:, None, :, None, None, :]
        shape = (*parts.shape[:-2], 1, 2)
        parts = np.concatenate([parts, np.broadcast_to(of_tokens, shape)], axis=-2)
    _check(case, known, metric, counts[0, 0, :20, 0], tokens[0, :20], parts[0, 0, :20, 0])
    return parts


def true_score(case: Case, metric: str, shares: Sequence[float], flips: float) -> float:
    """The score expected over videos and flips, in the metric's unit."""
    known = all_benchmarks()[case.benchmark].metrics[metric]
    adds, _ = _what_labels_add(known, case.labels)
    top, bottom = flipped(np.asarray(shares), flips) @ adds
    return float(known.scale * top / bottom / (_MEAN_TOKENS if known.reads_fields else 1.0))


def _shares_of_videos(
    case: Case, design: Design, n_samples: int, rng: np.random.Generator
) -> list[Floats]:
    """Shares of each video in each task for both captioners, (n_samples, n_videos, n_tasks, n)."""
    both = np.asarray([case.shares, case.others])
    shape = (n_samples, design.n_videos, case.n_tasks, both.shape[1])
    if design.correlation == 0:
        return [np.broadcast_to(shares, shape) for shares in both]
    alphas = both * (1 / design.correlation - 1)
    least = alphas.min(axis=0)
    every = least * _SHARED_BY_TASKS if case.n_tasks > 1 else 0.0 * least
    of_both = least * _SHARED_BY_CAPTIONERS - every
    common = rng.standard_gamma(every, size=(*shape[:2], 1, shape[3]))
    common = common + rng.standard_gamma(of_both, size=shape)
    found = []
    for alpha in alphas:
        gammas = common + rng.standard_gamma(alpha - every - of_both, size=shape) + 1e-300
        found.append(gammas / gammas.sum(axis=-1, keepdims=True))
    return found


def _said(sizes: Counts, shares: Floats, design: Design, rng: np.random.Generator) -> Counts:
    """Verdicts by label in each judge run, with flips."""
    if design.n_runs == 1:
        return rng.multinomial(sizes, flipped(shares, design.flips))[:, None]
    true = rng.multinomial(sizes, shares)
    moves = flipped(np.eye(shares.shape[-1]), design.flips)
    # Of each label, what its verdicts become.
    runs = [
        np.stack([rng.multinomial(true[..., label], of) for label, of in enumerate(moves)])
        for _ in range(design.n_runs)
    ]
    return np.asarray(np.stack(runs, axis=2).sum(axis=0))


def _what_labels_add(known: Metric, labels: Sequence[Any]) -> tuple[Floats, bool]:
    """Each label to its numerator and denominator; whether a video counts as the mean of them."""
    ratios = _ratios(known)
    each = ratios([[label] for label in labels], _records([1.0] * len(labels)))
    adds = np.asarray([pairs[0] for pairs in each], np.float64)
    twice = ratios([[labels[0], labels[0]]], _records([1.0]))[0][0]
    return adds, bool(np.allclose(twice, adds[0]))


def _ratios(known: Metric) -> Ratios:
    if known.ratios is None:
        raise ValueError("expected a metric that says how it is a ratio")
    return known.ratios


def _records(tokens: Sequence[float]) -> list[CaptionRecord]:
    return [
        CaptionRecord(
            task="", video_id=str(place), judge="", runs=1, protocol=1, extras={}, n_questions=0,
            n_unscored=0, fields={"n_tokens": int(number)},
        )
        for place, number in enumerate(tokens)
    ]  # fmt: skip


def _check(
    case: Case, known: Metric, metric: str, counts: Counts, tokens: Floats, parts: Floats
) -> None:
    """Check that the benchmark makes the same parts of the verdicts."""
    videos = [
        [label for label, n in zip(case.labels, of_video, strict=True) for _ in range(n)]
        for of_video in counts
    ]
    theirs = np.asarray(_ratios(known)(videos, _records(list(tokens))))
    if not np.allclose(theirs, parts):
        raise ValueError(f"{case.name} {metric}: what labels add is not what videos add")
