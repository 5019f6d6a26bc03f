"""From numbers of videos to those of captioners, and how these go with caption scores."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import isnan

from lmms_eval_captions.analysis.t2v_verify.measuring import Measured
from lmms_eval_captions.metrics.correlation import correlations

ALL = "all generators"
_FEWEST = 3
"""Captioners that a correlation takes."""


@dataclass(frozen=True, slots=True)
class CaptionerMeans:
    """A captioner's means over the videos that a generator made of its captions."""

    generator: str
    """Empty where there is one alone."""
    captioner: str
    n_videos: int
    """Generated videos."""
    means: Mapping[str, float]
    """Measure to its mean over the videos that have it."""
    counts: Mapping[str, int]
    """Measure to the number of those videos."""


@dataclass(frozen=True, slots=True)
class Correlation:
    """How a measure goes with a caption score over captioners."""

    generator: str
    measure: str
    score: str
    r: float
    """Pearson's correlation in [-1, 1], ``nan`` where there is none."""
    n: int
    """Captioners."""
    reason: str
    """Why there is none; empty where there is."""


def captioner_means(measured: Sequence[Measured]) -> list[CaptionerMeans]:
    """Of each generator, and where there are several of all of them together."""
    generators = sorted({each.item.generator for each in measured})
    captioners = sorted({each.item.captioner for each in measured})
    scopes = [*generators, *([ALL] if len(generators) > 1 else [])]
    made: list[CaptionerMeans] = []
    for generator in scopes:
        for captioner in captioners:
            own = [
                each
                for each in measured
                if each.item.captioner == captioner and generator in (each.item.generator, ALL)
            ]
            if own:
                made.append(_means(generator, captioner, own))
    return made


def _means(generator: str, captioner: str, own: Sequence[Measured]) -> CaptionerMeans:
    columns = columns_of(each.values for each in own)
    counts = {name: len(values) for name, values in columns.items()}
    means = {name: sum(values) / len(values) for name, values in columns.items()}
    return CaptionerMeans(generator, captioner, len(own), means, counts)


def columns_of(rows: Iterable[Mapping[str, float]]) -> dict[str, list[float]]:
    """Each name to its values, of those rows that have one.

    >>> columns_of([{"PSNR": 30.0, "SSIM": 0.9}, {"PSNR": 28.0}])
    {'PSNR': [30.0, 28.0], 'SSIM': [0.9]}
    """
    columns: dict[str, list[float]] = {}
    for row in rows:
        for name, value in row.items():
            columns.setdefault(name, []).append(value)
    return columns


def correlate_scores(
    means: Sequence[CaptionerMeans], scores: Mapping[str, Mapping[str, float]]
) -> list[Correlation]:
    """Every measure with every score, over the captioners that have both.

    Source:
        VidCapBench, section 4.4 and figure 5 (Pearson's r over captioners).
    """
    found: list[Correlation] = []
    for generator in dict.fromkeys(row.generator for row in means):
        rows = [row for row in means if row.generator == generator]
        for measure in dict.fromkeys(name for row in rows for name in row.means):
            for score, values in scores.items():
                pairs = [
                    (row.means[measure], values[row.captioner])
                    for row in rows
                    if measure in row.means and row.captioner in values
                ]
                r, reason = _pearson(pairs)
                found.append(Correlation(generator, measure, score, r, len(pairs), reason))
    return found


def _pearson(pairs: Sequence[tuple[float, float]]) -> tuple[float, str]:
    r = correlations([pair[0] for pair in pairs], [pair[1] for pair in pairs]).pearson
    if not isnan(r):
        return r, ""
    if len(pairs) < _FEWEST:
        return r, f"fewer than {_FEWEST} captioners"
    return r, "all captioners have the same value"
