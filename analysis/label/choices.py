"""Report of choices between captions: Elo, Bradley-Terry and how metrics correlate with them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from math import isfinite, isnan
from typing import TYPE_CHECKING, Any

import numpy as np

from lmms_eval_captions.analysis.captioners import Captioner, common_names
from lmms_eval_captions.analysis.label.report import Report
from lmms_eval_captions.analysis.tables import (
    NONE,
    Part,
    interval_text,
    plural,
    table,
    with_interval,
)
from lmms_eval_captions.metrics.agreement import agreement_interval, ratings_of
from lmms_eval_captions.metrics.correlation import Correlations, correlations
from lmms_eval_captions.metrics.intervals import FEW_VIDEOS, Interval
from lmms_eval_captions.metrics.ranking import PAPER, BradleyTerry, Elo, bradley_terry, elo

if TYPE_CHECKING:
    import pandas as pd

_Correlations = dict[str, dict[str, dict[str, Correlations]]]
"""By task, metric and rating."""


def choices_report(choices: pd.DataFrame, captioners: Sequence[Captioner], *, seed: int) -> Report:
    """Report on choices between captions.

    Args:
        choices: See :class:`Labels`; at least one.
        captioners: Runs whose metrics are correlated with the ratings; may be none.
        seed: Seed of Elo's draws.
    """
    names = sorted({*choices["first"], *choices["second"]})
    matches = np.searchsorted(names, choices[["first", "second"]].to_numpy(str))
    scores = choices["score"].to_numpy()
    videos = np.unique(choices["video"], return_inverse=True)[1]
    rng = np.random.default_rng(seed)
    ratings = elo(matches, scores, videos, n_captioners=len(names), rng=rng)
    strengths = bradley_terry(matches, scores, videos, n_captioners=len(names))
    if strengths.low is None:
        # If all videos say the same of a captioner, so do resamples of them.
        ratings = replace(ratings, low=None, high=None)
    found = _correlations(names, ratings, strengths, captioners)
    people = sorted(set(choices["annotator"]))
    among = _agreement(choices) if len(people) > 1 else {}
    n_videos = int(videos.max()) + 1
    sentences = [
        f"{plural(len(choices), 'choice')} between captions of {plural(n_videos, 'video')} by "
        f"{', '.join(people)}.",
        *(
            f"{name} among annotators: {of.note if isnan(of.value) else with_interval(of, 3)}"
            for name, of in among.items()
        ),
    ]
    notes = [
        f"Elo with AuroraCap's parameters (Table O14: K {PAPER.k_factor:g}, at least "
        f"{PAPER.minimum:g}, {PAPER.n_matches:,} matches drawn from the choices), mean over "
        "simulations; 95% intervals over videos."
    ]
    if strengths.note:
        notes.append(f"Bradley-Terry: {strengths.note}; so Elo has no interval, either")
    elif n_videos < FEW_VIDEOS:
        notes.append(f"only {n_videos} videos: the intervals are a rough guess")
    missing = [name for name in names if name not in {of.name for of in captioners}]
    if captioners and missing:
        notes.append(f"not among --against, so in no correlation: {', '.join(missing)}")
    tables = [("", _ratings(names, choices, ratings, strengths))]
    n_rated = len(captioners) - len({of.name for of in captioners} - set(names))
    title = f"Correlation of metrics with people's ratings over {n_rated} captioners (Figure 5)"
    if n_rated > 2:
        rows = [
            [task, metric, name, *(f"{r:+.2f}" for r in (c.pearson, c.spearman, c.kendall))]
            for task, of_task in found.items()
            for metric, of_metric in of_task.items()
            for name, c in of_metric.items()
        ]
        header = ["task", "metric", "with", "Pearson", "Spearman", "Kendall"]
        tables.append((title, table(header, rows)))
    elif captioners:
        notes.append(f"no correlations: they take at least 3 of these captioners, got {n_rated}")
    document = {
        "n_choices": len(choices),
        "annotators": people,
        "agreement": among,
        "captioners": names,
        "elo": asdict(ratings),
        "bradley_terry": asdict(strengths),
        "correlations": found,
    }
    part = Part("Captions side by side", sentences, tables, notes)
    return Report(part, {"choices": document})


def _ratings(
    names: Sequence[str], choices: pd.DataFrame, ratings: Elo, strengths: BradleyTerry
) -> pd.DataFrame:
    def rated(found: Elo | BradleyTerry, place: int) -> str:
        if found.values is None:
            return NONE
        low, high = (None if of is None else float(of[place]) for of in (found.low, found.high))
        return interval_text(float(found.values[place]), low, high, digits=0)

    rows = []
    for place in np.argsort(-ratings.values):
        is_first, is_second = (choices[side] == names[place] for side in ("first", "second"))
        gained = [*choices["score"][is_first], *(1 - choices["score"][is_second])]
        counts = [str(gained.count(share)) for share in (1.0, 0.5, 0.0)]
        rows.append([names[place], *counts, rated(ratings, place), rated(strengths, place)])
    return table(["captioner", "won", "tied", "lost", "Elo", "Bradley-Terry"], rows)


def _agreement(choices: pd.DataFrame) -> dict[str, Interval]:
    """Return the agreement of annotators who chose between the same captions."""
    sides = np.sort(choices[["first", "second"]].to_numpy(str), axis=1)
    is_turned = choices["first"] > choices["second"]
    rated = choices.assign(
        sides=list(map(tuple, sides)),
        rating=choices["score"].where(~is_turned, 1 - choices["score"]),
    )
    rows = rated.groupby(["task", "video", "sides", "annotator"], sort=False)["rating"].last()
    wide = rows.unstack().astype(object)
    videos = np.unique(wide.index.get_level_values("video"), return_inverse=True)[1]
    ratings = ratings_of(wide.where(wide.notna(), None).to_numpy().tolist())
    return {
        "AC1": agreement_interval(ratings, videos, coefficient="ac1"),
        "alpha": agreement_interval(ratings, videos, coefficient="nominal"),
    }


def _correlations(
    names: Sequence[str], ratings: Elo, strengths: BradleyTerry, captioners: Sequence[Captioner]
) -> _Correlations:
    judged = [captioner for captioner in captioners if captioner.name in names]
    places = [names.index(captioner.name) for captioner in judged]
    rated: dict[str, Any] = {"Elo": ratings.values, "Bradley-Terry": strengths.values}
    found: _Correlations = {}
    for task in common_names(judged) if judged else ():
        scores = [captioner.results(task).scores for captioner in judged]
        for metric in scores[0]:
            numbers = [of.get(metric, np.nan) for of in scores]
            if all(map(isfinite, numbers)) and metric != "unscored":
                found.setdefault(task, {})[metric] = {
                    name: correlations(numbers, values[places].tolist())
                    for name, values in rated.items()
                    if values is not None
                }
    return found
