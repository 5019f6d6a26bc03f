"""What people's choices between captions say of captioners."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from math import isfinite, isnan

import numpy as np

from lmms_eval_captions.analysis.label.label_file import ChoiceLabel
from lmms_eval_captions.analysis.label.report import Report
from lmms_eval_captions.analysis.verdicts.captioners import Captioner, common_names
from lmms_eval_captions.lmms_eval_tasks.text_table import text_table
from lmms_eval_captions.metrics.agreement import agreement_interval
from lmms_eval_captions.metrics.clusters import ratings_of
from lmms_eval_captions.metrics.correlation import Correlations, correlations
from lmms_eval_captions.metrics.intervals import FEW_VIDEOS, Interval
from lmms_eval_captions.metrics.ranking import PAPER, BradleyTerry, Elo, bradley_terry, elo


def choices_report(
    choices: Sequence[ChoiceLabel], captioners: Sequence[Captioner], *, seed: int
) -> Report:
    """Elo and Bradley-Terry of the captioners, and how metrics go with them.

    Args:
        choices: At least one.
        captioners: Runs whose metrics are correlated with the ratings; may be none.
        seed: Of Elo's draws.
    """
    names = sorted({name for choice in choices for name in choice.captioners})
    matches = np.array([[names.index(name) for name in choice.captioners] for choice in choices])
    scores = np.array([choice.score for choice in choices])
    videos = np.unique([choice.video_id for choice in choices], return_inverse=True)[1]
    rng = np.random.default_rng(seed)
    ratings = elo(matches, scores, videos, n_captioners=len(names), rng=rng)
    strengths = bradley_terry(matches, scores, videos, n_captioners=len(names))
    if strengths.low is None:
        # Where all videos say the same of a captioner, resamples of them do, too.
        ratings = replace(ratings, low=None, high=None)
    of_metrics = _correlations(names, ratings, strengths, captioners)
    people = sorted({choice.annotator for choice in choices})
    among = _among(choices, people)
    lines = [
        f"{len(choices)} choices between captions of {len(np.unique(videos))} videos by "
        f"{', '.join(people)}",
        *_agreement_lines(among),
        "",
        *text_table(list(_rating_rows(names, matches, scores, ratings, strengths)), n_left=1),
        f"Elo with AuroraCap's parameters (Table O14: K {PAPER.k_factor:g}, at least "
        f"{PAPER.minimum:g}, {PAPER.n_matches:,} matches drawn from the choices), mean over",
        "simulations; 95 % intervals over videos.",
        *_notes(strengths.note, len(np.unique(videos))),
        *_correlation_lines(of_metrics, names, captioners),
    ]
    document = {
        "n_choices": len(choices),
        "annotators": people,
        "agreement": {name: asdict(interval) for name, interval in among.items()},
        "captioners": names,
        "elo": _listed(asdict(ratings)),
        "bradley_terry": _listed(asdict(strengths)),
        "correlations": {
            task: {metric: {to: asdict(c) for to, c in both.items()} for metric, both in of.items()}
            for task, of in of_metrics.items()
        },
    }
    return Report(lines, {"choices": document})


def _notes(of_strengths: str, n_videos: int) -> Iterator[str]:
    if of_strengths:
        yield f"note: Bradley-Terry: {of_strengths}; so Elo has no interval, either"
    elif n_videos < FEW_VIDEOS:
        yield f"note: only {n_videos} videos: the intervals are a rough guess"


def _rating_rows(
    names: Sequence[str],
    matches: np.ndarray[tuple[int, ...], np.dtype[np.intp]],
    scores: np.ndarray[tuple[int, ...], np.dtype[np.float64]],
    ratings: Elo,
    strengths: BradleyTerry,
) -> Iterator[tuple[str, ...]]:
    yield "captioner", "won", "tied", "lost", "Elo", "Bradley-Terry"
    for place in np.argsort(-ratings.values):
        gained = np.concatenate(
            [scores[matches[:, 0] == place], 1 - scores[matches[:, 1] == place]]
        )
        counts = [str(int((gained == share).sum())) for share in (1.0, 0.5, 0.0)]
        yield (
            names[place],
            *counts,
            _rated(ratings.values, ratings.low, ratings.high, place),
            _rated(strengths.values, strengths.low, strengths.high, place),
        )


def _rated(
    values: np.ndarray[tuple[int, ...], np.dtype[np.float64]] | None,
    low: np.ndarray[tuple[int, ...], np.dtype[np.float64]] | None,
    high: np.ndarray[tuple[int, ...], np.dtype[np.float64]] | None,
    place: int,
) -> str:
    if values is None:
        return "-"
    ends = "" if low is None or high is None else f" [{low[place]:,.0f}, {high[place]:,.0f}]"
    return f"{values[place]:,.0f}{ends}"


def _among(choices: Sequence[ChoiceLabel], people: Sequence[str]) -> dict[str, Interval]:
    """Agreement of annotators who chose between the same captions; empty for one annotator."""
    if len(people) < 2:
        return {}
    rows: dict[tuple[str, str, tuple[str, ...]], list[float | None]] = {}
    for choice in choices:
        sides = tuple(sorted(choice.captioners))
        row = rows.setdefault((choice.task, choice.video_id, sides), [None] * len(people))
        is_turned = sides != choice.captioners
        row[people.index(choice.annotator)] = 1 - choice.score if is_turned else choice.score
    videos = np.unique([video for _, video, _ in rows], return_inverse=True)[1]
    ratings = ratings_of(list(rows.values()))
    return {
        "AC1": agreement_interval(ratings, videos, coefficient="ac1"),
        "alpha": agreement_interval(ratings, videos, coefficient="nominal"),
    }


def _agreement_lines(among: Mapping[str, Interval]) -> Iterator[str]:
    for name, found in among.items():
        ends = "" if found.low is None else f" [{found.low:.3f}, {found.high:.3f}]"
        value = found.note if isnan(found.value) else f"{found.value:.3f}{ends}"
        yield f"{name} among annotators: {value}"


_OfMetrics = dict[str, dict[str, dict[str, Correlations]]]
"""Task, metric and rating to the correlations."""


def _correlations(
    names: Sequence[str], ratings: Elo, strengths: BradleyTerry, captioners: Sequence[Captioner]
) -> _OfMetrics:
    judged = [captioner for captioner in captioners if captioner.name in names]
    places = [names.index(captioner.name) for captioner in judged]
    known = {"Elo": ratings.values[places]}
    if strengths.values is not None:
        known["Bradley-Terry"] = strengths.values[places]
    found: _OfMetrics = {}
    for task in common_names(judged) if judged else ():
        scores = [captioner.runs[task].tasks[task].scores for captioner in judged]
        for metric in scores[0]:
            numbers = [of_captioner.get(metric, np.nan) for of_captioner in scores]
            if all(map(isfinite, numbers)) and metric != "unscored":
                found.setdefault(task, {})[metric] = {
                    name: correlations(numbers, values.tolist()) for name, values in known.items()
                }
    return found


def _correlation_lines(
    found: _OfMetrics, names: Sequence[str], captioners: Sequence[Captioner]
) -> Iterator[str]:
    judged = {captioner.name for captioner in captioners}
    missing = [name for name in names if name not in judged]
    if captioners and missing:
        yield f"note: not among --against, so in no correlation: {', '.join(missing)}"
    if not found:
        return
    n = next(c.n for of in found.values() for both in of.values() for c in both.values())
    yield ""
    yield f"Correlation of metrics with people's ratings over {n} captioners (as in Figure 5):"
    if n < 3:
        yield "none: at least 3 captioners are needed"
        return
    rows: list[tuple[str, ...]] = [
        ("task", "metric", "with", "Pearson", "Spearman", "Kendall", "n")
    ]
    rows += [
        (task, metric, to, *(f"{r:+.2f}" for r in (c.pearson, c.spearman, c.kendall)), str(c.n))
        for task, of in found.items()
        for metric, both in of.items()
        for to, c in both.items()
    ]
    yield from text_table(rows, n_left=3)


def _listed(document: Mapping[str, object]) -> dict[str, object]:
    """With arrays as lists."""
    return {
        name: value.tolist() if isinstance(value, np.ndarray) else value
        for name, value in document.items()
    }
