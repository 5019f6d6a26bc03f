"""Output of ``compare``: an answer in a sentence, the ranking, and tables; or JSON and CSV."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from lmms_eval_captions.analysis.compare.comparison import Compared, Contrast, Document, Row
from lmms_eval_captions.analysis.compare.gate import exit_code
from lmms_eval_captions.analysis.tables import (
    NONE,
    Part,
    interval_text,
    listed,
    number,
    p_text,
    p_words,
    shortened,
    table,
    with_interval,
)
from lmms_eval_captions.lmms_eval_tasks.benchmark import Metric
from lmms_eval_captions.metrics.paired import videos_to_settle

_STAR = " *"


def part_of(compared: Compared, names: Sequence[str]) -> Part:
    """Return the report on one task or group."""
    counts = compared.counts
    left_out = counts.left_out()
    judge = "Measured without a judge" if compared.benchmark.measure else f"Judge: {compared.judge}"
    sentences = [
        *(f"WARNING: {warning}" for warning in compared.warnings),
        *answer(compared, names),
        f"{judge}. Compared on {counts.n_questions:,} questions about {counts.n_videos:,} videos "
        f"that all have a verdict on{f'; left out: {left_out}' if left_out else ''}.",
    ]
    tables = [
        *_ranking(compared, names),
        *_other_metrics(compared, names),
        *(t for section in compared.sections for t in _section(compared, section, names)),
        *_questions(compared, names),
        *_videos(compared, names),
        _lengths(compared, names),
    ]
    return Part(compared.name, sentences, tables, list(_notes(compared, names)))


def overview(compared: Sequence[Compared], names: Sequence[str], left_out: Sequence[str]) -> Part:
    """Return the answers of all tasks and groups."""
    sentences = [sentence for one in compared for sentence in answer(one, names)]
    title = f"{listed(names[1:])} against {names[0]}"
    return Part(title, [*sentences, *(f"Left out: {why}." for why in left_out)])


def answer(compared: Compared, names: Sequence[str]) -> list[str]:
    """Return which captioner is best, by how much, and whether that is significant."""
    ranking, headline = compared.ranking, compared.headline(compared.overall)
    if not ranking or not headline:
        return []
    row, metric = headline[0], compared.benchmark.metrics[compared.benchmark.headline]
    leader = ranking[0].captioner
    what = f"on {compared.benchmark.headline} of {compared.name}"
    if any(one.outcome == "unknown" for one in row.contrasts.values()):
        notes = dict.fromkeys(one.difference.note for one in row.contrasts.values())
        return [f"No comparison {what}: {'; '.join(filter(None, notes))}."]
    ties = [one.captioner for one in ranking[1:] if not _is_ahead(row, leader, one.captioner)]
    if not ties:
        rest = "the others" if len(names) > 2 else names[ranking[1].captioner]
        ahead = _ahead(row, leader, ranking[1].captioner, metric)
        over = f" over {names[ranking[1].captioner]}" if len(names) > 2 else ""
        return [f"{names[leader]} is significantly better than {rest} {what}: {ahead}{over}."]
    ahead = _ahead(row, leader, ties[0], metric)
    words = [
        f"No significant winner {what}: {names[leader]} scores highest, {ahead} over "
        f"{names[ties[0]]}."
    ]
    others = [one.captioner for one in ranking[1:] if one.captioner not in ties]
    if others:
        words.append(
            f"{names[leader]} is significantly better than {listed([names[i] for i in others])}."
        )
    found = _contrast(row, leader, ties[0]).difference
    n_videos = videos_to_settle(found)
    if n_videos is not None and n_videos > found.n_videos:
        words.append(
            f"Telling {names[leader]} from {names[ties[0]]} would take about {n_videos:,} videos "
            f"(you have {found.n_videos:,})."
        )
    return [" ".join(words)]


def document(
    compared: Sequence[Compared],
    left_out: Sequence[str],
    decided: Sequence[Document],
    captioners: Sequence[tuple[str, str]],
) -> dict[str, Any]:
    """Return everything that was found as JSON.

    Args:
        compared: Tasks and groups.
        left_out: Why others were left out.
        decided: Gates.
        captioners: Name and results file of each.
    """
    names = [name for name, _ in captioners]
    return {
        "baseline": names[0],
        "captioners": [{"name": name, "results": path} for name, path in captioners],
        "compared": [_document(one, names) for one in compared],
        "left_out": list(left_out),
        "gates": list(decided),
        **({"exit_code": exit_code(decided)} if decided else {}),
    }


def lines(compared: Compared, names: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Yield a line per captioner of each row: its value, and its difference to the first."""
    for row in (*compared.overall, *(r for rows in compared.sections.values() for r in rows)):
        cell = row.cell
        metric = compared.benchmark.metrics[cell.metric]
        for place, (name, value) in enumerate(zip(names, row.values, strict=True)):
            line = {
                "task": cell.name, "section": cell.section, "group": cell.group,
                "metric": cell.metric, "higher_is_better": metric.higher_is_better,
                "captioner": name, "value": value.value, "low": value.low, "high": value.high,
                "n_videos": value.n_videos, "note": value.note,
            }  # fmt: skip
            found = _difference(row.contrasts[0, place]) if place else dict.fromkeys(_DIFFERENCE)
            yield {**line, "baseline": names[0] if place else None, **found}


