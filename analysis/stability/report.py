"""The stability of a task or a group as a part of a report."""

from __future__ import annotations

from collections.abc import Iterator
from math import isnan
from typing import Final

from lmms_eval_captions.analysis.stability.document import Document
from lmms_eval_captions.analysis.stability.notes import judges_of
from lmms_eval_captions.analysis.stability.shares import Row, Share
from lmms_eval_captions.analysis.stability.split import Split
from lmms_eval_captions.lmms_eval_tasks.table_formats import Part, Table

_NONE: Final = "-"
_COARSE: Final = 100.0
"""Highest value of metrics that are shown with two digits behind the point, not with four."""


def part_of(document: Document) -> Part:
    """What is told of a task or a group."""
    opinions = document.opinions
    n_videos = len({video for _, video, _, _ in opinions.asked})
    sentences = [
        f"{len(opinions.asked):,} questions about {n_videos:,} videos, judged by "
        f"{', '.join(judges_of(opinions))}; {opinions.n_runs} judge runs are compared. Intervals "
        "are of 95 %, clustered by video."
    ]
    title = f"{opinions.name}: how often the judge says the same"
    return Part(title, sentences, list(_tables(document)), document.notes)


def part_of_split(done: Split) -> Part:
    """What was written, and how it is used."""
    fates: dict[str, int] = {}
    for of_file in done.files.values():
        for fate, n in of_file.items():
            fates[fate] = fates.get(fate, 0) + n
    why = ", ".join(f"{n:,} {fate}" for fate, n in fates.items())
    rows = [
        (f"{done.benchmark}-{part}", f"LMMS_CAPTIONS_DATA={folder}", f"{done.n_of(part):,}")
        for part, folder in done.folders.items()
    ]
    return Part(
        f"{done.benchmark}: {sum(fates.values()):,} questions split",
        [f"What became of them: {why}."],
        [Table(("part", "to be read with", "questions"), rows, n_left=2)],
    )


def _tables(document: Document) -> Iterator[Table]:
    yield _overall(document)
    if len(document.rows.rows) > 1:
        yield from _sections(document)
    if sum(document.times):
        yield _times(document)
    if document.selected:
        yield _scores(document)
    if document.noises:
        yield _noise(document)


def _overall(document: Document) -> Table:
    row = document.rows.rows[0]
    shares = list(zip(document.opinions.captioners, row.captioners, strict=True))
    if len(shares) > 1:
        shares.append((f"all {len(shares)} captioners", row.together))
    rows = [
        (
            name,
            _percent(share),
            _ends(share),
            f"{share.n_known:,}",
            f"{row.n_questions - share.n_known:,}",
        )
        for name, share in shares
    ]
    title = f"Questions with the same verdict in all {document.opinions.n_runs} judge runs, %"
    return Table(("captions of", "same", "interval", "questions", "not known"), rows, title=title)


def _sections(document: Document) -> Iterator[Table]:
    captioners = document.opinions.captioners
    names = captioners if len(captioners) == 1 else (*captioners, "all")
    for section in dict.fromkeys(row.section for row in document.rows.rows[1:]):
        of_section = [row for row in document.rows.rows if row.section == section]
        rows = [_group(row) for row in of_section]
        n_others = document.rows.n_others.get(section, 0)
        if n_others:
            rows.append((f"and {n_others:,} more", *[""] * (len(names) + 2)))
        header = (section, *names, f"interval of {names[-1]}", "questions")
        yield Table(header, rows, title=f"The same by {section}")


def _group(row: Row) -> tuple[str, ...]:
    shares = row.captioners if len(row.captioners) == 1 else (*row.captioners, row.together)
    return (row.name, *map(_percent, shares), _ends(shares[-1]), f"{row.n_questions:,}")


def _times(document: Document) -> Table:
    total = sum(document.times)
    n_captioners = len(document.opinions.captioners)
    rows = [
        (str(n_captioners - place), f"{n:,}", f"{100 * n / total:.0f}%")
        for place, n in enumerate(document.times)
    ]
    return Table(
        ("Consistent Times", "# Samples", "Proportion"),
        [*rows, ("Total", f"{total:,}", "100%")],
        title="For how many captioners a question has it (as VidCapBench, Table 8)",
    )


def _scores(document: Document) -> Table:
    metrics = list(dict.fromkeys(score.metric for score in document.selected))
    rows: list[tuple[str, ...]] = []
    for captioner in document.opinions.captioners:
        of_one = [score for score in document.selected if score.captioner == captioner]
        full = (_number(document, score.metric, score.full) for score in of_one)
        stable = (_number(document, score.metric, score.stable) for score in of_one)
        rows += [(captioner, "full", *full), ("", "stable", *stable)]
    return Table(
        ("captions of", "questions", *metrics),
        rows,
        n_left=2,
        title="Scores over all questions and over those that are stable for all (as Table 2)",
    )


def _noise(document: Document) -> Table:
    runs = document.noises[0].floors
    rows = [
        (
            noise.metric,
            *(_number(document, noise.metric, floor) for floor in noise.floors.values()),
            _NONE
            if document.opinions.n_runs < 2
            else _number(document, noise.metric, noise.largest_seen),
        )
        for noise in document.noises
    ]
    return Table(
        ("metric", *(f"{n} run{'' if n == 1 else 's'}" for n in runs), "largest seen"),
        rows,
        title="Noise floor: on the same videos, captioners equally good to this judge differ by "
        "less (95 %)",
    )


def _percent(share: Share) -> str:
    return _NONE if isnan(share.interval.value) else f"{share.interval.value:.1f}"


def _ends(share: Share) -> str:
    low, high = share.interval.low, share.interval.high
    return _NONE if low is None or high is None else f"{low:.1f} to {high:.1f}"


def _number(document: Document, metric: str, value: float) -> str:
    """A value of a metric."""
    n_places = 2 if document.opinions.benchmark.metrics[metric].highest >= _COARSE else 4
    return _NONE if isnan(value) else f"{value:.{n_places}f}"
