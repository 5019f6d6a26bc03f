"""Reports of labels: graded questions beside the judge's grades, and choices between captions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

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
    plural,
    table,
    with_interval,
)
from lmms_eval_captions.metrics.intervals import FEW_VIDEOS, Interval
from lmms_eval_captions.metrics.ranking import PAPER, BradleyTerry, Elo, bradley_terry, elo

_COEFFICIENTS: Final = {"kappa": "kappa", "ac1": "AC1", "nominal": "alpha", "interval": "alpha"}


Report = tuple[Part, Document]
"""Findings as text and as JSON."""


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
    scores = {
        f"{metric} of {_name(found)}": of
        for found in (*tasks, *groups)
        for metric, of in found["scores"].items()
    }
    # JSON has the groups of all sections.
    by_group = {
        f"{metric} of {_name(found)}, {group['group']}": of
        for found in tasks
        for group in found["groups"]
        if group["section"] == found["groups"][0]["section"]
        for metric, of in group["scores"].items()
    }
    agreements = [
        [f"{_name(found)}: {of['who']}", of["n_pairs"], _shown(of["coefficients"])]
        for found in tasks
        for of in found["agreement"]
    ]
    corrected = [
        [name, *map(with_interval, (of["judge_all"], of["labels_alone"], of["corrected"]))]
        for name, of in scores.items()
    ]
    # The numbers of VidCapBench's Tables 4 and 11, with intervals of the differences.
    compared = []
    for name, of in (scores | by_group).items():
        sides = [number(of["judge"]), number(of["people"])]
        compared.append([name, of["n_labels"], *sides, with_interval(of["difference"], sign="+")])
    tables = {
        "Agreement (1 is complete, 0 is chance)": (["raters", "pairs", "agreement"], agreements),
        "Scores by the judge, and corrected by labels": (
            ["score", "judge on all", "labels alone", "corrected"], corrected,
        ),
        "Judge and people on the same labelled pairs": (
            ["score", "labels", "judge", "people", "people minus judge"], compared,
        ),
    }  # fmt: skip
    owners: dict[str, list[str]] = {}
    for name, of in scores.items():
        for note in filter(None, (of["note"], of["corrected"] and of["corrected"].note)):
            owners.setdefault(note, []).append(name)
    notes = [
        "Intervals are 95%, over videos.",
        "The corrected score assumes the sample that the page drew. It is given for means and "
        "ratios over pairs, not for con, and for a group of tasks if each of them has labels.",
        *(f"{', '.join(names)}: {note}" for note, names in owners.items()),
        *left_out,
    ]
    part = Part(
        "Graded questions",
        list(map(_head, domains)),
        [(title, table(*cells)) for title, cells in tables.items()],
        notes,
    )
    return part, {"verdicts": tasks, "groups_of_tasks": groups, "left_out": left_out}


def _head(domain: Domain) -> str:
    labels = domain.labels
    return (
        f"{domain.task} of {domain.captioner.name}: {labels['pair'].nunique():,} of "
        f"{plural(len(domain.pairs), 'judged pair')} labelled, drawn at random; "
        f"{plural(len(labels), 'label')} by {', '.join(sorted(set(labels['annotator'])))}."
    )


def _shown(coefficients: Mapping[str, Interval]) -> str:
    shown = coefficients.items()
    return "; ".join(f"{_COEFFICIENTS[kind]} {with_interval(of, 3)}" for kind, of in shown)


def _name(found: Document) -> str:
    return f"{found.get('task') or found['group']} of {found['captioner']}"


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
    return Part("Captions side by side", sentences, tables, notes), {"choices": document}


def _ratings(
    names: Sequence[str], choices: pd.DataFrame, ratings: Elo, strengths: BradleyTerry
) -> pd.DataFrame:
    def rating(found: Elo | BradleyTerry, index: int) -> str:
        found_of = (found.values, found.low, found.high)
        value, low, high = (None if of is None else float(of[index]) for of in found_of)
        return NONE if value is None else interval_text(value, low, high, digits=0)

    # Each choice as either captioner has it.
    turned = choices.assign(first=choices["second"], score=1 - choices["score"])
    both = pd.concat([choices, turned])
    counts = pd.crosstab(both["first"], both["score"]).reindex(columns=[1, 0.5, 0], fill_value=0)
    rows = [
        [names[i], *counts.loc[names[i]], rating(ratings, i), rating(strengths, i)]
        for i in np.argsort(-ratings.values)
    ]
    return table(["captioner", "won", "tied", "lost", "Elo", "Bradley-Terry"], rows)