_DIFFERENCE = (
    "difference", "difference_low", "difference_high", "p", "simultaneous_low",
    "simultaneous_high", "p_adjusted", "outcome", "difference_note",
)  # fmt: skip


def _difference(contrast: Contrast) -> dict[str, Any]:
    found, ends = contrast.difference, contrast.interval or (None, None)
    values = (
        found.difference, found.low, found.high, found.p_value, *ends, contrast.p_value,
        contrast.outcome, found.note,
    )  # fmt: skip
    return dict(zip(_DIFFERENCE, values, strict=True))


def _document(one: Compared, names: Sequence[str]) -> dict[str, Any]:
    rows = one.headline(one.overall)
    return {
        "task": one.name,
        "benchmark": one.benchmark.name,
        "headline": one.benchmark.headline,
        "summary": answer(one, names),
        "judge": one.judge,
        "warnings": list(one.warnings),
        "counts": asdict(one.counts),
        "rows": list(lines(one, names)),
        "ranking": [
            {"captioner": names[r.captioner], "value": r.value, "best": r.best, "worst": r.worst}
            for r in one.ranking
        ],
        "pairs": [
            {"captioner": names[b], "baseline": names[a], **_difference(contrast)}
            for row in rows
            for (a, b), contrast in row.contrasts.items()
        ],
        "flips": {names[i]: flips for i, flips in one.flips.items()},
        "moved": {names[i]: moved for i, moved in one.moved.items()},
        "lengths": [
            {"captioner": name, **length} for name, length in zip(names, one.lengths, strict=True)
        ],
    }


def _contrast(row: Row, a: int, b: int) -> Contrast:
    return row.contrasts[min(a, b), max(a, b)]


def _is_ahead(row: Row, leader: int, other: int) -> bool:
    return _contrast(row, leader, other).outcome in ("better", "worse")


def _ahead(row: Row, leader: int, other: int, metric: Metric) -> str:
    """Format the leader minus another captioner, with the simultaneous interval."""
    contrast = _contrast(row, leader, other)
    sign = 1 if other < leader else -1
    low, high = contrast.interval or (None, None)
    if sign < 0 and low is not None and high is not None:
        low, high = -high, -low
    unit = " points" if metric.highest == 100 else ""
    shown = interval_text(sign * contrast.difference.difference, low, high, sign="+")
    value, _, ends = shown.partition(" ")
    words = f"{value}{unit} {ends}".rstrip()
    return f"{words} ({p_words(contrast.p_value)})" if contrast.p_value is not None else words


def _simultaneous(contrast: Contrast) -> str:
    low, high = contrast.interval or (None, None)
    return interval_text(contrast.difference.difference, low, high, sign="+")


def _ranking(compared: Compared, names: Sequence[str]) -> Iterator[tuple[str, Any]]:
    headline = compared.benchmark.headline
    for row in compared.headline(compared.overall):
        order = [one.captioner for one in compared.ranking] or range(len(names))
        ranks = {one.captioner: _rank(one.best, one.worst) for one in compared.ranking}
        rows = [
            [names[i], with_interval(row.values[i]), ranks.get(i, NONE), *_minus_first(row, i)]
            for i in order
        ]
        header = ["captioner", headline, "rank", f"minus {shortened(names[0], 20)}", "p", "result"]
        yield "", table(header, rows)


def _minus_first(row: Row, place: int) -> list[str]:
    """Return a captioner's difference to the first, p-value and result; empty for the first."""
    if not place:
        return ["", "", ""]
    contrast = row.contrasts[0, place]
    return [_simultaneous(contrast), p_text(contrast.p_value), contrast.outcome]


def _rank(best: int, worst: int) -> str:
    return str(best) if best == worst else f"{best}-{worst}"


