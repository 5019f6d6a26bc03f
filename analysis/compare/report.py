"""Output of ``compare``: an answer in a sentence, the ranking, and tables; or JSON and CSV."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from math import isnan, nan
from typing import TYPE_CHECKING, Any

from lmms_eval_captions.analysis.captioners import Captioner
from lmms_eval_captions.analysis.compare.comparison import (
    SIGNIFICANT,
    TASKS,
    Compared,
    Contrast,
    Document,
    Row,
)
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
from lmms_eval_captions.lmms_eval_tasks.benchmark import ALL
from lmms_eval_captions.metrics.paired import videos_to_settle

if TYPE_CHECKING:
    import pandas as pd


def part_of(compared: Compared) -> Part:
    """Return the report on one task or group."""
    judge = "Measured without a judge" if compared.benchmark.measure else f"Judge: {compared.judge}"
    warnings = [f"WARNING: {warning}" for warning in compared.warnings]
    answers = answer(compared, compared.captioners)
    sentences = [*warnings, *answers, f"{judge}. {compared.counts.scope()}."]
    return Part(compared.name, sentences, list(_tables(compared)), list(_notes(compared)))


def overview(compared: Sequence[Compared], names: Sequence[str], left_out: Sequence[str]) -> Part:
    """Return the answers of all tasks and groups."""
    sentences = [sentence for one in compared for sentence in answer(one, names)]
    title = f"{listed(names[1:])} against {names[0]}"
    return Part(title, [*sentences, *(f"Left out: {why}." for why in left_out)])


def answer(compared: Compared, names: Sequence[str]) -> list[str]:
    """Return which captioner is best, by how much, and whether that is significant."""
    if not compared.ranking:
        return []
    row, name = compared.headline[0], compared.benchmark.headline
    leader, *others = (ranked.captioner for ranked in compared.ranking)
    what, best = f"on {name} of {compared.name}", names[leader]
    contrasts = {of: row.contrasts[min(leader, of), max(leader, of)] for of in others}
    if any(contrast.outcome == "unknown" for contrast in row.contrasts.values()):
        notes = dict.fromkeys(of.difference.note for of in row.contrasts.values())
        return [f"No comparison {what}: {'; '.join(filter(None, notes))}."]
    ties = [place for place, of in contrasts.items() if of.outcome not in SIGNIFICANT]
    shown = (ties or others)[0]
    closest, sign = contrasts[shown], 1 if shown < leader else -1
    ahead = _ahead(closest, sign, compared.benchmark.metrics[name].highest)
    if not ties:
        rest, over = names[shown], ""
        if len(names) > 2:
            rest, over = "the others", f" over {names[shown]}"
        return [f"{best} is significantly better than {rest} {what}: {ahead}{over}."]
    words = f"No significant winner {what}: {best} scores highest, {ahead} over {names[shown]}."
    worse = [names[place] for place in others if place not in ties]
    if worse:
        words += f" {best} is significantly better than {listed(worse)}."
    n_videos, n_now = videos_to_settle(closest.difference), closest.difference.n_videos
    if n_videos is not None and n_videos > n_now:
        words += (
            f" Telling {best} from {names[shown]} would take about {n_videos:,} videos "
            f"(you have {n_now:,})."
        )
    return [words]


def _ahead(contrast: Contrast, sign: int, highest: float) -> str:
    """Format the leader minus another captioner, with the simultaneous interval."""
    low, high = sorted(sign * (nan if end is None else end) for end in contrast.interval)
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
    return {
        "baseline": captioners[0].name,
        "captioners": [{"name": of.name, "results": str(of.newest.path)} for of in captioners],
        "compared": list(map(_document, compared)),
        "left_out": list(left_out),
        "gates": list(decided),
        **({"exit_code": exit_code(decided)} if decided else {}),
    }


def _document(one: Compared) -> dict[str, Any]:
    names = one.captioners
    return {
        "task": one.name,
        "benchmark": one.benchmark.name,
        "headline": one.benchmark.headline,
        "summary": answer(one, names),
        "judge": one.judge,
        "warnings": list(one.warnings),
        "counts": one.counts._asdict(),
        "rows": list(_rows(one)),
        "ranking": [{**r._asdict(), "captioner": names[r.captioner]} for r in one.ranking],
        "pairs": [
            {"captioner": names[b], "baseline": names[a], **_difference(contrast)}
            for row in one.headline
            if row in one.overall
            for (a, b), contrast in row.contrasts.items()
        ],
        "flips": one.flips,
        "moved": one.moved,
        "lengths": one.lengths,
    }


def _rows(compared: Compared) -> Iterator[dict[str, Any]]:
    """Yield a line per captioner of each row: its value, and its difference to the first."""
    names = compared.captioners
    for cell, values, contrasts in compared.rows:
        metric = compared.benchmark.metrics[cell.metric]
        for place, (name, value) in enumerate(zip(names, values, strict=True)):
            yield {
                "task": cell.name, "section": cell.section, "group": cell.group,
                "metric": cell.metric, "higher_is_better": metric.higher_is_better,
                "captioner": name, "value": value.value, "low": value.low, "high": value.high,
                "n_videos": value.n_videos, "note": value.note,
                "baseline": names[0] if place else None,
                **_difference(contrasts.get((0, place))),
            }  # fmt: skip


def _difference(contrast: Contrast | None) -> dict[str, Any]:
    found, p_value, (low, high), outcome = contrast or (None, None, (None, None), None)
    return {
        "difference": found and found.difference,
        "difference_low": found and found.low,
        "difference_high": found and found.high,
        "p": found and found.p_value,
        "simultaneous_low": low,
        "simultaneous_high": high,
        "p_adjusted": p_value,
        "outcome": outcome,
        "difference_note": found and found.note,
    }


def _tables(compared: Compared) -> Iterator[tuple[str, pd.DataFrame]]:
    names, headline = compared.captioners, compared.benchmark.headline
    minus = [f"minus {shortened(names[0], 20)}", "p", "result"]
    ranks = {
        of.captioner: f"{of.best}-{of.worst}" if of.best < of.worst else str(of.best)
        for of in compared.ranking
    }
    others: list[list[object]] = []
    for row in compared.overall:
        name = row.cell.metric
        lower = "" if compared.benchmark.metrics[name].higher_is_better else " (lower is better)"
        cells = [[names[i], value, *_minus_first(row, i)] for i, value in enumerate(row.values)]
        if name != headline:
            others += [["" if i else f"{name}{lower}", *own] for i, own in enumerate(cells)]
            continue
        ranked = [[*cells[i][:2], ranks.get(i), *cells[i][2:]] for i in ranks or range(len(names))]
        yield "", table(["captioner", headline, "rank", *minus], ranked)
    if others:
        yield "Other metrics", table(["metric", "captioner", "value", *minus], others)
    for section, rows in groupby(compared.headline, lambda row: row.cell.section):
        if section != ALL[0]:
            yield _section(compared, section, list(rows))
    if compared.flips:
        what = "higher" if next(iter(compared.flips.values()))["is_graded"] else "right"
        header = [f"{what} here only", f"{what} for {shortened(names[0], 20)} only", "same"]
        cells = [[name, *list(of.values())[:3]] for name, of in compared.flips.items()]
        yield "Questions by their verdicts", table(["captioner", *header], cells)
    for name, moved in compared.moved.items():
        cells = [
            [
                shortened(of["video"]), of["n_questions"], of["first"], of["other"],
                f"{of['effect']:+.3f}",
            ]
            for of in moved
        ]  # fmt: skip
        header = ["video", "questions", shortened(names[0], 16), shortened(name, 16)]
        if cells:
            title = f"Videos that differ most, {name} minus {names[0]}"
            yield title, table([*header, "effect on difference"], cells)
    header = ["captioner", "captions", "empty", "words per caption"]
    if any(of["tokens"] is not None for of in compared.lengths):
        header.append("T5 tokens")
    cells = [
        [*counts, number(words, 1), number(tokens, 1)][: len(header)]
        for *counts, words, tokens in (of.values() for of in compared.lengths)
    ]
    yield "Caption length", table(header, cells)


def _minus_first(row: Row, place: int) -> list[str]:
    """Return a captioner's difference to the first, p-value and result; empty for the first."""
    if not place:
        return ["", "", ""]
    found, p_value, ends, outcome = row.contrasts[0, place]
    return [interval_text(found.difference, *ends, sign="+"), p_text(p_value), outcome]


