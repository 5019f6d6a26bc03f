"""Report of graded questions: agreement, both scores next to each other, and the corrected one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final

from lmms_eval_captions.analysis.captioners import Captioner
from lmms_eval_captions.analysis.label.agreement import Agreement, agreements_of
from lmms_eval_captions.analysis.label.matching import Domain, domains_of
from lmms_eval_captions.analysis.label.pairs import strata_of
from lmms_eval_captions.analysis.label.scores import Compared, Scored, score, score_groups
from lmms_eval_captions.analysis.tables import (
    NONE,
    Part,
    number,
    p_text,
    plural,
    table,
    with_interval,
)

if TYPE_CHECKING:
    import pandas as pd

_COEFFICIENTS: Final = {"kappa": "kappa", "ac1": "AC1", "nominal": "alpha", "interval": "alpha"}
_HIGHEST_GRADE: Final = 10.0
"""Highest value of a metric that is shown with two decimal places."""


@dataclass(frozen=True, slots=True)
class Report:
    """Findings as text and as JSON."""

    part: Part
    document: dict[str, object]


def verdicts_report(labels: pd.DataFrame, captioners: Sequence[Captioner]) -> Report:
    """Report on labels of graded questions.

    Raises:
        DataError: If the labels are not of these runs.
    """
    domains, left_out = domains_of(labels, captioners)
    agreements = [list(agreements_of(domain)) for domain in domains]
    tasks = [score(domain.task, [domain]) for domain in domains]
    groups, group_notes = score_groups(domains)
    scored = [*tasks, *groups]
    tables = [
        ("Agreement (1 is complete, 0 is chance)", _agreements(tasks, agreements)),
        ("Scores by the judge, and corrected by labels", _corrected(scored)),
        ("Judge and people on the same labelled pairs", _differences(scored)),
    ]
    notes = [
        "Intervals are 95%, over videos.",
        "The corrected score assumes the sample that the page drew. It is given for means and "
        "ratios over pairs, not for con, and for a group of tasks if each of them has labels.",
        *_notes(scored),
        *group_notes,
        *left_out,
    ]
    if any(domain.by for domain in domains):
        notes.append("Agreement is over the pairs as drawn: strata are not weighted.")
    document: dict[str, object] = {
        "verdicts": list(map(_document, domains, agreements, tasks)),
        "groups_of_tasks": [
            {
                "group": of.name,
                "captioner": of.domains[0].captioner.name,
                "tasks": [domain.task for domain in of.domains],
                "scores": _scores(of.overall),
            }
            for of in groups
        ],
        "left_out": left_out,
    }
    return Report(Part("Graded questions", list(map(_head, domains)), tables, notes), document)


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


def _name(scored: Scored) -> str:
    return f"{scored.name} of {scored.domains[0].captioner.name}"


def _agreements(tasks: Sequence[Scored], agreements: Sequence[Sequence[Agreement]]) -> pd.DataFrame:
    rows = [
        [
            _name(task),
            agreement.who,
            f"{agreement.n_pairs:,}",
            "; ".join(
                f"{_COEFFICIENTS[kind]} {with_interval(value, 3)}"
                for kind, value in agreement.coefficients.items()
            ),
        ]
        for task, of in zip(tasks, agreements, strict=True)
        for agreement in of
    ]
    return table(["task", "raters", "pairs", "agreement"], rows)


def _corrected(several: Sequence[Scored]) -> pd.DataFrame:
    rows = []
    for scored in several:
        for metric, found in scored.overall.items():
            intervals = (found.judge_all, found.labels_alone, found.corrected)
            shown = [with_interval(of, _digits(scored, metric)) for of in intervals]
            lam = NONE if found.corrected is None else number(abs(found.corrected.lam))
            rows.append([_name(scored), metric, *shown, lam, _narrower(found)])
    header = ["task", "metric", "judge on all", "labels alone", "corrected", "lambda", "narrower"]
    return table(header, rows)


def _digits(scored: Scored, metric: str) -> int:
    """Return the decimal places: one of percentages, two of grades."""
    return 1 if scored.domains[0].table.benchmark.metrics[metric].highest > _HIGHEST_GRADE else 2


def _narrower(compared: Compared) -> str:
    """Format how much narrower the corrected interval is than that of the labels alone."""
    widths = [
        found.high - found.low
        for found in (compared.corrected, compared.labels_alone)
        if found is not None and found.low is not None and found.high is not None
    ]
    return f"{1 - widths[0] / widths[1]:.0%}" if len(widths) > 1 and widths[1] else NONE


def _differences(several: Sequence[Scored]) -> pd.DataFrame:
    """Return the numbers of VidCapBench's Tables 4 and 11, with intervals of the differences."""
    rows = []
    for scored in several:
        # JSON has the groups of all sections.
        section = next((section for section, _ in scored.groups), None)
        groups = {name: found for (of, name), found in scored.groups.items() if of == section}
        for group, found in {"all": scored.overall, **groups}.items():
            for metric, compared in found.items():
                digits, difference = _digits(scored, metric), compared.difference
                rows.append([
                    _name(scored),
                    group,
                    metric,
                    f"{compared.n_labels:,}",
                    number(compared.judge, digits),
                    number(compared.people, digits),
                    with_interval(difference, digits, "+"),
                    p_text(None if difference is None else difference.p_value),
                ])  # fmt: skip
    header = ["task", "group", "metric", "labels", "judge", "people", "people minus judge", "p"]
    return table(header, rows)


def _notes(several: Sequence[Scored]) -> Iterator[str]:
    """Yield what must be known of these numbers, each note once."""
    owners: dict[str, list[str]] = {}
    for scored in several:
        for metric, found in scored.overall.items():
            for note in (found.note, found.corrected.note if found.corrected else ""):
                owners.setdefault(note, []).append(f"{metric} of {_name(scored)}")
    owners.pop("", None)
    for note, names in owners.items():
        yield f"{', '.join(names)}: {note}"


def _document(domain: Domain, agreements: Sequence[Agreement], scored: Scored) -> dict[str, Any]:
    return {
        "task": domain.task,
        "captioner": domain.captioner.name,
        "annotators": sorted(set(domain.labels["annotator"])),
        "n_pairs": len(domain.pairs),
        "n_labelled": domain.labels["pair"].nunique(),
        "by": list(domain.by),
        "agreement": [asdict(agreement) for agreement in agreements],
        "scores": _scores(scored.overall),
        "groups": [
            {"section": section, "group": name, "scores": _scores(found)}
            for (section, name), found in scored.groups.items()
        ],
    }


def _scores(found: Mapping[str, Compared]) -> dict[str, Any]:
    return {metric: asdict(compared) for metric, compared in found.items()}
