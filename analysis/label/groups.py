"""Groups of tasks by people beside those by the judge: means over tasks, and pooled questions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import nan
from typing import TYPE_CHECKING, Any

import numpy as np

from lmms_eval_captions.analysis.label.corrected import (
    Compared,
    arrays_of,
    other_factors,
    places_of,
    with_people,
)
from lmms_eval_captions.analysis.label.matching import Domain
from lmms_eval_captions.analysis.verdicts.captioners import Captioner
from lmms_eval_captions.analysis.verdicts.parts import parts_of_captions
from lmms_eval_captions.lmms_eval_tasks.benchmark import Benchmark
from lmms_eval_captions.lmms_eval_tasks.judging_document import leaves_of
from lmms_eval_captions.metrics.intervals import interval
from lmms_eval_captions.metrics.ppi import Pairs

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedGroup:
    """A group of tasks of one captioner, all of which have labels."""

    name: str
    captioner: str
    tasks: tuple[str, ...]
    benchmark: Benchmark[Any, Any]
    scores: Mapping[str, Compared]
    """By metric."""


def compared_groups(
    domains: Sequence[Domain], captioners: Sequence[Captioner]
) -> tuple[list[ComparedGroup], list[str]]:
    """Every group whose tasks people have labelled, and what is said of those with some labels.

    Args:
        domains: What people have labelled.
        captioners: Those of the domains.
    """
    found: list[ComparedGroup] = []
    notes: list[str] = []
    for captioner in captioners:
        labelled = {each.task: each for each in domains if each.captioner == captioner.name}
        for name, tasks in _groups(captioner):
            there = [labelled[task] for task in tasks if task in labelled]
            if len(there) == len(tasks):
                found.append(_compared(name, captioner, there))
            elif len(there) > 1:
                missing = ", ".join(task for task in tasks if task not in labelled)
                notes.append(f"{name} of {captioner.name} is not given: no label is of {missing}")
    return found, notes


def _groups(captioner: Captioner) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The groups of one run, with their tasks: in runs of different days they are not one score."""
    for name, run in captioner.runs.items():
        tasks = tuple(leaves_of(run.document, name))
        if len(tasks) > 1 and all(captioner.runs.get(task) is run for task in tasks):
            yield name, tasks


def _compared(name: str, captioner: Captioner, domains: Sequence[Domain]) -> ComparedGroup:
    benchmark = domains[0].pairs[0].benchmark
    is_pooled = benchmark.pooled_group == name
    return ComparedGroup(
        name=name,
        captioner=captioner.name,
        tasks=tuple(domain.task for domain in domains),
        benchmark=benchmark,
        scores={
            metric: _compared_metric(domains, metric, is_pooled=is_pooled)
            for metric in benchmark.metrics
        },
    )


def _compared_metric(domains: Sequence[Domain], metric: str, *, is_pooled: bool) -> Compared:
    benchmark = domains[0].pairs[0].benchmark
    known = benchmark.metrics[metric]
    sets = [domain.captions for domain in domains]
    if is_pooled:
        sets = [[caption for captions in sets for caption in captions]]
    judged = parts_of_captions(benchmark, metric, sets)
    terms = _numbered_together(
        domains, [arrays_of(domain, metric, domain.pairs) for domain in domains]
    )
    found = Compared(
        metric=metric, group=None, n_labels=sum(int(term.is_labelled.sum()) for term in terms),
        judge_all=None if judged is None else interval(
            judged.parts, scale=known.scale, bounds=known.bounds
        ),
        labels_alone=None, corrected=None, judge=nan, people=nan, difference=None,
    )  # fmt: skip
    if not all(term.is_labelled.any() for term in terms):
        return replace(found, note="not given: a task has no label")
    lengths = [other_factors(benchmark, metric, captions) for captions in sets]
    if None in lengths:
        return replace(found, note="not given: the captions' tokens are not known")
    if is_pooled:
        return with_people(found, [_pooled(terms)], known, lengths[0] or 1.0)
    if any(length != 1 for length in lengths):
        return replace(found, note="not given: each task has captions of a length of its own")
    return with_people(found, terms, known)


def _numbered_together(domains: Sequence[Domain], terms: Sequence[Pairs]) -> list[Pairs]:
    """With one number for a video in all tasks, and no stratum in two of them."""
    videos = places_of([pair.record.video_id for domain in domains for pair in domain.pairs])
    numbered = []
    first_pair = first_stratum = 0
    for term in terms:
        last = first_pair + len(term.videos)
        strata = first_stratum + term.strata
        numbered.append(replace(term, videos=videos[first_pair:last], strata=strata))
        first_pair, first_stratum = last, int(strata.max()) + 1
    return numbered


def _pooled(terms: Sequence[Pairs]) -> Pairs:
    """All questions together. Tasks are strata: pages may have asked about more of one of them."""
    fields = ("judge", "people", "is_labelled", "videos", "strata", "weights")
    return Pairs(**{
        field: np.concatenate([getattr(term, field) for term in terms]) for field in fields
    })  # fmt: skip
