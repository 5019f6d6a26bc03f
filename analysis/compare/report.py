"""Output of ``compare``: an answer in a sentence, the ranking, and tables; or JSON and CSV."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import isnan, nan
from typing import TYPE_CHECKING, Any

from lmms_eval_captions.analysis.captioners import Captioner
from lmms_eval_captions.analysis.compare.comparison import Compared, Contrast, Document, Row
from lmms_eval_captions.analysis.compare.gate import exit_code
from lmms_eval_captions.analysis.tables import (
    Part,
    interval_text,
    listed,
    number,
    p_text,
    p_words,
    shortened,
    table,
)
from lmms_eval_captions.metrics.paired import videos_to_settle

if TYPE_CHECKING:
    import pandas as pd

_SIGNIFICANT = ("better", "worse")


def part_of(compared: Compared, names: Sequence[str]) -> Part:
    """Return the report on one task or group."""
    judge = "Measured without a judge" if compared.benchmark.measure else f"Judge: {compared.judge}"
    sentences = [
        *(f"WARNING: {warning}" for warning in compared.warnings),
        *answer(compared, names),
        f"{judge}. {compared.counts.scope()}.",
    ]
    return Part(
        compared.name, sentences, list(_tables(compared, names)), list(_notes(compared, names))
    )


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
    row, name = headline[0], compared.benchmark.headline
    leader, second = ranking[0].captioner, ranking[1].captioner
    what = f"on {name} of {compared.name}"
    contrasts = {
        one.captioner: row.contrasts[min(leader, one.captioner), max(leader, one.captioner)]
        for one in ranking[1:]
    }
    if any(one.outcome == "unknown" for one in row.contrasts.values()):
        notes = dict.fromkeys(one.difference.note for one in row.contrasts.values())
        return [f"No comparison {what}: {'; '.join(filter(None, notes))}."]
    ties = [place for place, of in contrasts.items() if of.outcome not in _SIGNIFICANT]
    shown = ties[0] if ties else second
    closest = contrasts[shown]
    ahead = _ahead(closest, 1 if shown < leader else -1, compared.benchmark.metrics[name].highest)
    if not ties:
        rest, over = names[second], ""
        if len(names) > 2:
            rest, over = "the others", f" over {names[second]}"
        return [f"{names[leader]} is significantly better than {rest} {what}: {ahead}{over}."]
    words = f"No significant winner {what}: {names[leader]} scores highest, {ahead} over "
    words += f"{names[shown]}."
    others = [names[place] for place in contrasts if place not in ties]
    if others:
        words += f" {names[leader]} is significantly better than {listed(others)}."
    found = closest.difference
    n_videos = videos_to_settle(found)
    if n_videos is not None and n_videos > found.n_videos:
        words += (
            f" Telling {names[leader]} from {names[shown]} would take about {n_videos:,} videos "
            f"(you have {found.n_videos:,})."
        )
    return [words]


def _ahead(contrast: Contrast, sign: int, highest: float) -> str:
    """Format the leader minus another captioner, with the simultaneous interval."""
    low, high = sorted(sign * end for end in contrast.interval or (nan, nan))
    ends = "" if isnan(low) else f" [{low:+.2f}, {high:+.2f}]"
    unit = " points" if highest == 100 else ""
    p = f" ({p_words(contrast.p_value)})" if contrast.p_value is not None else ""
    return f"{sign * contrast.difference.difference:+.2f}{unit}{ends}{p}"


def document(
    compared: Sequence[Compared],
    left_out: Sequence[str],
    decided: Sequence[Document],
    captioners: Sequence[Captioner],
) -> dict[str, Any]:
    """Return everything that was found as JSON."""
    names = [of.name for of in captioners]
    return {
        "baseline": names[0],
        "captioners": [{"name": of.name, "results": str(of.newest.path)} for of in captioners],
        "compared": [_document(one, names) for one in compared],
        "left_out": list(left_out),
        "gates": list(decided),
        **({"exit_code": exit_code(decided)} if decided else {}),
    }


def _document(one: Compared, names: Sequence[str]) -> dict[str, Any]:
    return {
        "task": one.name,
        "benchmark": one.benchmark.name,
        "headline": one.benchmark.headline,
        "summary": answer(one, names),
        "judge": one.judge,
        "warnings": list(one.warnings),
        "counts": one.counts._asdict(),
        "rows": list(_rows(one, names)),
        "ranking": [{**r._asdict(), "captioner": names[r.captioner]} for r in one.ranking],
        "pairs": [
            {"captioner": names[b], "baseline": names[a], **_difference(contrast)}
            for row in one.headline(one.overall)
            for (a, b), contrast in row.contrasts.items()
        ],
        "flips": {names[i]: flips for i, flips in one.flips.items()},
        "moved": {names[i]: moved for i, moved in one.moved.items()},
        "lengths": [
            {"captioner": name, **length} for name, length in zip(names, one.lengths, strict=True)
        ],
    }


def _rows(compared: Compared, names: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Yield a line per captioner of each row: its value, and its difference to the first."""
    for row in compared.rows:
        cell = row.cell
        metric = compared.benchmark.metrics[cell.metric]
        for place, (name, value) in enumerate(zip(names, row.values, strict=True)):
            yield {
                "task": cell.name, "section": cell.section, "group": cell.group,
                "metric": cell.metric, "higher_is_better": metric.higher_is_better,
                "captioner": name, "value": value.value, "low": value.low, "high": value.high,
                "n_videos": value.n_videos, "note": value.note,
                "baseline": names[0] if place else None,
                **_difference(row.contrasts[0, place] if place else None),
            }  # fmt: skip