def _other_metrics(compared: Compared, names: Sequence[str]) -> Iterator[tuple[str, Any]]:
    rows = []
    for row in compared.overall:
        name = row.cell.metric
        if name == compared.benchmark.headline:
            continue
        is_higher_better = compared.benchmark.metrics[name].higher_is_better
        label = name if is_higher_better else f"{name} (lower is better)"
        for place, value in enumerate(row.values):
            line = ["" if place else label, names[place], with_interval(value)]
            rows.append([*line, *_minus_first(row, place)])
    header = ["metric", "captioner", "value", f"minus {shortened(names[0], 20)}", "p", "result"]
    if rows:
        yield "Other metrics", table(header, rows)


def _section(compared: Compared, section: str, names: Sequence[str]) -> Iterator[tuple[str, Any]]:
    """Yield the headline in each group; a star marks a significant difference to the first."""
    rows = compared.headline(compared.sections[section])
    cells = []
    for row in rows:
        values = [number(value.value) for value in row.values]
        for place in range(1, len(names)):
            if row.contrasts[0, place].outcome in ("better", "worse"):
                values[place] += _STAR
        line = [shortened(row.cell.group), *values]
        if len(names) == 2:
            contrast = row.contrasts[0, 1]
            line += [_simultaneous(contrast), p_text(contrast.p_value)]
        n_videos = max(value.n_videos for value in row.values)
        cells.append([*line, f"{n_videos:,}"])
    of_two = ["difference", "p"] if len(names) == 2 else []
    header = [_plain(section), *(shortened(name, 16) for name in names), *of_two, "videos"]
    beyond = (
        f", the {len(rows)} largest groups ({compared.n_groups_left_out:,} more)"
        if compared.n_groups_left_out and section != "tasks"
        else ""
    )
    yield f"{compared.benchmark.headline} by {_plain(section)}{beyond}", table(header, cells)


def _questions(compared: Compared, names: Sequence[str]) -> Iterator[tuple[str, Any]]:
    if compared.flips:
        flips = compared.flips.items()
        rows = [[names[i], *(f"{f[n]:,}" for n in ("n_gained", "n_lost", "n_same"))]
                for i, f in flips]  # fmt: skip
        what = "higher" if next(iter(compared.flips.values()))["is_graded"] else "right"
        only = f"{what} for {shortened(names[0], 20)} only"
        header = ["captioner", f"{what} here only", only, "same"]
        yield "Questions by their verdicts", table(header, rows)


def _videos(compared: Compared, names: Sequence[str]) -> Iterator[tuple[str, Any]]:
    for other, moved in compared.moved.items():
        rows = [
            [shortened(of["video"]), f"{of['n_questions']:,}", number(of["first"]),
             number(of["other"]), f"{of['effect']:+.3f}"]
            for of in moved
        ]  # fmt: skip
        short = [shortened(names[i], 16) for i in (0, other)]
        header = ["video", "questions", *short, "effect on difference"]
        if rows:
            yield f"Videos that differ most, {names[other]} minus {names[0]}", table(header, rows)


def _lengths(compared: Compared, names: Sequence[str]) -> tuple[str, Any]:
    tokens = any(length["tokens"] is not None for length in compared.lengths)
    rows = [
        [name, f"{of['n_captions']:,}", f"{of['n_empty']:,}", number(of["words"], 1),
         *([number(of["tokens"], 1)] if tokens else [])]
        for name, of in zip(names, compared.lengths, strict=True)
    ]  # fmt: skip
    header = ["captioner", "captions", "empty", "words per caption"]
    return "Caption length", table([*header, *(["T5 tokens"] if tokens else [])], rows)


def _notes(compared: Compared, names: Sequence[str]) -> Iterator[str]:
    pairs = f", {len(names)} captioners" if len(names) > 2 else ""
    yield (
        f"Scores have 95% intervals over videos. Differences have simultaneous 95% intervals and "
        f"adjusted p-values: one family per metric of all tasks of {compared.benchmark.name} and "
        f"their groups{pairs}, whatever is shown."
    )
    if compared.sections:
        yield f"* differs significantly from {names[0]} (p < 0.05)."
    yield "tied: no significant difference, which does not mean that captioners are equally good."
    notes = dict.fromkeys(
        f"{row.cell.group if row.cell.section != 'overall' else row.cell.metric}: {note}"
        for rows in (compared.overall, *compared.sections.values())
        for row in compared.headline(rows)
        for note in (c.difference.note for (a, _), c in row.contrasts.items() if not a)
        if note
    )
    yield from notes
    shown = {row.cell.metric for row in compared.overall}
    missing = [name for name in compared.benchmark.metrics if name not in shown]
    if missing:
        yield f"{', '.join(missing)}: cannot be computed for all captioners."


def _plain(section: str) -> str:
    return section.replace("_", " ")
