"""Report of graded questions: agreement, both scores next to each other, and the corrected one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from lmms_eval_captions.analysis.captioners import Captioner
from lmms_eval_captions.analysis.label.labels import Domain, domains_of
from lmms_eval_captions.analysis.label.sampling import strata_of
from lmms_eval_captions.analysis.label.scores import (
    Document,
    agreements_of,
    score,
    score_groups,
)
from lmms_eval_captions.analysis.tables import (
    NONE,
    Part,
    number,
    p_text,
    plural,
    table,
    with_interval,
)
from lmms_eval_captions.lmms_eval_tasks.task_names import benchmark_of_task

if TYPE_CHECKING:
    import pandas as pd

_COEFFICIENTS: Final = {"kappa": "kappa", "ac1": "AC1", "nominal": "alpha", "interval": "alpha"}
_HIGHEST_GRADE: Final = 10.0
"""Highest value of a metric that is shown with two decimal places."""


class Report(NamedTuple):
    """Findings as text and as JSON."""

    part: Part
    document: Document


def verdicts_report(labels: pd.DataFrame, captioners: Sequence[Captioner]) -> Report:
    """Report on labels of graded questions.

    Raises:
        DataError: If the labels are not of these runs.
    """
    domains, left_out = domains_of(labels, captioners)
    tasks = list(map(_findings, domains))
    groups, group_notes = score_groups(domains)
    found = [*tasks, *groups]
    tables = [
        ("Agreement (1 is complete, 0 is chance)", _agreements(tasks)),
        ("Scores by the judge, and corrected by labels", _corrected(found)),
        ("Judge and people on the same labelled pairs", _differences(found)),
    ]
    notes = [
        "Intervals are 95%, over videos.",
        "The corrected score assumes the sample that the page drew. It is given for means and "
        "ratios over pairs, not for con, and for a group of tasks if each of them has labels.",
        *_notes(found),
        *group_notes,
        *left_out,
    ]
    if any(domain.by for domain in domains):
        notes.append("Agreement is over the pairs as drawn: strata are not weighted.")
    part = Part("Graded questions", list(map(_head, domains)), tables, notes)
    return Report(part, {"verdicts": tasks, "groups_of_tasks": groups, "left_out": left_out})


def _findings(domain: Domain) -> Document:
    return {
        "task": domain.task,
        "captioner": domain.captioner.name,
        "annotators": sorted(set(domain.labels["annotator"])),
        "n_pairs": len(domain.pairs),
        "n_labelled": domain.labels["pair"].nunique(),
        "by": list(domain.by),
        "agreement": list(agreements_of(domain)),
        **score(domain.task, [domain]),
    }


def _head(domain: Domain) -> str:
    labels, seconds = domain.labels, domain.labels["seconds"]
    pace = f", {seconds[seconds > 0].median():.0f} s each (median)" if (seconds > 0).any() else ""
    how = "drawn at random"
    if domain.by:
        n_strata = len(set(strata_of(domain.pairs, domain.by)))
        how = f"stratified by {'+'.join(domain.by)} (strata weighted by their sizes: {n_strata})"
    return (
        f"{domain.task} of {domain.captioner.name}: {labels['pair'].nunique():,} of "
        f"{plural(len(domain.pairs), 'judged pair')} labelled, {how}; "
        f"{plural(len(labels), 'label')} by {', '.join(sorted(set(labels['annotator'])))}{pace}."
    )


def _name(found: Document) -> str:
    return f"{found.get('task') or found['group']} of {found['captioner']}"


def _agreements(tasks: Sequence[Document]) -> pd.DataFrame:
    rows = []
    for found in tasks:
        for of in found["agreement"]:
            shown = [
                f"{_COEFFICIENTS[k]} {with_interval(v, 3)}" for k, v in of["coefficients"].items()
            ]
            rows.append([_name(found), of["who"], f"{of['n_pairs']:,}", "; ".join(shown)])
    return table(["task", "raters", "pairs", "agreement"], rows)


def _corrected(several: Sequence[Document]) -> pd.DataFrame:
    rows = []
    for found in several:
        for metric, of in found["scores"].items():
            digits, corrected = _digits(found, metric), of["corrected"]
            intervals = [of["judge_all"], of["labels_alone"], corrected]
            lam = NONE if corrected is None else number(abs(corrected.lam))
            shown = [with_interval(value, digits) for value in intervals]
            rows.append(
                [_name(found), metric, *shown, lam, _narrower(corrected, of["labels_alone"])]
            )
    header = ["task", "metric", "judge on all", "labels alone", "corrected", "lambda", "narrower"]
    return table(header, rows)


def _digits(found: Document, metric: str) -> int:
    """Return the decimal places: one of percentages, two of grades."""
    task = found.get("task") or found["tasks"][0]
    return 1 if benchmark_of_task(task).metrics[metric].highest > _HIGHEST_GRADE else 2


def _narrower(corrected: Any, alone: Any) -> str:  # noqa: ANN401 - estimates
    if corrected is None or None in (corrected.low, alone.low) or alone.high == alone.low:
        return NONE
    return f"{1 - (corrected.high - corrected.low) / (alone.high - alone.low):.0%}"


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
                rows.append(
                    [
                        *(_name(found), of["group"], metric, f"{compared['n_labels']:,}"),
                        *(number(compared[side], digits) for side in ("judge", "people")),
                        with_interval(difference, digits, "+"),
                        p_text(difference and difference.p_value),
                    ]
                )
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