def _difference(contrast: Contrast | None) -> dict[str, Any]:
    found = None if contrast is None else contrast.difference
    low, high = (contrast and contrast.interval) or (None, None)
    return {
        "difference": found and found.difference,
        "difference_low": found and found.low,
        "difference_high": found and found.high,
        "p": found and found.p_value,
        "simultaneous_low": low,
        "simultaneous_high": high,
        "p_adjusted": contrast and contrast.p_value,
        "outcome": contrast and contrast.outcome,
        "difference_note": found and found.note,
    }


def _tables(compared: Compared, names: Sequence[str]) -> Iterator[tuple[str, pd.DataFrame]]:
    headline, minus = compared.benchmark.headline, f"minus {shortened(names[0], 20)}"
    for row in compared.headline(compared.overall):
        ranks = {
            of.captioner: f"{of.best}-{of.worst}" if of.best < of.worst else str(of.best)
            for of in compared.ranking
        }
        cells = [
            [names[i], row.values[i], ranks.get(i), *_minus_first(row, i)]
            for i in ranks or range(len(names))
        ]
        yield "", table(["captioner", headline, "rank", minus, "p", "result"], cells)
    others = []
    for row in compared.overall:
        name = row.cell.metric
        lower = "" if compared.benchmark.metrics[name].higher_is_better else " (lower is better)"
        for place, value in enumerate(row.values if name != headline else ()):
            label = "" if place else f"{name}{lower}"
            others.append([label, names[place], value, *_minus_first(row, place)])
    if others:
        header = ["metric", "captioner", "value", minus, "p", "result"]
        yield "Other metrics", table(header, others)
    for section, rows in compared.sections.items():
        yield _section(compared, section, compared.headline(rows), names)
    if compared.flips:
        what = "higher" if next(iter(compared.flips.values()))["is_graded"] else "right"
        header = ["captioner", f"{what} here only", f"{what} for {shortened(names[0], 20)} only"]
        cells = [
            [names[i], of["n_gained"], of["n_lost"], of["n_same"]]
            for i, of in compared.flips.items()
        ]
        yield "Questions by their verdicts", table([*header, "same"], cells)
    for other, moved in compared.moved.items():
        cells = [
            [
                shortened(of["video"]), of["n_questions"], of["first"], of["other"],
                f"{of['effect']:+.3f}",
            ]
            for of in moved
        ]  # fmt: skip
        short = [shortened(names[i], 16) for i in (0, other)]
        if cells:
            title = f"Videos that differ most, {names[other]} minus {names[0]}"
            yield title, table(["video", "questions", *short, "effect on difference"], cells)
    yield "Caption length", _lengths(compared.lengths, names)


def _minus_first(row: Row, place: int) -> list[str]:
    """Return a captioner's difference to the first, p-value and result; empty for the first."""
    if not place:
        return ["", "", ""]
    contrast = row.contrasts[0, place]
    low, high = contrast.interval or (None, None)
    shown = interval_text(contrast.difference.difference, low, high, sign="+")
    return [shown, p_text(contrast.p_value), contrast.outcome]


def _section(
    compared: Compared, section: str, rows: Sequence[Row], names: Sequence[str]
) -> tuple[str, pd.DataFrame]:
    """Return the headline in each group; a star marks a significant difference to the first."""
    cells = []
    for row in rows:
        values = [number(value.value) for value in row.values]
        for place in range(1, len(names)):
            values[place] += " *" if row.contrasts[0, place].outcome in _SIGNIFICANT else ""
        if len(names) == 2:
            values += _minus_first(row, 1)[:2]
        n_videos = max(value.n_videos for value in row.values)
        cells.append([shortened(row.cell.group), *values, n_videos])
    what, n_more = section.replace("_", " "), compared.n_groups_left_out
    of_two = ["difference", "p"] if len(names) == 2 else []
    header = [what, *(shortened(name, 16) for name in names), *of_two, "videos"]
    beyond = ""
    if n_more and section != "tasks":
        beyond = f", the {len(rows)} largest groups ({n_more:,} more)"
    return f"{compared.benchmark.headline} by {what}{beyond}", table(header, cells)


def _lengths(lengths: Sequence[Mapping[str, Any]], names: Sequence[str]) -> pd.DataFrame:
    header = ["captioner", "captions", "empty", "words per caption"]
    if any(of["tokens"] is not None for of in lengths):
        header.append("T5 tokens")
    rows = []
    for name, of in zip(names, lengths, strict=True):
        means = [number(of[what], 1) for what in ("words", "tokens")]
        rows.append([name, of["n_captions"], of["n_empty"], *means][: len(header)])
    return table(header, rows)


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
    notes: dict[str, None] = {}
    for row in compared.headline(compared.rows):
        for (first, _), contrast in row.contrasts.items():
            about = row.cell.group if row.cell.section != "overall" else row.cell.metric
            if contrast.difference.note and not first:
                notes[f"{about}: {contrast.difference.note}"] = None
    yield from notes
    shown = {row.cell.metric for row in compared.overall}
    missing = [name for name in compared.benchmark.metrics if name not in shown]
    if missing:
        yield f"{', '.join(missing)}: cannot be computed for all captioners."
