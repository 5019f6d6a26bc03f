"""Reports of labels: graded questions beside the judge's grades, and choices between captions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

import numpy as np
import pandas as pd

from lmms_eval_captions.analysis.captioners import Captioner
from lmms_eval_captions.analysis.label.labels import Domain, domains_of
from lmms_eval_captions.analysis.label.scores import (
    Document,
    agreement,
    agreements_of,
    score,
    score_groups,
    wide,
)
from lmms_eval_captions.analysis.tables import (
    NONE,
    Part,
    interval_text,
    number,
    p_text,
    plural,
    table,
    with_interval,
)
from lmms_eval_captions.lmms_eval_tasks.task_names import benchmark_of_task
from lmms_eval_captions.metrics.intervals import FEW_VIDEOS, Interval
from lmms_eval_captions.metrics.ranking import PAPER, BradleyTerry, Elo, bradley_terry, elo

_COEFFICIENTS: Final = {"kappa": "kappa", "ac1": "AC1", "nominal": "alpha", "interval": "alpha"}
_HIGHEST_GRADE: Final = 10.0
"""Highest value of a metric that is shown with two decimal places."""


class Report(NamedTuple):
    """Findings as text and as JSON."""

    part: Part
    document: Document


def verdicts_report(labels: pd.DataFrame, captioners: Sequence[Captioner]) -> Report:
    """Report on labels of graded questions."""
    domains, left_out = domains_of(labels, captioners)
    tasks = [
        {
            "task": domain.task,
            "captioner": domain.captioner.name,
            "annotators": sorted(set(domain.labels["annotator"])),
            "n_pairs": len(domain.pairs),
            "n_labelled": domain.labels["pair"].nunique(),
            "agreement": list(agreements_of(domain)),
            **score(domain.task, [domain]),
        }
        for domain in domains
    ]
    groups = list(score_groups(domains))
    found = [*tasks, *groups]
    agreements = [
        [_name(of_task), of["who"], of["n_pairs"], _shown(of["coefficients"])]
        for of_task in tasks
        for of in of_task["agreement"]
    ]
    header = ["task", "raters", "pairs", "agreement"]
    tables = [
        ("Agreement (1 is complete, 0 is chance)", table(header, agreements)),
        ("Scores by the judge, and corrected by labels", _corrected(found)),
        ("Judge and people on the same labelled pairs", _differences(found)),
    ]
    notes = [
        "Intervals are 95%, over videos.",
        "The corrected score assumes the sample that the page drew. It is given for means and "
        "ratios over pairs, not for con, and for a group of tasks if each of them has labels.",
        *_notes(found),
        *left_out,
    ]
    part = Part("Graded questions", list(map(_head, domains)), tables, notes)
    return Report(part, {"verdicts": tasks, "groups_of_tasks": groups, "left_out": left_out})


def _head(domain: Domain) -> str:
    labels, seconds = domain.labels, domain.labels["seconds"]
    pace = f", {seconds[seconds > 0].median():.0f} s each (median)" if (seconds > 0).any() else ""
    return (
        f"{domain.task} of {domain.captioner.name}: {labels['pair'].nunique():,} of "
        f"{plural(len(domain.pairs), 'judged pair')} labelled, drawn at random; "
        f"{plural(len(labels), 'label')} by {', '.join(sorted(set(labels['annotator'])))}{pace}."
    )


def _shown(coefficients: Mapping[str, Interval]) -> str:
    shown = coefficients.items()
    return "; ".join(f"{_COEFFICIENTS[kind]} {with_interval(of, 3)}" for kind, of in shown)


def _name(found: Document) -> str:
    return f"{found.get('task') or found['group']} of {found['captioner']}"


def _corrected(several: Sequence[Document]) -> pd.DataFrame:
    rows = []
    scores = [(found, *pair) for found in several for pair in found["scores"].items()]
    for found, metric, of in scores:
        digits, corrected, alone = _digits(found, metric), of["corrected"], of["labels_alone"]
        shown = [with_interval(value, digits) for value in (of["judge_all"], alone, corrected)]
        rows.append([_name(found), metric, *shown, corrected and number(abs(corrected.lam))])
    header = ["task", "metric", "judge on all", "labels alone", "corrected", "lambda"]
    return table(header, rows)


def _digits(found: Document, metric: str) -> int:
    """Return the decimal places: one of percentages, two of grades."""
    task = found.get("task") or found["tasks"][0]
    return 1 if benchmark_of_task(task).metrics[metric].highest > _HIGHEST_GRADE else 2


def _differences(several: Sequence[Document]) -> pd.DataFrame:
    """Return the numbers of VidCapBench's Tables 4 and 11, with intervals of the differences."""
    rows = []
    for found in several:
        groups = found.get("groups", [])
        # JSON has the groups of all sections.
        shown = [of for of in groups if of["section"] == groups[0]["section"]]
        for of in ({"group": "all", "scores": found["scores"]}, *shown):
            for metric, compared in of["scores"].items():
                digits, difference = _digits(found, metric), compared["difference"]
                shown = [number(compared[side], digits) for side in ("judge", "people")]
                shown += [with_interval(difference, digits, "+")]
                shown += [p_text(difference and difference.p_value)]
                rows.append([_name(found), of["group"], metric, compared["n_labels"], *shown])
    header = ["task", "group", "metric", "labels", "judge", "people", "people minus judge", "p"]
    return table(header, rows)