def _section(compared: Compared, section: str, rows: Sequence[Row]) -> tuple[str, pd.DataFrame]:
    """Return the headline in each group; a star marks a significant difference to the first."""
    names, what, beyond = compared.captioners, section.replace("_", " "), ""
    cells = []
    for row in rows:
        values = [number(value.value) for value in row.values]
        for place in range(1, len(names)):
            values[place] += " *" if row.contrasts[0, place].outcome in SIGNIFICANT else ""
        if len(names) == 2:
            values += _minus_first(row, 1)[:2]
        n_videos = max(value.n_videos for value in row.values)
        cells.append([shortened(row.cell.group), *values, n_videos])
    of_two = ["difference", "p"] if len(names) == 2 else []
    header = [what, *(shortened(name, 16) for name in names), *of_two, "videos"]
    if compared.n_groups_left_out and section != TASKS:
        beyond = f", the {len(rows)} largest groups ({compared.n_groups_left_out:,} more)"
    return f"{compared.benchmark.headline} by {what}{beyond}", table(header, cells)


def _notes(compared: Compared) -> Iterator[str]:
    names = compared.captioners
    pairs = f", {len(names)} captioners" if len(names) > 2 else ""
    yield (
        f"Scores have 95% intervals over videos. Differences have simultaneous 95% intervals and "
        f"adjusted p-values: one family per metric of all tasks of {compared.benchmark.name} and "
        f"their groups{pairs}, whatever is shown."
    )
    if len(compared.rows) > len(compared.overall):
        yield f"* differs significantly from {names[0]} (p < 0.05)."
    yield "tied: no significant difference, which does not mean that captioners are equally good."
    notes: dict[str, None] = {}
    for row in compared.headline:
        about = row.cell.group if row.cell.section != ALL[0] else row.cell.metric
        for (first, _), contrast in row.contrasts.items():
            if contrast.difference.note and not first:
                notes[f"{about}: {contrast.difference.note}"] = None
    yield from notes
    shown = {row.cell.metric for row in compared.overall}
    missing = [name for name in compared.benchmark.metrics if name not in shown]
    if missing:
        yield f"{', '.join(missing)}: cannot be computed for all captioners."
