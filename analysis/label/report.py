"""What ``labels`` prints, as lines and as a document."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from math import isnan
from statistics import median
from typing import Any, Final

from lmms_eval_captions.analysis.label.agreement import Agreement, agreements_of
from lmms_eval_captions.analysis.label.corrected import (
    Compared,
    compare,
    design_notes,
)
from lmms_eval_captions.analysis.label.groups import ComparedGroup, compared_groups
from lmms_eval_captions.analysis.label.label_file import VerdictLabel
from lmms_eval_captions.analysis.label.matching import Domain, domains_of
from lmms_eval_captions.analysis.verdicts.captioners import Captioner
from lmms_eval_captions.lmms_eval_tasks.benchmark import Benchmark
from lmms_eval_captions.lmms_eval_tasks.text_table import text_table
from lmms_eval_captions.metrics.intervals import Interval
from lmms_eval_captions.metrics.ppi import Corrected

_NONE: Final = "-"
_NAMES: Final = {
    "kappa": "kappa",
    "ac1": "AC1",
    "nominal": "alpha",
    "interval": "alpha (of numbers)",
}
_COEFFICIENT_DIGITS: Final = 3
_GRADES: Final = 10.0
"""Highest value of a metric that is shown with two digits."""


@dataclass(frozen=True, slots=True)
class Report:
    """What is said of labels."""

    lines: list[str]
    document: dict[str, object]


@dataclass(frozen=True, slots=True)
class _Scored:
    """The numbers of a task, or of a group of tasks, of one captioner."""

    name: tuple[str, str]
    benchmark: Benchmark[Any, Any]
    overall: Mapping[str, Compared]
    groups: Mapping[tuple[str, str], Mapping[str, Compared]]


@dataclass(frozen=True, slots=True)
class _Found(_Scored):
    """All that is said of one domain."""

    domain: Domain
    agreements: Sequence[Agreement]


def verdicts_report(labels: Sequence[VerdictLabel], captioners: Sequence[Captioner]) -> Report:
    """Agreement, both scores beside each other, and the corrected one, of graded questions.

    Raises:
        DataError: If the labels are not of these runs.
    """
    domains, left_out = domains_of(labels, captioners)
    found = [_of_domain(domain) for domain in domains]
    of_groups, group_notes = compared_groups(domains, captioners)
    scored: list[_Scored] = [
        *found,
        *(
            _Scored((each.name, each.captioner), each.benchmark, each.scores, {})
            for each in of_groups
        ),
    ]
    lines = [line for of_domain in found for line in _head(of_domain)]
    lines += ["", "Agreement (1 is full, 0 is chance) with 95 % intervals over videos:"]
    lines += text_table(list(_agreement_rows(found)), n_left=3)
    if any(each.domain.by for each in found):
        lines.append("note: it is that of the pairs as drawn: strata are not weighed here")
    lines += ["", "Scores with 95 % intervals over videos, and what labels make of the judge's:"]
    lines += text_table(list(_score_rows(scored)), n_left=3)
    lines += _notes(scored)
    lines += ["", "Judge and people on the same labelled pairs, and how far they are apart:"]
    for rows in _table_4(scored):
        lines += [*text_table(rows, n_left=2), ""]
    for title, rows in _table_11(found):
        lines += [title, *text_table(rows, n_left=3), ""]
    lines += ["People less judge on the same pairs, with 95 % intervals over videos:"]
    lines += text_table(list(_difference_rows(scored)), n_left=4)
    lines += [f"note: {text}" for text in (*group_notes, *left_out)]
    document = {
        "verdicts": [_document(each) for each in found],
        "groups_of_tasks": [_group_document(each) for each in of_groups],
        "left_out": left_out,
    }
    return Report(lines, document)


def _of_domain(domain: Domain) -> _Found:
    benchmark = domain.pairs[0].benchmark
    labelled = [pair for pair in domain.pairs if domain.labelled(pair)]
    groups = {
        (section, name): {m: compare(domain, m, (section, name)) for m in benchmark.metrics}
        for section, names in benchmark.sections.items()
        for name in names
        if any(pair.group(section) == name for pair in labelled)
        and any(pair.group(section) != name for pair in domain.pairs)
    }
    overall = {metric: compare(domain, metric) for metric in benchmark.metrics}
    name = domain.task, domain.captioner
    return _Found(name, benchmark, overall, groups, domain, agreements_of(domain))


def _of_group(compared: ComparedGroup) -> _Scored:
    return _Scored((compared.name, compared.captioner), compared.benchmark, compared.scores, {})


def _head(found: _Found) -> Iterator[str]:
    domain = found.domain
    some = [label for labels in domain.labels.values() for label in labels]
    seconds = [label.seconds for label in some if label.seconds > 0]
    pace = f", {median(seconds):.0f} s each in the median" if seconds else ""
    yield (
        f"{domain.task}, {domain.captioner}: {design_notes(domain)[0]}; {len(some)} labels by "
        f"{', '.join(domain.annotators)}{pace}"
    )


def _agreement_rows(found: Sequence[_Found]) -> Iterator[tuple[str, ...]]:
    yield "task", "captioner", "who", "pairs", "agreement"
    for each in found:
        for agreement in each.agreements:
            shown = [
                f"{_NAMES[kind]} {_interval(value, _COEFFICIENT_DIGITS)}"
                for kind, value in agreement.coefficients.items()
            ]
            yield (*each.name, agreement.who, str(agreement.n_pairs), "; ".join(shown))


def _score_rows(found: Sequence[_Scored]) -> Iterator[tuple[str, ...]]:
    yield (
        "task", "captioner", "metric", "judge on all", "labels alone", "corrected", "lambda",
        "narrower",
    )  # fmt: skip
    for each in found:
        for metric, compared in each.overall.items():
            corrected = compared.corrected
            digits = _digits(each, metric)
            yield (
                *each.name,
                metric,
                _interval(compared.judge_all, digits),
                _interval(compared.labels_alone, digits),
                _interval(corrected, digits),
                _NONE if corrected is None else f"{corrected.lam:.2f}",
                _narrower(compared),
            )


def _notes(found: Sequence[_Scored]) -> list[str]:
    """What must be known of the numbers above, each said once."""
    lines = [
        "The corrected score assumes the sample that the page drew. It is given for means and",
        "ratios over pairs, not for con; for a group of tasks where each of them has labels.",
    ]
    said: dict[str, list[str]] = {}
    for each in found:
        for metric, compared in each.overall.items():
            corrected = compared.corrected
            for note in (compared.note, "" if corrected is None else corrected.note):
                if note:
                    said.setdefault(note, []).append(f"{' '.join(each.name)} {metric}")
    return lines + [f"note ({', '.join(names)}): {note}" for note, names in said.items()]


def _digits(found: _Scored, metric: str) -> int:
    """Digits behind the point: one of percentages, two of grades."""
    return 1 if found.benchmark.metrics[metric].highest > _GRADES else 2


def _narrower(compared: Compared) -> str:
    widths = [
        interval.high - interval.low
        for interval in (compared.corrected, compared.labels_alone)
        if interval is not None and interval.low is not None and interval.high is not None
    ]
    return f"{1 - widths[0] / widths[1]:.0%}" if len(widths) > 1 and widths[1] else _NONE


def _table_4(found: Sequence[_Scored]) -> Iterator[list[list[str]]]:
    """Rows by task and captioner, a table for each benchmark: VidCapBench's Table 4."""
    for metrics in dict.fromkeys(tuple(each.overall) for each in found):
        heads = [name for metric in metrics for name in (f"{metric} judge", "people", "diff.")]
        rows = [["task", "captioner", *heads]]
        for each in found:
            if tuple(each.overall) == metrics:
                cells = [
                    cell
                    for metric in metrics
                    for cell in _apart(each.overall[metric], _digits(each, metric))
                ]
                rows.append([*each.name, *cells])
        yield rows