def _notes(several: Sequence[Document]) -> Iterator[str]:
    """Yield what must be known of these numbers, each note once."""
    owners: dict[str, list[str]] = {}
    for found in several:
        for metric, of in found["scores"].items():
            for note in (of["note"], of["corrected"].note if of["corrected"] else ""):
                owners.setdefault(note, []).append(f"{metric} of {_name(found)}")
    owners.pop("", None)
    for note, names in owners.items():
        yield f"{', '.join(names)}: {note}"


def choices_report(choices: pd.DataFrame, *, seed: int) -> Report:
    """Report Elo and Bradley-Terry of captioners by choices between their captions."""
    names = sorted({*choices["first"], *choices["second"]})
    matches = np.searchsorted(names, choices[["first", "second"]].to_numpy(str))
    scores, videos = choices["score"].to_numpy(), pd.factorize(choices["video"], sort=True)[0]
    rng = np.random.default_rng(seed)
    ratings = elo(matches, scores, videos, n_captioners=len(names), rng=rng)
    strengths = bradley_terry(matches, scores, videos, n_captioners=len(names))
    if strengths.low is None:
        # If all videos say the same of a captioner, so do resamples of them.
        ratings = replace(ratings, low=None, high=None)
    people, n_videos = sorted(set(choices["annotator"])), int(videos.max()) + 1
    sentences = [
        f"{plural(len(choices), 'choice')} between captions of {plural(n_videos, 'video')} by "
        f"{', '.join(people)}."
    ]
    among = {}
    if len(people) > 1:
        said = wide(choices.assign(rating=scores), ["task", "video", "first", "second"])
        rows, of_rows = said.to_numpy().tolist(), said.index.to_frame()["video"]
        among = agreement(rows, of_rows, ("ac1", "nominal"))
        sentences.append(f"Agreement among annotators: {_shown(among)}.")
    notes = [
        f"Elo with AuroraCap's parameters (Table O14: K {PAPER.k_factor:g}, at least "
        f"{PAPER.minimum:g}, {PAPER.n_matches:,} matches drawn from the choices), mean over "
        "simulations; 95% intervals over videos."
    ]
    if strengths.note:
        notes.append(f"Bradley-Terry: {strengths.note}; so Elo has no interval, either")
    elif n_videos < FEW_VIDEOS:
        notes.append(f"only {n_videos} videos: the intervals are a rough guess")
    tables = [("", _ratings(names, choices, ratings, strengths))]
    document = {
        "n_choices": len(choices),
        "annotators": people,
        "agreement": among,
        "captioners": names,
        "elo": ratings,
        "bradley_terry": strengths,
    }
    return Report(Part("Captions side by side", sentences, tables, notes), {"choices": document})


def _ratings(
    names: Sequence[str], choices: pd.DataFrame, ratings: Elo, strengths: BradleyTerry
) -> pd.DataFrame:
    def rating(found: Elo | BradleyTerry, index: int) -> str:
        if found.values is None:
            return NONE
        low, high = (None if of is None else float(of[index]) for of in (found.low, found.high))
        return interval_text(float(found.values[index]), low, high, digits=0)

    rows = []
    for index in np.argsort(-ratings.values):
        is_first, is_second = (choices[side] == names[index] for side in ("first", "second"))
        gained = [*choices["score"][is_first], *(1 - choices["score"][is_second])]
        counts = [str(gained.count(share)) for share in (1.0, 0.5, 0.0)]
        rows.append([names[index], *counts, rating(ratings, index), rating(strengths, index)])
    return table(["captioner", "won", "tied", "lost", "Elo", "Bradley-Terry"], rows)