def _apart(compared: Compared, digits: int) -> tuple[str, str, str]:
    apart = abs(compared.people - compared.judge)
    numbers = [_number(each, digits) for each in (compared.judge, compared.people, apart)]
    return numbers[0], numbers[1], numbers[2]


def _table_11(found: Sequence[_Found]) -> Iterator[tuple[str, list[list[str]]]]:
    """Two rows for each task and captioner, by a section's groups: VidCapBench's Table 11."""
    sections = dict.fromkeys(
        (tuple(each.overall), _first_section(each)) for each in found if each.groups
    )
    for metrics, section in sections:
        of_benchmark = [each for each in found if tuple(each.overall) == metrics]
        names = dict.fromkeys(
            name for each in of_benchmark for of, name in each.groups if of == section
        )
        rows = [["task", "captioner", "mode", *names]]
        for each in of_benchmark:
            for mode in ("judge", "people"):
                cells = [
                    _cell(each.groups.get((section, name)), metrics, mode=mode) for name in names
                ]
                rows.append([*each.name, mode, *cells])
        title = f"By {section}, {' / '.join(metrics)}, judge above people:"
        yield title, rows


def _first_section(found: _Scored) -> str:
    """The section of the breakdown that is printed; the document has all."""
    return next((section for section, _ in found.groups), "")


def _cell(compared: Mapping[str, Compared] | None, metrics: Sequence[str], *, mode: str) -> str:
    if compared is None:
        return _NONE
    sides = (compared[m].judge if mode == "judge" else compared[m].people for m in metrics)
    return " / ".join(map(_number, sides))


def _difference_rows(found: Sequence[_Scored]) -> Iterator[tuple[str, ...]]:
    yield "task", "captioner", "group", "metric", "labels", "people - judge", "p"
    for each in found:
        section = _first_section(each)
        of_section = {name: some for (of, name), some in each.groups.items() if of == section}
        groups = {"all": each.overall, **of_section}
        for name, of_group in groups.items():
            for metric, compared in of_group.items():
                difference = compared.difference
                if difference is not None and not isnan(difference.difference):
                    low, high = difference.low, difference.high
                    digits = _digits(each, metric)
                    has_ends = low is not None and high is not None
                    ends = f" [{low:+.{digits}f}, {high:+.{digits}f}]" if has_ends else ""
                    p_value = difference.p_value
                    yield (
                        *each.name, name, metric, str(compared.n_labels),
                        f"{difference.difference:+.{digits}f}{ends}",
                        _NONE if p_value is None else f"{p_value:.3f}",
                    )  # fmt: skip


def _interval(found: Interval | Corrected | None, digits: int = 1) -> str:
    if found is None or isnan(found.value):
        return _NONE
    value = f"{found.value:.{digits}f}"
    if found.low is None or found.high is None:
        return value
    return f"{value} [{found.low:.{digits}f}, {found.high:.{digits}f}]"


def _number(value: float, digits: int = 1) -> str:
    return _NONE if isnan(value) else f"{value:.{digits}f}"


def _document(found: _Found) -> dict[str, object]:
    domain = found.domain
    return {
        "task": domain.task,
        "captioner": domain.captioner,
        "annotators": domain.annotators,
        "n_pairs": len(domain.pairs),
        "n_labelled": len(domain.labels),
        "by": list(domain.by),
        "agreement": [asdict(agreement) for agreement in found.agreements],
        "scores": {name: asdict(compared) for name, compared in found.overall.items()},
        "groups": [
            {"section": section, "group": name}
            | {"scores": {metric: asdict(compared) for metric, compared in of_group.items()}}
            for (section, name), of_group in found.groups.items()
        ],
    }


def _group_document(found: ComparedGroup) -> dict[str, object]:
    return {
        "group": found.name,
        "captioner": found.captioner,
        "tasks": list(found.tasks),
        "scores": {name: asdict(compared) for name, compared in found.scores.items()},
    }
